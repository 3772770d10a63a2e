"""JSON and YAML: the strings that are values; keys, numbers, comments and layout stay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.units import Unit, UnreadableError, make_unit, text_pieces

MAX_DEPTH = 100  # of lists and mappings in YAML; the time of its scanner grows with the square of the depth
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.S)
_COLON = re.compile(r"\s*:")
_HEADER = re.compile(r"[|>][^\n]*\n")
# Texts that YAML would not read as these texts if they were written without quotation marks.
_NO_STRING = re.compile(r"(?:true|false|yes|no|on|off|null|y|n|~)\Z", re.I)
_NEEDS_QUOTES = re.compile(
    rf"[\s&*?|>@`\"'%#!,\[\]{{}}:\d.+-]|\Z|.*(?:: |:\Z| #|\s\Z|[\n,\[\]{{}}])|{_NO_STRING.pattern}", re.I | re.S
)


def parse_json(text: str) -> list[Unit]:
    """Return the strings that are values as units."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableError(f"expected JSON; column {error.colno}: {error.msg}", error.lineno) from None
    except ValueError as error:  # a number of thousands of digits
        raise UnreadableError(f"expected JSON that Python can read; {error}") from None
    except RecursionError:
        raise UnreadableError("expected JSON that is nested less deeply") from None
    units = []
    for string in _STRING.finditer(text):
        if _COLON.match(text, string.end()):
            continue
        span = string.start() + 1, string.end() - 1
        unit = make_unit(text_pieces(text, span, _decode), _encode, collapses=False)
        if unit is not None:
            units.append(unit)
    return units


def _decode(raw: str) -> str:
    return str(json.loads(f'"{raw}"', strict=False))


def _encode(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def parse_yaml(text: str) -> list[Unit]:
    """Return the strings that are values as units; PyYAML finds them."""
    try:
        import yaml
    except ImportError:
        raise UnreadableError("YAML needs PyYAML", hint="pip install 'sixfold[documents]'") from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Refuses what is nested too deeply before that takes long, and can be cancelled."""

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
            if depth > MAX_DEPTH:
                expected = f"expected YAML that is nested less deeply, at most {MAX_DEPTH} levels"
                raise UnreadableError(expected, self.line + 1)

    try:
        scalars = [scalar for root in yaml.compose_all(text, Loader) if root for scalar in _scalars(root, set())]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or error
        raise UnreadableError(f"expected YAML; {problem}", mark.line + 1 if mark else None) from None
    return [unit for scalar in scalars for unit in _scalar_units(text, scalar)]


def _scalars(node: Any, seen: set[int]) -> Iterator[Any]:
    """Yield the strings of a tree that are values; a node with several aliases once."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if node.id == "scalar":
        yield from [node] if node.tag.endswith(":str") else []
    else:
        for child in node.value:
            yield from _scalars(child[1] if node.id == "mapping" else child, seen)


def _scalar_units(text: str, node: Any) -> list[Unit]:
    span = node.start_mark.index, node.end_mark.index
    if not node.value.strip():
        return []
    if node.style in ("|", ">"):
        return _block_units(text, span, node.value)
    if node.style is None:
        return [Unit(span, node.value, escape=_quote_if_needed)]
    return [Unit((span[0] + 1, span[1] - 1), node.value, escape=_encode if node.style == '"' else _double_quotes)]


def _block_units(text: str, span: tuple[int, int], value: str) -> list[Unit]:
    """Return a block scalar as one unit, whose lines are indented like its first line."""
    header = _HEADER.match(text, *span)
    if header is None or value[0] in " \n":  # it has an indentation of its own, which the header would have to state
        return []
    body = text[header.end() : span[1]].rstrip()
    indent = body[: len(body) - len(body.lstrip())]
    is_folded = header[0][0] == ">"

    def indented(translation: str) -> str:
        lines = (translation.replace("\n", "\n\n") if is_folded else translation).split("\n")
        return f"\n{indent}".join(lines).replace(f"\n{indent}\n", "\n\n")

    return [Unit((header.end() + len(indent), header.end() + len(body)), value.rstrip("\n"), escape=indented)]


def _quote_if_needed(text: str) -> str:
    return f'"{_encode(text)}"' if _NEEDS_QUOTES.match(text) else text


def _double_quotes(text: str) -> str:
    return text.replace("'", "''")
