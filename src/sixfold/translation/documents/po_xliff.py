"""Catalogues of messages, gettext's PO and XLIFF: what has no translation yet gets one, beside its source."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents import html
from sixfold.translation.documents.units import Kind, Piece, Unit, text_pieces, unescaped, unit_of

_QUOTED = r'(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"[ \t]*+(?:\r?\n[ \t]*+)?+)++'
_ENTRY = re.compile(
    rf"^msgid[ \t]+(?P<one>{_QUOTED})(?:^msgid_plural[ \t]+(?P<many>{_QUOTED}))?"
    rf"(?P<forms>(?:^msgstr(?:\[\d+\])?[ \t]+{_QUOTED})+)",
    re.M,
)
_FORM = re.compile(rf"^msgstr(?:\[(?P<number>\d+)\])?[ \t]+(?P<said>{_QUOTED})", re.M)
_STRING = re.compile(r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"')
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.S)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = {"\\": "\\\\", '"': '\\"', **{char: f"\\{name}" for name, char in _CONTROL.items()}}

_SEGMENT = re.compile(  # it ends before another begins, which keeps the search from the whole rest of a broken file
    r"<source\b[^<>]*+(?<!/)>(?P<source>(?:(?!<source\b).)*?)</source\s*>(?P<between>\s*+)"
    r"(?P<target><target\b(?P<attributes>[^<>]*?)(?:/>|>(?P<said>(?:(?!<source\b|<target\b).)*?)</target\s*>))?",
    re.S,
)
PAIRS = frozenset(["g", "mrk", "pc"])
CODES = frozenset(["ph", "bpt", "ept", "it"])  # what is inside them is code of another format


def parse_po(text: str) -> list[Unit]:
    """Messages with an empty msgstr; the header and what is translated are left alone."""
    units = []
    for entry in _ENTRY.finditer(text):
        check_cancelled()
        for form in _FORM.finditer(text, *entry.span("forms")):
            many = entry["many"] is not None and form["number"] not in (None, "0")
            source, said = _unquoted(entry["many" if many else "one"]), form["said"].rstrip()
            if source.strip() and not _unquoted(said):
                start = form.start("said")
                units.append(Unit((start, start + len(said)), source, escape=_quoted))
    return units


def _unquoted(strings: str) -> str:
    return _ESCAPE.sub(_unescaped, "".join(_STRING.findall(strings)))


def _unescaped(found: re.Match[str]) -> str:
    code = found[0][1:]
    if code[0] == "x" and len(code) == 3:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdigit() else _CONTROL.get(code, code)


def _quoted(text: str) -> str:
    """Of several lines, each has a string of its own."""
    lines = ["".join(_WRITTEN.get(char, char) for char in line) for line in text.splitlines(keepends=True)]
    strings = [f'"{line}"' for line in lines]
    return strings[0] if len(strings) == 1 else "\n".join(['""', *strings])


def parse_xliff(text: str) -> list[Unit]:
    """Sources without a target, or with an empty one."""
    units = []
    for found in _SEGMENT.finditer(text):
        check_cancelled()
        if (found["said"] or "").strip():
            continue
        unit = unit_of(_pieces(text, *found.span("source")), _escape, trims=False)
        if unit is None:
            continue
        if found["target"] is None:
            place, around = (found.end("between"),) * 2, ("<target>", f"</target>{found['between']}")
        elif found["said"] is None:
            place, around = found.span("target"), (f"<target{found['attributes'].rstrip()}>", "</target>")
        else:
            place, around = found.span("said"), ("", "")
        units.append(replace(unit, span=place, around=around))
    return units


def _escape(text: str) -> str:
    return escape(text, quote=False)


def _pieces(text: str, start: int, end: int) -> list[Piece]:
    pieces: list[Piece] = []
    code: html.Token | None = None
    for token in html.tokens(text, start, end):
        name = token.name.rpartition(":")[2]
        closed = text[slice(*token.span)].endswith("/>")
        if code is not None:
            if token.closes and token.name == code.name:
                pieces.append(Piece((code.span[0], token.span[1]), kind="single"))
                code = None
        elif not name:
            pieces += text_pieces(text, token.span, unescaped)
        elif name in CODES and not closed and not token.closes:
            code = token
        else:
            kind: Kind = "single" if name not in PAIRS or closed else "close" if token.closes else "open"
            pieces.append(Piece(token.span, kind=kind))
    return pieces
