"""XML: the tags and texts of a document with their positions, and its structure as expat reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape
from typing import NamedTuple
from xml.parsers import expat

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.structure import Structure, StructureBuilder
from sixfold.translation.documents.units import Span, UnreadableError

MAX_DEPTH = 1000  # elements inside each other
_TOKEN = re.compile(
    r"(?P<other><!--.*?-->|<\?.*?\?>|<!DOCTYPE(?:[^<>\[]|\[[^\]]*+\])*+>)|<!\[CDATA\[(?P<cdata>.*?)\]\]>"
    r"""|<(?P<close>/?)(?P<name>[^\s/<>!?"'=&]++)(?P<attributes>(?:[^"'<>/]|"[^"<]*+"|'[^'<]*+'|/(?!>))*+)(?P<empty>/?)>""",
    re.S,
)
_ATTRIBUTE = re.compile(r"""(?P<name>[^\s"'<>/=]+)\s*=\s*(?:"(?P<double>[^"<]*)"|'(?P<single>[^'<]*)')""")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")  # XML 1.0 has no such characters


class XmlToken(NamedTuple):
    """A tag, a text between tags, a CDATA section, or anything else, such as a comment."""

    span: Span
    kind: str  # open, close, empty, text, cdata or other
    name: str = ""  # of a tag, with its prefix
    attributes: Span = (0, 0)  # of a tag
    content: Span = (0, 0)  # of a CDATA section


def tokens(text: str, start: int = 0, end: int | None = None) -> Iterator[XmlToken]:
    """Yield the tokens of a document that expat has accepted, or of a part of one."""
    end = len(text) if end is None else end
    position = start
    for match in _TOKEN.finditer(text, start, end):
        check_cancelled()
        if match.start() > position:
            yield XmlToken((position, match.start()), "text")
        position = match.end()
        if match["name"] is not None:
            kind = "close" if match["close"] else "empty" if match["empty"] else "open"
            yield XmlToken(match.span(), kind, match["name"], match.span("attributes"))
        elif match["cdata"] is not None:
            yield XmlToken(match.span(), "cdata", content=match.span("cdata"))
        else:
            yield XmlToken(match.span(), "other")
    if position < end:
        yield XmlToken((position, end), "text")


def attributes(text: str, token: XmlToken) -> dict[str, re.Match[str]]:
    """Return the attributes of a tag by name; `attribute_span` is where a value is."""
    return {match["name"]: match for match in _ATTRIBUTE.finditer(text, *token.attributes)}


def attribute_span(attribute: re.Match[str]) -> Span:
    """Return the span of the value of an attribute in the document."""
    return attribute.span("double" if attribute["double"] is not None else "single")


def local_name(name: str) -> str:
    """Return a name without its prefix."""
    return name.rpartition(":")[2]


def escape_text(text: str) -> str:
    """Return a text as XML, without the characters that XML cannot have."""
    return escape(_FORBIDDEN.sub("", text), quote=False)


def escape_attribute(text: str) -> str:
    """Return a text as the value of an attribute, between quotation marks of either kind."""
    return escape(_FORBIDDEN.sub("", text), quote=True)


def check(text: str) -> None:
    """Raise UnreadableError if a text is no well-formed XML document."""
    parse_events(text, lambda _name, _attributes: None, lambda _name: None, lambda _text: None)


def parse_events(
    text: str,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    characters: Callable[[str], None],
) -> None:
    """Call functions for the elements and texts of a document, in order; names have their prefixes.

    Entities that only an external DTD defines are left out. Raise UnreadableError if the document is not well-formed.
    """
    depth = 0

    def start_element(name: str, values: dict[str, str]) -> None:
        nonlocal depth
        check_cancelled()
        depth += 1
        if depth > MAX_DEPTH:
            raise UnreadableError(f"expected elements at most {MAX_DEPTH} deep", parser.CurrentLineNumber)
        start(name, values)

    def end_element(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(name)

    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.UseForeignDTD(True)  # so that an entity of a DTD that is not read is no error
    parser.ExternalEntityRefHandler = lambda *_: 1  # reads nothing
    parser.StartElementHandler, parser.EndElementHandler = start_element, end_element
    parser.CharacterDataHandler = characters
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        message = f"expected XML; column {error.offset + 1}: {expat.ErrorString(error.code)}"
        raise UnreadableError(message, error.lineno) from None


class XmlRules(NamedTuple):
    """What the structure of an XML format consists of."""

    is_inline: Callable[[str], bool] = lambda _name: False  # elements that may change places within their block
    ignored: frozenset[str] = frozenset()  # attributes that are left out: languages, and texts that are translated
    left_out: frozenset[str] = frozenset()  # elements that are left out with all that is in them
    verbatim: frozenset[str] = frozenset()  # elements whose text must stay


def structure(text: str, rules: XmlRules) -> Structure:
    """Return the elements of a document with their attributes, and the texts that must stay.

    An inline element is written with the inline elements around it, so that pairs stay inside each other.
    """
    builder = StructureBuilder()
    inline: list[str] = []  # the inline elements around the position
    skipped: list[str] = []  # the element that is left out, and those inside it
    verbatim: list[str] = []

    def start(name: str, values: dict[str, str]) -> None:
        if skipped or name in rules.left_out:
            skipped.append(name)
            return
        if name in rules.verbatim or verbatim:
            verbatim.append(name)
        shown = "".join(f' {key}="{value}"' for key, value in sorted(values.items()) if key not in rules.ignored)
        if rules.is_inline(name):
            inline.append(name)
            builder.inside(f"<{'> <'.join(inline)}{shown}>")
        else:
            builder.block(f"<{name}{shown}>")

    def end(name: str) -> None:
        if skipped:
            skipped.pop()
            return
        if verbatim:
            verbatim.pop()
        if rules.is_inline(name):
            inline.pop()
        else:
            builder.block(f"</{name}>")

    def characters(content: str) -> None:
        if verbatim and not skipped:
            builder.inside(f"the text {content!r}")

    parse_events(text, start, end, characters)
    return builder.build()
