"""HTML: the tags, comments and code of a page, read as the HTML standard tells browsers to read them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import NamedTuple

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents import xml
from sixfold.translation.documents.markup.html import (
    CODE_TAGS,
    INLINE_TAGS,
    LANGUAGE_ATTRIBUTES,
    RAW_TEXT_TAGS,
    SKIPPED_TAGS,
    VOID_TAGS,
    ends_early,
    is_excluded,
    prose_attributes,
    resumes,
)
from sixfold.translation.documents.structure import Structure, StructureBuilder
from sixfold.translation.documents.units import UnreadableError, unescape_references

_SPACE = frozenset(" \t\n\r\f")
_NAME_ENDS, _ATTRIBUTE_ENDS, _VALUE_ENDS = _SPACE | {"/", ">"}, _SPACE | {"/", ">", "="}, _SPACE | {">"}
_DECLARATIONS = ("!", "?")
_VERBATIM_TAGS = (CODE_TAGS | SKIPPED_TAGS) - {"svg", "object"}
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class _Event(NamedTuple):
    """A start tag, an end tag, a text, a comment, or anything else, such as a declaration."""

    kind: str  # start, end, text, comment or other
    value: str  # the name of a tag in lower case, or the text
    attributes: Mapping[str, str] = {}
    empty: bool = False  # <br/>


def structure(text: str) -> Structure:
    """Return the tags of a page with their attributes, the comments, and the texts that must stay.

    An inline tag is written with the inline element around it, and may change its place within its block. A page that
    is well-formed XML must stay so.
    """
    reader = _Reader()
    for event in _events(text):
        check_cancelled()
        reader.add(event)
    items = reader.build()
    return ["XML", *items] if is_xml(text) else items


def is_xml(text: str) -> bool:
    """Return whether a page is well-formed XHTML."""
    if not (text.lstrip().startswith("<?xml") or "http://www.w3.org/1999/xhtml" in text[:2000]):
        return False
    try:
        xml.check(text)
    except UnreadableError:
        return False
    return True


class _Frame:
    """An element whose text stays as it is, or one inside it whose text is translated again."""

    def __init__(self, name: str, verbatim: bool) -> None:
        self.name, self.verbatim, self.depth = name, verbatim, 1


class _Inline(NamedTuple):
    """An open inline element."""

    name: str
    shown: str  # its tag
    path: str  # stands for the tags of all inline elements around it, and its own


class _Reader:
    def __init__(self) -> None:
        self._builder = StructureBuilder()
        self._inline: list[_Inline] = []  # the open elements of the current block
        self._frames: list[_Frame] = []

    def add(self, event: _Event) -> None:
        if event.kind == "text":
            if self._frames and self._frames[-1].verbatim and event.value.strip():
                self._builder.inside(f"the text {event.value!r}")
        elif event.kind == "comment":
            self._builder.inside(event.value)
        elif event.kind == "other":
            self._builder.block(event.value)
        elif event.kind == "start":
            self._start(event)
        else:
            self._end(event.value)

    def build(self) -> Structure:
        return self._builder.build()

    def _end_early(self, name: str) -> None:
        if self._frames and ends_early(self._frames[-1].name, name):
            self._pop_frame()

    def _pop_frame(self) -> None:
        popped = self._frames.pop()
        if self._frames and self._frames[-1].name == popped.name:
            self._frames[-1].depth -= 1

    def _start(self, event: _Event) -> None:
        self._end_early(event.value)
        name, values = event.value, event.attributes
        prose = prose_attributes(name, values)
        left_out = LANGUAGE_ATTRIBUTES if name == "html" else frozenset()
        shown = "".join(
            f" {key}" + ("" if key in prose else f"={value!r}") for key, value in values.items() if key not in left_out
        )
        if name in INLINE_TAGS and name != "br":
            tag = f"<{name}{shown}>"
            self._builder.inside(f"{self._around()}{tag}")
            if name not in VOID_TAGS and not event.empty:
                path = self._inline[-1].path if self._inline else ""
                self._inline.append(_Inline(name, tag, blake2b(f"{path}{tag}".encode(), digest_size=4).hexdigest()))
        else:
            if name != "br":
                self._inline.clear()
            self._builder.block(f"<{name}{shown}>")
        if name not in VOID_TAGS and not event.empty:
            self._open_frame(name, values)

    def _open_frame(self, name: str, values: Mapping[str, str]) -> None:
        top = self._frames[-1] if self._frames else None
        if top is not None and top.name == name:
            top.depth += 1
        in_verbatim = top is not None and top.verbatim
        if (name in _VERBATIM_TAGS or name == "svg" or is_excluded(values)) and not in_verbatim:
            self._frames.append(_Frame(name, True))
        elif top is not None and in_verbatim and resumes(top.name, name, values):
            self._frames.append(_Frame(name, False))

    def _end(self, name: str) -> None:
        if not self._frames or self._frames[-1].name != name:
            self._end_early(name)
        if self._frames and self._frames[-1].name == name:
            self._frames[-1].depth -= 1
            if self._frames[-1].depth == 0:
                self._pop_frame()
        if name in INLINE_TAGS and name != "br":
            if self._inline and self._inline[-1].name == name:
                self._inline.pop()
            self._builder.inside(f"{self._around()}</{name}>")
        else:
            self._inline.clear()
            self._builder.block(f"</{name}>")

    def _around(self) -> str:
        """Return which inline elements are around the position: the innermost one, and what stands for all of them."""
        if not self._inline:
            return ""
        return f"{self._inline[-1].shown} " + (f"({self._inline[-1].path}) " if len(self._inline) > 1 else "")


def _events(text: str) -> Iterator[_Event]:
    """Yield what a page consists of."""
    ends = _Ends(text)
    position = start = 0
    while (position := text.find("<", position)) >= 0:
        following = text[position + 1 : position + 2]
        is_end = following == "/" and text[position + 2 : position + 3] in _LETTERS
        if following not in _LETTERS and following not in _DECLARATIONS and not is_end:
            position += 1
            continue
        if position > start:
            yield _Event("text", text[start:position])
        if following in _DECLARATIONS:
            event, position = _declaration(text, position, ends)
        else:
            event, position = _tag(text, position, ends)
        yield event
        if event.kind == "start" and event.value in RAW_TEXT_TAGS and not event.empty:
            closing = _raw_text_end(text, event.value, position)
            if closing > position:
                yield _Event("text", text[position:closing])
            position = closing
        start = position
    if start < len(text):
        yield _Event("text", text[start:])


class _Ends:
    """Searches a text for what ends something; a search that fails is not made again, so all of them are linear."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._missing: set[str] = set()

    def after(self, end: str, position: int) -> int:
        """Return where an end begins at or after a position, or where the text ends."""
        place = -1 if end in self._missing else self._text.find(end, position)
        if place < 0:
            self._missing.add(end)
        return place if place >= 0 else len(self._text)


def _declaration(text: str, position: int, ends: _Ends) -> tuple[_Event, int]:
    kinds = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<", ">"))
    opening, closing = next(kind for kind in kinds if text.startswith(kind[0], position))
    end = ends.after(closing, position + len(opening)) + len(closing)
    return _Event("comment" if closing == "-->" else "other", text[position:end]), end


def _tag(text: str, position: int, ends: _Ends) -> tuple[_Event, int]:
    """Return the tag at a position and where it ends; one that the end of the text cuts off is no tag."""
    size = len(text)
    kind = "end" if text[position + 1] == "/" else "start"
    position += 2 if kind == "end" else 1
    name_end = position
    while name_end < size and text[name_end] not in _NAME_ENDS:
        name_end += 1
    name, position = text[position:name_end].lower(), name_end
    attributes: dict[str, str] = {}
    while position < size and text[position] != ">":
        if text[position] in _SPACE or text[position] == "/":
            position += 1
            continue
        key, value, position = _attribute(text, position, ends)
        attributes.setdefault(key, unescape_references(value))
    if position >= size:
        return _Event("other", "a tag without an end"), size
    return _Event(kind, name, attributes, text[position - 1] == "/"), position + 1


def _attribute(text: str, position: int, ends: _Ends) -> tuple[str, str, int]:
    """Return the name and the value of the attribute at a position, and where it ends."""
    size = len(text)
    end = position + 1  # even = may begin a name
    while end < size and text[end] not in _ATTRIBUTE_ENDS:
        end += 1
    key, position = text[position:end].lower(), end
    while position < size and text[position] in _SPACE:
        position += 1
    if position >= size or text[position] != "=":
        return key, "", position
    position += 1
    while position < size and text[position] in _SPACE:
        position += 1
    quote = text[position : position + 1]
    if quote in ("'", '"') and quote:
        end = ends.after(quote, position + 1)
        return key, text[position + 1 : end], end + 1
    end = position
    while end < size and text[end] not in _VALUE_ENDS:
        end += 1
    return key, text[position:end], end


def _raw_text_end(text: str, name: str, position: int) -> int:
    """Return where the text of an element ends in which no tags are read."""
    match = re.compile(rf"</{re.escape(name)}(?=[\s/>])", re.I).search(text, position)
    return match.start() if match else len(text)
