"""Message catalogues, PO of gettext and XLIFF: messages without a translation get one, beside their source."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents import html
from sixfold.translation.documents.units import Kind, Piece, Unit, make_unit, text_pieces, unescape_references

_QUOTED = r'(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"[ \t]*+(?:\r?\n[ \t]*+)?+)++'
_ENTRY = re.compile(
    rf"^msgid[ \t]+(?P<singular>{_QUOTED})(?:^msgid_plural[ \t]+(?P<plural>{_QUOTED}))?"
    rf"(?P<forms>(?:^msgstr(?:\[\d+\])?[ \t]+{_QUOTED})+)",
    re.M,
)
_FORM = re.compile(rf"^msgstr(?:\[(?P<number>\d+)\])?[ \t]+(?P<translation>{_QUOTED})", re.M)
_STRING = re.compile(r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"')
_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.S)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPED = {"\\": "\\\\", '"': '\\"', **{char: f"\\{name}" for name, char in _CONTROL.items()}}

_SEGMENT = re.compile(  # it ends before the next one begins, so that a broken file is not searched to its end
    r"<source\b[^<>]*+(?<!/)>(?P<source>(?:(?!<source\b).)*?)</source\s*>(?P<between>\s*+)"
    r"(?P<target><target\b(?P<attributes>[^<>]*?)(?:/>|>(?P<translation>(?:(?!<source\b|<target\b).)*?)</target\s*>))?",
    re.S,
)
PAIRED_TAGS = frozenset(["g", "mrk", "pc"])
CODE_TAGS = frozenset(["ph", "bpt", "ept", "it"])  # hold code of another format


def parse_po(text: str) -> list[Unit]:
    """Return the messages with an empty msgstr as units; the header and translated messages stay."""
    units = []
    for entry in _ENTRY.finditer(text):
        check_cancelled()
        for form in _FORM.finditer(text, *entry.span("forms")):
            is_plural = entry["plural"] is not None and form["number"] not in (None, "0")
            source = _unquote(entry["plural" if is_plural else "singular"])
            translation = form["translation"].rstrip()
            if source.strip() and not _unquote(translation):
                start = form.start("translation")
                units.append(Unit((start, start + len(translation)), source, escape=_quote))
    return units


def _unquote(strings: str) -> str:
    return _ESCAPE.sub(_unescape, "".join(_STRING.findall(strings)))


def _unescape(escape_sequence: re.Match[str]) -> str:
    code = escape_sequence[0][1:]
    if code[0] == "x" and len(code) == 3:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdigit() else _CONTROL.get(code, code)


def _quote(text: str) -> str:
    """Return a text as strings of PO, one for each of its lines."""
    lines = ["".join(_ESCAPED.get(char, char) for char in line) for line in text.splitlines(keepends=True)]
    strings = [f'"{line}"' for line in lines]
    return strings[0] if len(strings) == 1 else "\n".join(['""', *strings])


def parse_xliff(text: str) -> list[Unit]:
    """Return the sources without a target, or with an empty one, as units."""
    units = []
    for segment in _SEGMENT.finditer(text):
        check_cancelled()
        if (segment["translation"] or "").strip():
            continue
        unit = make_unit(_pieces(text, *segment.span("source")), _escape, trims=False)
        if unit is None:
            continue
        if segment["target"] is None:
            span, around = (segment.end("between"),) * 2, ("<target>", f"</target>{segment['between']}")
        elif segment["translation"] is None:
            span, around = segment.span("target"), (f"<target{segment['attributes'].rstrip()}>", "</target>")
        else:
            span, around = segment.span("translation"), ("", "")
        units.append(replace(unit, span=span, around=around))
    return units


def _escape(text: str) -> str:
    return escape(text, quote=False)


def _pieces(text: str, start: int, end: int) -> list[Piece]:
    pieces: list[Piece] = []
    code: html.Token | None = None  # the start of the current element with code of another format
    for token in html.tokens(text, start, end):
        name = token.name.rpartition(":")[2]
        is_empty = text[slice(*token.span)].endswith("/>")
        if code is not None:
            if token.closes and token.name == code.name:
                pieces.append(Piece((code.span[0], token.span[1]), kind="single"))
                code = None
        elif not name:
            pieces += text_pieces(text, token.span, unescape_references)
        elif name in CODE_TAGS and not is_empty and not token.closes:
            code = token
        else:
            kind: Kind = "single" if name not in PAIRED_TAGS or is_empty else "close" if token.closes else "open"
            pieces.append(Piece(token.span, kind=kind))
    return pieces
