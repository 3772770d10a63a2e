"""The YAML before a page of Markdown: its title and its description are translated, and everything else stays."""

from __future__ import annotations

import re

from sixfold.translation.documents.markup.markdown_grammar import FRONT_MATTER
from sixfold.translation.documents.structure import Structure
from sixfold.translation.documents.units import Piece, Unit, make_unit

_VALUE = re.compile(
    r"""^(?P<key>title|description):[ \t]+(?:"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\n]|'')*)'"""
    r"""|(?P<plain>[^\s"'#&*!|>%@`\[\]{},?:-][^\n]*?))[ \t]*\r?$""",
    re.M,
)
_UNSAFE = re.compile(r"""\A[\s"'#&*!|>%@`\[\]{},?:~-]|:(?=\s|\Z)|\s#|\s\Z|[\x00-\x1f\x7f-\x9f]""")
_NOT_TEXT = re.compile(r"(?:true|false|null|yes|no|on|off|[-+.\d_:TZ ]+)\Z", re.I)
_ESCAPE = re.compile(r"\\(.)")


def units(text: str) -> list[Unit]:
    """Return the title and the description of a page as units."""
    front = FRONT_MATTER.match(text)
    found = []
    for match in _VALUE.finditer(text, *front.span("values")) if front and front["yaml"] else ():
        style = _style(match)
        value = match[style]
        if (style == "plain" and _is_no_text(value)) or (style == "double" and re.search(r'\\[^"\\]', value)):
            continue
        content = value.replace("''", "'") if style == "single" else value
        content = _ESCAPE.sub(r"\1", value) if style == "double" else content
        escape = {"double": _escape_double, "single": _escape_single, "plain": _escape_plain}[style]
        if unit := make_unit([Piece(match.span(style), content)], escape, collapses=False, trims=False):
            found.append(unit)
    return found


def structure(text: str) -> Structure:
    """Return the front matter without the values that are translated."""
    front = FRONT_MATTER.match(text)
    if front is None:
        return []
    if not front["yaml"]:
        return [front[0]]
    return [_VALUE.sub(_without_value, front[0])]


def _style(match: re.Match[str]) -> str:
    return next(style for style in ("double", "single", "plain") if match[style] is not None)


def _is_no_text(value: str) -> bool:
    return _UNSAFE.search(value) is not None or _NOT_TEXT.match(value) is not None


def _without_value(match: re.Match[str]) -> str:
    is_text = match["plain"] is None or not _is_no_text(match["plain"])
    return f"{match['key']}: text" if is_text else match[0]


def _escape_double(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _escape_single(text: str) -> str:
    return text.replace("'", "''").replace("\n", " ")


def _escape_plain(text: str) -> str:
    return f'"{_escape_double(text)}"' if _is_no_text(text) else text
