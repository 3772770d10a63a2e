"""JSON and YAML: the strings that are values; keys, numbers, comments and layout stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.units import Unit, UnreadableError, text_pieces, unit_of

DEEPEST = 100  # lists and mappings of YAML inside each other; its scanner needs time by the square of their number
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.S)
_COLON = re.compile(r"\s*:")
_HEADER = re.compile(r"[|>][^\n]*\n")
# What YAML would read as something else than this text, if it stood there plainly.
_OTHER = re.compile(r"(?:true|false|yes|no|on|off|null|y|n|~)\Z", re.I)
_UNPLAIN = re.compile(
    rf"[\s&*?|>@`\"'%#!,\[\]{{}}:\d.+-]|\Z|.*(?:: |:\Z| #|\s\Z|[\n,\[\]{{}}])|{_OTHER.pattern}", re.I | re.S
)


def parse_json(text: str) -> list[Unit]:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"expected JSON; column {error.colno}: {error.msg}", error.lineno) from None
    except ValueError as error:  # a number of thousands of digits
        raise UnreadableError(f"expected JSON that Python can read; {error}") from None
    except RecursionError:
        raise UnreadableError("expected JSON that is nested less deeply") from None
    units = []
    for found in _STRING.finditer(text):
        if _COLON.match(text, found.end()):
            continue
        span = found.start() + 1, found.end() - 1
        unit = unit_of(text_pieces(text, span, _decoded), _encoded, folds=False)
        if unit is not None:
            units.append(unit)
    return units


def _decoded(raw: str) -> str:
    return str(json.loads(f'"{raw}"', strict=False))


def _encoded(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def parse_yaml(text: str) -> list[Unit]:
    """Needs PyYAML, which says where each scalar stands."""
    try:
        import yaml
    except ImportError:
        raise UnreadableError("YAML needs PyYAML", hint="pip install 'sixfold[documents]'") from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Refuses what is nested too deeply before it takes long, and can be stopped."""

        depth = 0

        def fetch_flow_collection_start(self, token: Any) -> None:
            self.check_depth(self.flow_level + 1)
            super().fetch_flow_collection_start(token)

        def compose_node(self, parent: Any, index: Any) -> Any:
            check_cancelled()
            self.depth += 1
            self.check_depth(self.depth)
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

        def check_depth(self, depth: int) -> None:
            if depth > DEEPEST:
                expected = f"expected YAML that is nested less deeply, at most {DEEPEST} levels"
                raise UnreadableError(expected, self.line + 1)

    try:
        found = [scalar for root in yaml.compose_all(text, Loader) if root for scalar in _scalars(root, set())]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or error
        raise UnreadableError(f"expected YAML; {problem}", mark.line + 1 if mark else None) from None
    return [unit for scalar in found for unit in _scalar(text, scalar)]


def _scalars(node: Any, seen: set[int]) -> Iterator[Any]:
    """The strings of a tree that are no keys; what is named and used again, once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if node.id == "scalar":
        yield from [node] if node.tag.endswith(":str") else []
    else:
        for each in node.value:
            yield from _scalars(each[1] if node.id == "mapping" else each, seen)


def _scalar(text: str, node: Any) -> list[Unit]:
    span = node.start_mark.index, node.end_mark.index
    if not node.value.strip():
        return []
    if node.style in ("|", ">"):
        return _block(text, span, node.value)
    if node.style is None:
        return [Unit(span, node.value, escape=_plain)]
    return [Unit((span[0] + 1, span[1] - 1), node.value, escape=_encoded if node.style == '"' else _doubled)]


def _block(text: str, span: tuple[int, int], value: str) -> list[Unit]:
    """The lines of a block are one text, set in as its first line is."""
    header = _HEADER.match(text, *span)
    if header is None or value[0] in " \n":  # an indent of its own, which a mark would have to say
        return []
    body = text[header.end() : span[1]].rstrip()
    indent = body[: len(body) - len(body.lstrip())]
    folds = header[0][0] == ">"

    def write(said: str) -> str:
        lines = (said.replace("\n", "\n\n") if folds else said).split("\n")
        return f"\n{indent}".join(lines).replace(f"\n{indent}\n", "\n\n")

    return [Unit((header.end() + len(indent), header.end() + len(body)), value.rstrip("\n"), escape=write)]


def _plain(text: str) -> str:
    return f'"{_encoded(text)}"' if _UNPLAIN.match(text) else text


def _doubled(text: str) -> str:
    return text.replace("'", "''")
