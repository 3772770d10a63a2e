"""HTML: the text of blocks, with the inline tags inside it, and the attributes that people read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.units import Kind, Piece, Span, Unit, make_unit, text_pieces, unescape_references

# Possessive quantifiers (++) never backtrack, and a match ends before the first character that no tag can have. A match
# that turns out to be no tag is text and is not read again, so one pass is enough for any text.
_ATTRIBUTES = r"""(?:[^\s"'<>/=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'=<>`]++))?+|[\s/])*+"""
_TOKEN = re.compile(
    r"(?P<comment><!--.*?(?:-->|\Z))|(?P<other><!\[CDATA\[.*?(?:\]\]>|\Z)|<[!?][^>]*(?:>|\Z))"
    rf"|<(?P<close>/?)(?P<name>[a-zA-Z][^\s/<>]*+)(?P<attributes>{_ATTRIBUTES})(?P<end>>?)",
    re.S,
)
_ATTRIBUTE = re.compile(r"""(?P<name>[^\s"'<>/=]+)\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')""")


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


INLINE_TAGS = _names(
    "a abbr acronym b bdi bdo big br cite code data del dfn em font i img input ins kbd label mark q rp rt ruby s samp "
    "small span strike strong sub sup time tt u var wbr"
)
VOID_TAGS = _names("area base br col embed hr img input link meta param source track wbr")
RAW_TEXT_TAGS = _names("script style textarea title noscript xmp iframe")  # no tags are read inside them
SKIPPED_TAGS = _names("script style textarea noscript xmp iframe pre svg math object template")
CODE_TAGS = _names("code kbd samp var tt")  # inline, and not prose
PROSE_ATTRIBUTES = _names("alt title placeholder aria-label aria-description label summary")
PROSE_METADATA = _names("description keywords og:title og:description twitter:title twitter:description")  # of <meta>


class Token(NamedTuple):
    """A tag, or text between tags."""

    span: Span
    name: str = ""  # of a tag, in lower case; "!" for comments and declarations; empty for text
    closes: bool = False
    attributes: Span = (0, 0)


def tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """Yield the tags and the text between them; a `<` that begins no tag is text."""
    position = searched = start
    while position < end:
        check_cancelled()
        match = _TOKEN.search(text, searched, end)
        if match is None:
            break
        searched = match.end()
        if match["end"] == "":
            continue
        if match.start() > position:
            yield Token((position, match.start()))
        position = match.end()
        if match["name"] is None:
            yield Token(match.span(), "!")
            continue
        name = match["name"].lower()
        yield Token(match.span(), name, match["close"] == "/", match.span("attributes"))
        if name in RAW_TEXT_TAGS and match["close"] != "/":
            closing = re.compile(rf"</{re.escape(name)}\b", re.I).search(text, position, end)
            text_end = closing.start() if closing else end
            if text_end > position:
                yield Token((position, text_end))
            searched = position = text_end
    if position < end:
        yield Token((position, end))


def parse(text: str, start: int = 0, end: int | None = None) -> list[Unit]:
    """Return the units of a page, or of a part of a text."""
    reader = _Reader(text)
    for token in tokens(text, start, len(text) if end is None else end):
        reader.add_token(token)
    reader.end_block()
    return reader.units


class _Reader:
    """The units read so far, and the pieces of the current block."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.units: list[Unit] = []
        self.pieces: list[Piece] = []
        self.skipped = ""  # the name of the element around the current token that is not translated
        self.depth = 0  # open elements of that name
        self.atom: Token | None = None  # the start of that element if it is inline, and stays as an atom

    def end_block(self) -> None:
        """Make a unit of the pieces of the current block."""
        if (unit := make_unit(self.pieces, _escape)) is not None:
            self.units.append(unit)
        self.pieces = []

    def add_token(self, token: Token) -> None:
        raw = self.text[slice(*token.span)]
        opens = bool(token.name) and not token.closes and token.name not in VOID_TAGS and not raw.endswith("/>")
        if self.depth:
            self._skip(token, opens)
        elif not token.name:
            self.pieces += text_pieces(self.text, token.span, unescape_references)
        elif opens and (token.name in SKIPPED_TAGS or token.name in CODE_TAGS or _is_excluded(self.text, token)):
            self.skipped, self.depth = token.name, 1
            self.atom = token if token.name in INLINE_TAGS else None
            if self.atom is None:
                self.end_block()
        else:
            self.units += _attribute_units(self.text, token)
            if (token.name in INLINE_TAGS and token.name != "br") or raw.startswith("<!--"):
                kind: Kind = "close" if token.closes else "open" if opens else "single"
                self.pieces.append(Piece(token.span, kind=kind))
            else:
                self.end_block()

    def _skip(self, token: Token, opens: bool) -> None:
        """Skip a token inside an element that is not translated; at the end of an inline one, add it as an atom."""
        if token.name == self.skipped:
            self.depth += 1 if opens else -1 if token.closes else 0
        if self.depth == 0 and self.atom is not None:
            span = self.atom.span[0], token.span[1]
            inner = tokens(self.text, self.atom.span[1], token.span[0])
            text = unescape_references("".join(self.text[slice(*inside.span)] for inside in inner if not inside.name))
            self.pieces.append(Piece(span, text, "atom") if text.strip() else Piece(span, kind="single"))


def _is_excluded(text: str, token: Token) -> bool:
    """Return whether attributes of a tag exclude its element from translation."""
    values = {match["name"].lower(): _value(match) for match in _ATTRIBUTE.finditer(text, *token.attributes)}
    return values.get("translate") == "no" or "notranslate" in values.get("class", "").split()


def _attribute_units(text: str, token: Token) -> list[Unit]:
    """Return the attributes of a tag that people read as units."""
    attributes = {match["name"].lower(): match for match in _ATTRIBUTE.finditer(text, *token.attributes)}
    prose = [match for name, match in attributes.items() if name in PROSE_ATTRIBUTES]
    names = {_value(attributes[key]).lower() for key in ("name", "property") if key in attributes}
    if token.name == "meta" and not names.isdisjoint(PROSE_METADATA) and "content" in attributes:
        prose.append(attributes["content"])
    units = []
    for match in prose:
        span = match.span("double" if match["double"] is not None else "single")
        if unit := make_unit(text_pieces(text, span, unescape_references), escape):
            units.append(unit)
    return units


def _value(attribute: re.Match[str]) -> str:
    return attribute["double"] if attribute["double"] is not None else attribute["single"]


def _escape(text: str) -> str:
    return escape(text, quote=False)
