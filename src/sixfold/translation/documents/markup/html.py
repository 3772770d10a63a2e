"""HTML: the text of blocks, with the inline tags inside it, and the attributes that people read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from typing import NamedTuple

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.units import Kind, Piece, Span, Unit, make_unit, text_pieces, unescape_references
from sixfold.translation.protection import Edit, apply_edits

# Possessive quantifiers (++) never backtrack, and a match ends before the first character that no tag can have. A match
# that turns out to be no tag is text and is not read again, so one pass is enough for any text.
_ATTRIBUTES = r"""(?:[^\s"'<>/=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'=<>`]++))?+|[\s/])*+"""
_TOKEN = re.compile(
    r"(?P<comment><!--.*?(?:-->|\Z))|(?P<other><!\[CDATA\[.*?(?:\]\]>|\Z)|<[!?][^>]*(?:>|\Z))"
    rf"|<(?P<close>/?)(?P<name>[a-zA-Z][^\s/<>]*+)(?P<attributes>{_ATTRIBUTES})(?P<end>>?)",
    re.S,
)
_ATTRIBUTE = re.compile(
    r"""(?P<name>[^\s"'<>/=]++)(?:\s*+=\s*+(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'=<>`]++)))?+"""
)


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


INLINE_TAGS = _names(
    "a abbr acronym b bdi bdo big br cite code data del dfn em font i img input ins kbd label mark q rp rt ruby s samp "
    "small span strike strong sub sup time tt u var wbr"
)
VOID_TAGS = _names("area base br col embed hr img input link meta param source track wbr")
RAW_TEXT_TAGS = _names("script style textarea title xmp iframe")  # no tags are read inside them
SKIPPED_TAGS = _names("script style textarea xmp iframe pre math object")
CODE_TAGS = _names("code kbd samp var tt math")  # inline, and not prose
SVG_TEXT_TAGS = _names("title desc")
BUTTON_TYPES = _names("submit button reset")
LANGUAGE_ATTRIBUTES = _names("lang xml:lang dir")  # of <html>
RIGHT_TO_LEFT = _names("ar arc ckb dv fa ha-arab he iw ks ku-arab ps sd ug ur yi")  # languages
PROSE_ATTRIBUTES = _names("alt title placeholder aria-label aria-description label summary")
_NEVER_TRANSLATED = SKIPPED_TAGS | CODE_TAGS | {"svg"}  # the title of a drawing is
_INSIDE_PARAGRAPHS = INLINE_TAGS | SKIPPED_TAGS | {"", "!", "svg", "pre", "template", "noscript"}
_ENDED_BY_BLOCKS = (INLINE_TAGS | {"p"}) - {
    "ins",
    "del",
    "a",
}  # a paragraph needs no end tag, and others lack theirs by mistake
_INLINE_OBJECTS = _names("svg math")
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


class _Level(NamedTuple):
    """An element that is not translated, or one inside it that is."""

    name: str
    is_skipped: bool
    start: Token | None = None  # of an inline element that is not translated, which stays as it is


class _Reader:
    """The units read so far, and the pieces of the current block."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.units: list[Unit] = []
        self.pieces: list[Piece] = []
        self.outer_pieces: list[list[Piece]] = []  # of the blocks around a title of a drawing
        self.levels: list[_Level] = []
        self.depths: list[int] = []  # open elements with the name of each level, inside it

    def end_block(self) -> None:
        """Make a unit of the pieces of the current block."""
        if (unit := make_unit(self.pieces, _escape)) is not None:
            self.units.append(unit)
        self.pieces = []

    def add_token(self, token: Token) -> None:
        raw = self.text[slice(*token.span)]
        opens = token.name not in ("", "!", *VOID_TAGS) and not token.closes and not raw.endswith("/>")
        if self.levels and token.name == self.levels[-1].name and token.closes and self.depths[-1] == 1:
            self._close_level(token, token.span[1])
            return
        if self.levels and ends_early(self.levels[-1].name, token.name):
            self._close_level(token, token.span[0])
        elif self.levels and token.name == self.levels[-1].name:
            self.depths[-1] += 1 if opens else -1 if token.closes else 0
        if self.levels and self.levels[-1].is_skipped:
            if opens and resumes(self.levels[-1].name, token.name, _values(self.text, token)):
                self._open_level(token, is_skipped=False)
        elif not token.name:
            self.pieces += text_pieces(self.text, token.span, unescape_references)
        elif opens and (token.name in _NEVER_TRANSLATED or is_excluded(_values(self.text, token))):
            self._open_level(token, is_skipped=True)
        else:
            self._add_tag(token, raw, opens)

    def _add_tag(self, token: Token, raw: str, opens: bool) -> None:
        self.units += _attribute_units(self.text, token)
        if (token.name in INLINE_TAGS and token.name != "br") or raw.startswith("<!--"):
            kind: Kind = "close" if token.closes else "open" if opens else "single"
            self.pieces.append(Piece(token.span, kind=kind))
        else:
            self.end_block()

    def _open_level(self, token: Token, is_skipped: bool) -> None:
        is_inline = is_skipped and token.name in INLINE_TAGS | _INLINE_OBJECTS
        if not is_skipped:
            self.outer_pieces.append(self.pieces)
            self.pieces = []
        elif not is_inline:
            self.end_block()
        self.levels.append(_Level(token.name, is_skipped, token if is_inline else None))
        self.depths.append(1)

    def _close_level(self, token: Token, end: int) -> None:
        """Leave an element, which ends at a token.

        One that is inline and not translated becomes an atom, or a mark if it has no text.
        """
        level = self.levels.pop()
        self.depths.pop()
        if not level.is_skipped:
            self.end_block()
            self.pieces = self.outer_pieces.pop()
        elif level.start is not None:
            span = level.start.span[0], end
            inner = tokens(self.text, level.start.span[1], token.span[0])
            text = unescape_references("".join(self.text[slice(*inside.span)] for inside in inner if not inside.name))
            is_mark = level.name == "svg" or not text.strip()
            self.pieces.append(Piece(span, kind="single") if is_mark else Piece(span, text, "atom"))
        if self.levels and self.levels[-1].name == level.name:
            self.depths[-1] -= 1


def ends_early(outer: str, name: str) -> bool:
    """Return whether a tag ends an element around it, with the name `outer`, that lacks its end tag."""
    return outer in _ENDED_BY_BLOCKS and name not in _INSIDE_PARAGRAPHS


def is_excluded(values: Mapping[str, str]) -> bool:
    """Return whether the attributes of a tag exclude its element from translation."""
    return values.get("translate", "").lower() == "no" or "notranslate" in values.get("class", "").split()


def resumes(outer: str, name: str, values: Mapping[str, str]) -> bool:
    """Return whether an element is translated although the one around it, with the name `outer`, is not."""
    if outer == "svg":
        return name in SVG_TEXT_TAGS
    return outer not in _NEVER_TRANSLATED and "translate" in values and values["translate"].lower() in ("", "yes")


def prose_attributes(name: str, values: Mapping[str, str]) -> frozenset[str]:
    """Return the names of those attributes of a tag that people read, and that are translated."""
    prose = PROSE_ATTRIBUTES.intersection(values)
    if name == "meta":
        names = {values.get(key, "").lower() for key in ("name", "property")}
        return prose if names.isdisjoint(PROSE_METADATA) else prose | {"content"}
    is_button = name == "input" and values.get("type", "").lower() in BUTTON_TYPES
    return prose | {"value"} if is_button else prose


def _attribute_units(text: str, token: Token) -> list[Unit]:
    """Return the attributes of a tag that people read as units."""
    if token.closes or token.attributes[0] == token.attributes[1]:
        return []
    attributes: dict[str, re.Match[str]] = {}
    for match in _ATTRIBUTE.finditer(text, *token.attributes):
        attributes.setdefault(match["name"].lower(), match)
    prose = prose_attributes(token.name, {name: _value(match) for name, match in attributes.items()})
    units = []
    for name, match in attributes.items():
        quote = next((group for group in ("double", "single", "bare") if match[group] is not None), None)
        if name not in prose or quote is None:
            continue
        if unit := make_unit(text_pieces(text, match.span(quote), unescape_references), escape):
            units.append(replace(unit, around=('"', '"')) if quote == "bare" else unit)
    return units


def _values(text: str, token: Token) -> dict[str, str]:
    """Return the attributes of a tag by name."""
    values: dict[str, str] = {}
    for match in _ATTRIBUTE.finditer(text, *token.attributes):
        values.setdefault(match["name"].lower(), _value(match))
    return values


def _value(attribute: re.Match[str]) -> str:
    return unescape_references(attribute["double"] or attribute["single"] or attribute["bare"] or "")


def set_language(text: str, code: str) -> str:
    """Write the target language into the tag of a page, with the direction of its script."""
    for token in tokens(text, 0, len(text)):
        if token.name == "html" and not token.closes:
            break
        if token.name not in ("", "!"):
            return text
    else:
        return text
    attributes = {match["name"].lower(): match for match in _ATTRIBUTE.finditer(text, *token.attributes)}
    direction = "rtl" if code.lower() in RIGHT_TO_LEFT or code.lower().split("-")[0] in RIGHT_TO_LEFT else "ltr"
    wanted = {"lang": code}
    if "xml:lang" in attributes:
        wanted["xml:lang"] = code
    if "dir" in attributes or direction == "rtl":
        wanted["dir"] = direction
    edits = [Edit(attributes[name].span(), f'{name}="{value}"') for name, value in wanted.items() if name in attributes]
    added = "".join(f' {name}="{value}"' for name, value in wanted.items() if name not in attributes)
    edits.append(Edit((token.attributes[0], token.attributes[0]), added))
    return apply_edits(text, sorted(edits))


def _escape(text: str) -> str:
    return escape(text, quote=False)
