"""Manual pages in roff: the macros and escapes of each paragraph, for comparison."""

from __future__ import annotations

import re

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.markup.man_syntax import (
    DEFINITIONS,
    ESCAPE,
    HEADINGS,
    INLINE_MACROS,
    KEPT_HEADING,
    ROMAN,
    VERBATIM,
    Fonts,
    character_of,
)
from sixfold.translation.documents.structure import Structure, StructureBuilder
from sixfold.translation.documents.units import UnreadableError

_MACRO_LINE = re.compile(r"^[.'][ \t]*[A-Za-z]", re.M)
TEXT_HINT = "translate a file of another kind with --format text"


def structure(text: str) -> Structure:
    """Return the macro lines of a page, the lines of examples, and the fonts and escapes in each paragraph.

    The macros inside sentences may change places, and lines of text may be joined. A font is written where it begins,
    with whatever escape, and where a paragraph ends in it.
    """
    if text.strip() and not _MACRO_LINE.search(text):
        raise UnreadableError("expected a man page; no line has a macro such as .SH or .Sh", hint=TEXT_HINT)
    reader = _Reader()
    for line in text.split("\n"):
        check_cancelled()
        reader.add(line)
    return reader.build()


class _Reader:
    def __init__(self) -> None:
        self._builder = StructureBuilder()
        self._ends: list[str] = []  # the macro that ends the block of examples around the line
        self._fonts = Fonts()

    def add(self, line: str) -> None:
        """Add the next line of the page."""
        name = _macro(line)
        if self._ends:
            self._builder.block(line)
            if name == self._ends[-1] or (name in HEADINGS and self._ends[-1] in ("Ed", "YS")):
                self._ends.pop()
        elif name is None:
            self._add_text(line)
        elif name in INLINE_MACROS:
            self._builder.inside(line.rstrip())
        elif name in HEADINGS or name in ("IP", "Nd"):
            self._end_paragraph()
            self._add_arguments(name, line)
        else:
            self._end_paragraph()
            self._builder.block(line)
            if (end := _block_end(name, line)) is not None:
                self._ends.append(end)

    def build(self) -> Structure:
        self._end_paragraph()
        return self._builder.build()

    def _end_paragraph(self) -> None:
        if self._fonts.current != ROMAN:
            self._builder.inside(f"ends in the font {self._fonts.current}")
        self._fonts = Fonts()

    def _add_arguments(self, name: str, line: str) -> None:
        """Add a macro with a translated argument, without the text of it."""
        heading = line.partition(name)[2]
        if name in HEADINGS and KEPT_HEADING.fullmatch(heading) and heading.isupper():  # 名称 may become "Name"
            self._builder.block(line)
            return
        quotes = re.findall(r'"', line)
        tail = line.rpartition('"')[2] if quotes else ""
        kind = "quoted" if quotes else "plain" if line[1:].strip() != name else ""
        self._builder.block(f".{name} {kind}{tail} {len(quotes)}")
        self._add_escapes(line)
        self._end_paragraph()

    def _add_text(self, line: str) -> None:
        if not line.strip():
            self._end_paragraph()
            self._builder.block("a blank line")
            return
        if line[0] in " \t":
            self._end_paragraph()
            self._builder.block(f"a line after {len(line) - len(line.lstrip())} spaces")
        self._add_escapes(line)

    def _add_escapes(self, line: str) -> None:
        comment = line.find('\\"')
        if comment >= 0:
            self._builder.inside(line[comment:])
            line = line[:comment]
        for match in ESCAPE.finditer(line):
            if match["font"] is not None:
                if self._fonts.set(match[0]) and self._fonts.current != ROMAN:
                    self._builder.inside(f"the font {self._fonts.current}")
            elif character_of(match) is None:
                self._builder.inside(match[0])
        if line.endswith("\\"):
            self._builder.inside("a line that goes on")


def _macro(line: str) -> str | None:
    """Return the name of the macro that a line calls; None if it is text."""
    if line[:1] not in (".", "'") or not line:
        return None
    words = line[1:].split(None, 1)
    return words[0].partition("\\")[0] if words else ""


def _block_end(name: str, line: str) -> str | None:
    words = line[1:].split()
    if name in VERBATIM:
        return VERBATIM[name]
    if name == "Bd" and ("-literal" in words or "-unfilled" in words):
        return "Ed"
    if name in DEFINITIONS:
        index = 1 if name == "ig" else 2
        return words[index].lstrip(".") if len(words) > index else "."
    return None
