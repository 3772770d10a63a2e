"""The interface for people to read, made from its OpenAPI description; no script, nothing from elsewhere."""

from __future__ import annotations

import json
from typing import Any

from sixfold.reports.page import Section, code, paragraph, render, table


def interface_page(openapi: dict[str, Any]) -> str:
    """Every route: what it does, what it takes, what it answers."""
    schemas = openapi.get("components", {}).get("schemas", {})
    sections = []
    for path, methods in openapi["paths"].items():
        for method, about in methods.items():
            parts = [paragraph(about.get("description", ""))]
            for kind, content in about.get("requestBody", {}).get("content", {}).items():
                fields = described(content.get("schema", {}), schemas)
                parts += [paragraph(f"Takes {kind}"), table(["field", "type", ""], fields)]
            answers = [[status, each.get("description", "")] for status, each in about["responses"].items()]
            sections.append(Section(f"{method.upper()} {path}", [*parts, table(["status", ""], answers)]))
    machine = paragraph("For programs: /openapi.json")
    example = code("curl -d '{\"texts\": [\"机器学习很有趣\"]}' -H 'Content-Type: application/json' /api/v1/translate")
    return render(
        "Interface", f"Sixfold {openapi['info']['version']}", [Section("Start", [machine, example]), *sections]
    )


def described(schema: dict[str, Any], schemas: dict[str, Any]) -> list[list[str]]:
    """Name, type, and what is said of each field."""
    named = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
    required = named.get("required", [])
    rows = []
    for name, its in named.get("properties", {}).items():
        kinds = [its.get("type") or str(each.get("type", "object")) for each in its.get("anyOf", [its])]
        default = (
            "required" if name in required else f"default {json.dumps(its['default'])}" if "default" in its else ""
        )
        said = ", ".join(filter(None, (default, its.get("description", ""))))
        rows.append([name, " or ".join(map(str, kinds)), said])
    return rows
