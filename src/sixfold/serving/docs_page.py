"""The HTTP interface as a page for people, made from the OpenAPI description. It has no scripts and loads nothing."""

from __future__ import annotations

import json
from typing import Any

from sixfold.reports.page import Section, code, paragraph, render, table


def docs_page(openapi: dict[str, Any], prefix: str = "") -> str:
    """Return an HTML page with a section for each route: what it does, its fields, and its responses.

    `prefix` is the path of the server that comes before the paths of all routes.
    """
    schemas = openapi.get("components", {}).get("schemas", {})
    sections = []
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            parts = [paragraph(operation.get("description", ""))]
            for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
                rows = field_rows(content.get("schema", {}), schemas)
                parts += [paragraph(f"Request: {media_type}"), table(["field", "type", ""], rows)]
            responses = [[status, each.get("description", "")] for status, each in operation["responses"].items()]
            sections.append(Section(f"{method.upper()} {prefix}{path}", [*parts, table(["status", ""], responses)]))
    for_programs = paragraph(f"For programs: {prefix}/openapi.json")
    example = code(
        "curl -d '{\"texts\": [\"机器学习很有趣\"]}' -H 'Content-Type: application/json' "
        + f"{prefix}/api/v1/translate"
    )
    return render(
        "HTTP interface",
        f"Sixfold {openapi['info']['version']}",
        [Section("Start", [for_programs, example]), *sections],
    )


def field_rows(schema: dict[str, Any], schemas: dict[str, Any]) -> list[list[str]]:
    """Return a row for each field of a schema: its name, its type, and its default and description."""
    resolved = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
    required = resolved.get("required", [])
    rows = []
    for name, field in resolved.get("properties", {}).items():
        types = [field.get("type") or str(each.get("type", "object")) for each in field.get("anyOf", [field])]
        default = (
            "required" if name in required else f"default {json.dumps(field['default'])}" if "default" in field else ""
        )
        remarks = ". ".join(filter(None, (default, field.get("description", ""))))
        rows.append([name, " or ".join(map(str, types)), remarks])
    return rows
