"""HTML: the text between blocks, with inline tags kept inside it, and the attributes that people read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.units import Kind, Piece, Span, Unit, text_pieces, unescaped, unit_of

# Without a way back (++), and up to the first character that no tag has: what turns out to be no tag is text up to
# there, and is not read again, so that no text takes more than one pass.
_ATTRIBUTES = r"""(?:[^\s"'<>/=]++(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'=<>`]++))?+|[\s/])*+"""
_TOKEN = re.compile(
    r"(?P<comment><!--.*?(?:-->|\Z))|(?P<other><!\[CDATA\[.*?(?:\]\]>|\Z)|<[!?][^>]*(?:>|\Z))"
    rf"|<(?P<close>/?)(?P<name>[a-zA-Z][^\s/<>]*+)(?P<attributes>{_ATTRIBUTES})(?P<end>>?)",
    re.S,
)
_ATTRIBUTE = re.compile(r"""(?P<name>[^\s"'<>/=]+)\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')""")


def _names(written: str) -> frozenset[str]:
    return frozenset(written.split())


INLINE = _names(
    "a abbr acronym b bdi bdo big br cite code data del dfn em font i img input ins kbd label mark q rp rt ruby s samp "
    "small span strike strong sub sup time tt u var wbr"
)
VOID = _names("area base br col embed hr img input link meta param source track wbr")
RAW = _names("script style textarea title noscript xmp iframe")  # hold no tags
SKIPPED = _names("script style textarea noscript xmp iframe pre svg math object template")
KEPT = _names("code kbd samp var tt")  # inline, and not prose
READ = _names("alt title placeholder aria-label aria-description label summary")  # attributes
NAMED = _names("description keywords og:title og:description twitter:title twitter:description")  # of <meta>


class Token(NamedTuple):
    """A tag, or text between tags."""

    span: Span
    name: str = ""  # of a tag, in lower case; "!" for comments and declarations
    closes: bool = False
    attributes: Span = (0, 0)


def tokens(text: str, at: int, until: int) -> Iterator[Token]:
    """Tags and what is between them; a `<` that begins no tag is text."""
    read = at
    while at < until:
        check_cancelled()
        found = _TOKEN.search(text, read, until)
        if found is None:
            break
        read = found.end()
        if found["end"] == "":
            continue
        if found.start() > at:
            yield Token((at, found.start()))
        at = found.end()
        if found["name"] is None:
            yield Token(found.span(), "!")
            continue
        name = found["name"].lower()
        yield Token(found.span(), name, found["close"] == "/", found.span("attributes"))
        if name in RAW and found["close"] != "/":
            end = re.compile(rf"</{re.escape(name)}\b", re.I).search(text, at, until)
            stop = end.start() if end else until
            if stop > at:
                yield Token((at, stop))
            read = at = stop
    if at < until:
        yield Token((at, until))


def parse(text: str, start: int = 0, end: int | None = None) -> list[Unit]:
    """The units of a page, or of a part of a text."""
    reader = _Reader(text)
    for token in tokens(text, start, len(text) if end is None else end):
        reader.take(token)
    reader.end()
    return reader.units


class _Reader:
    """What has been read so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.units: list[Unit] = []
        self.pieces: list[Piece] = []
        self.around = ""  # the element that we are in whose text is none of ours, and how many of its name
        self.depth = 0
        self.kept: Token | None = None  # it is inline and stays as it is; else it is skipped

    def end(self) -> None:
        """Of a block."""
        if (unit := unit_of(self.pieces, _escape)) is not None:
            self.units.append(unit)
        self.pieces = []

    def take(self, token: Token) -> None:
        raw = self.text[slice(*token.span)]
        opens = bool(token.name) and not token.closes and token.name not in VOID and not raw.endswith("/>")
        if self.depth:
            self._pass_by(token, opens)
        elif not token.name:
            self.pieces += text_pieces(self.text, token.span, unescaped)
        elif opens and (token.name in SKIPPED or token.name in KEPT or _is_left_alone(self.text, token)):
            self.around, self.depth = token.name, 1
            self.kept = token if token.name in INLINE else None
            if self.kept is None:
                self.end()
        else:
            self.units += _attribute_units(self.text, token)
            if (token.name in INLINE and token.name != "br") or raw.startswith("<!--"):
                kind: Kind = "close" if token.closes else "open" if opens else "single"
                self.pieces.append(Piece(token.span, kind=kind))
            else:
                self.end()

    def _pass_by(self, token: Token, opens: bool) -> None:
        """Inside an element that is not translated."""
        if token.name == self.around:
            self.depth += 1 if opens else -1 if token.closes else 0
        if self.depth == 0 and self.kept is not None:
            span = self.kept.span[0], token.span[1]
            inner = tokens(self.text, self.kept.span[1], token.span[0])
            shown = unescaped("".join(self.text[slice(*each.span)] for each in inner if not each.name))
            self.pieces.append(Piece(span, shown, "atom") if shown.strip() else Piece(span, kind="single"))


def _is_left_alone(text: str, token: Token) -> bool:
    found = {each["name"].lower(): _value(each) for each in _ATTRIBUTE.finditer(text, *token.attributes)}
    return found.get("translate") == "no" or "notranslate" in found.get("class", "").split()


def _attribute_units(text: str, token: Token) -> list[Unit]:
    found = {each["name"].lower(): each for each in _ATTRIBUTE.finditer(text, *token.attributes)}
    wanted = [each for name, each in found.items() if name in READ]
    named = {_value(found[key]).lower() for key in ("name", "property") if key in found}
    if token.name == "meta" and not named.isdisjoint(NAMED) and "content" in found:
        wanted.append(found["content"])
    units = []
    for each in wanted:
        span = each.span("double" if each["double"] is not None else "single")
        if unit := unit_of(text_pieces(text, span, unescaped), escape):
            units.append(unit)
    return units


def _value(attribute: re.Match[str]) -> str:
    return attribute["double"] if attribute["double"] is not None else attribute["single"]


def _escape(text: str) -> str:
    return escape(text, quote=False)
