"""Manual pages in roff, with the macros of man or mdoc: their running text and headings; macros and examples stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents import seams
from sixfold.translation.documents.markup.man_fonts import MACRO_SIGN, mark_macros, pair_fonts, write_runs
from sixfold.translation.documents.markup.man_syntax import (
    DEFINITIONS,
    ESCAPE,
    HEADINGS,
    INLINE_MACROS,
    KEPT_HEADING,
    MACRO,
    TAGGED,
    VERBATIM,
    character_of,
)
from sixfold.translation.documents.units import Piece, Span, Unit, make_unit, text_pieces
from sixfold.translation.protection import protected_spans

_NAME_SECTION = re.compile(r"\s*\"?(?:NAME|名称|名字|名稱)\"?\s*", re.I)
_SYNOPSIS_SECTION = re.compile(r"\s*\"?(?:SYNOPSIS|概要|概述|总览|用法|語法|语法)\"?\s*", re.I)
_NAME_LINE = re.compile(r"(?P<names>.*?(?:\\-|\\\(em|\s--?|\\\[em\])[ \t]+)(?=\S)")
_QUOTED = re.compile(r'[ \t]*"(?P<quoted>(?:[^"\n]|"")*)"')
_PLAIN_WORDS = re.compile(r"[^\\\n]*[^\W\d_]{2,}[^\\\n]*\s[^\\\n]*[^\W\d_]{2,}[^\\\n]*")
_UNSAFE = re.compile(r"\\[cz{}]|\\\"|\\#|\\$")  # of what a line of text cannot be moved
_LINE_BREAK = re.compile(r"[ \t]*\n\s*")
_OPTION = re.compile(
    r"(?:(?<![^\s(\[\"'，、：；。（「《一-鿿])\\-|(?<![^\s(\[])-)[A-Za-z][A-Za-z\d_]+(?![\w\\-])", re.ASCII
)
_SPECIAL = {"\\": "\\e", "\u00a0": "\\ ", "“": "\\(lq", "”": "\\(rq"}


class _Line(NamedTuple):
    span: Span
    control: str  # empty for text
    name: str  # of the macro
    rest: int  # where the arguments of the macro begin


def parse(text: str) -> list[Unit]:
    """Return the units of a manual page."""
    reader = _Reader(text)
    for line in _visible_lines(text):
        reader.add(line)
    reader.end_paragraph()
    return reader.units


def _lines(text: str) -> Iterator[_Line]:
    for match in re.finditer(r"[^\n]+|(?<=\n)(?=\n)", text):
        check_cancelled()
        macro = MACRO.match(text, *match.span()) if match[0] else None
        if macro is None:
            yield _Line(match.span(), "", "", match.start())
        else:
            yield _Line(match.span(), macro["control"], macro["name"] or "", macro.start("rest"))


def _visible_lines(text: str) -> Iterator[_Line]:
    """Yield the lines of a page; one inside a block that stays as it is looks like an empty macro."""
    end = ""  # the macro that ends the current block
    depth = 0  # of braces
    for line in _lines(text):
        raw = text[slice(*line.span)]
        depth = max(0, depth + raw.count("\\{") - raw.count("\\}")) if "\\" in raw else depth
        hidden = line._replace(control=".", name="", rest=line.span[1])
        if end:
            end = "" if line.name == end or (end in ("Ed", "YS") and line.name in HEADINGS) else end
            yield hidden if end or line.name not in HEADINGS else line
        elif depth or "\\}" in raw or line.name.startswith(("if", "ie", "el", "while")):
            yield hidden
        elif line.name in DEFINITIONS and line.control:
            words = raw.split()
            index = 1 if line.name == "ig" else 2
            end = words[index].lstrip(".") if len(words) > index else "."
            yield hidden
        elif line.name in VERBATIM:
            end = VERBATIM[line.name]
            yield hidden
        elif line.name == "Bd" and re.search(r"-(?:literal|unfilled)\b", raw):
            end = "Ed"
            yield hidden
        else:
            yield line


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.units: list[Unit] = []
        self.lines: list[_Line] = []  # of the current paragraph: text, and macros inside sentences
        self.section = ""  # name or synopsis, while in one of these
        self.heading = False  # the next line is the heading of a section
        self.tag = False  # the next line is a tag
        self.macros_end = 0  # the macro lines that end a paragraph

    def add(self, line: _Line) -> None:
        """Add the next line of the page."""
        raw = self.text[slice(*line.span)]
        if self.heading and not line.control:
            self._add_heading(line.span)
        elif not line.control:
            self._add_text(line, raw)
        elif line.name in HEADINGS:
            self.end_paragraph()
            self.section = ""
            self.heading = not raw[line.rest - line.span[0] :].strip()
            if not self.heading:
                self._add_heading((line.rest, line.span[1]))
        elif line.name in INLINE_MACROS and self.section == "" and not _UNSAFE.search(raw):
            if self.tag:
                self.tag = False
            else:
                self.lines.append(line)
        else:
            self._add_macro(line, raw)

    def _add_macro(self, line: _Line, raw: str) -> None:
        if line.name in ("IX", '\\"') or raw.startswith(('.\\"', "'\\\"", '."')):
            if self.lines:
                self.end_paragraph()
            return
        self.end_paragraph()
        self.tag = line.name in TAGGED or (self.tag and line.name in ("PD", "ns", "sp", "br"))
        if line.name == "IP":
            quoted = _QUOTED.match(self.text, line.rest, line.span[1])
            if quoted and _PLAIN_WORDS.fullmatch(quoted["quoted"]):
                self._add_argument(quoted.span("quoted"))
        elif line.name == "Nd" and line.rest < line.span[1]:
            self._add_quoted_or_plain((line.rest, line.span[1]))

    def _add_heading(self, span: Span) -> None:
        content = self.text[slice(*span)]
        self.heading = False
        if _NAME_SECTION.fullmatch(content):
            self.section = "name"
        elif _SYNOPSIS_SECTION.fullmatch(content):
            self.section = "synopsis"
        if not KEPT_HEADING.fullmatch(content):
            self._add_quoted_or_plain(span)

    def _add_quoted_or_plain(self, span: Span) -> None:
        """Add the arguments of a macro as a unit; those with quotation marks only if they are one string."""
        content = self.text[slice(*span)]
        quoted = _QUOTED.match(content)
        if quoted and not content[quoted.end() :].strip():
            start = span[0] + quoted.start("quoted")
            self._add_argument((start, start + len(quoted["quoted"])))
        elif '"' not in content:
            self._add_argument(span)

    def _add_argument(self, span: Span) -> None:
        if _UNSAFE.search(self.text, *span):
            return
        pieces, has_runs = pair_fonts(self.text, self._pieces(span))
        unit = make_unit(pieces, seams.mark_edges(_escape_argument))
        if unit is not None:
            self.units.append(replace(unit, layout=write_runs if has_runs else mark_macros))

    def _add_text(self, line: _Line, raw: str) -> None:
        if not raw.strip() or self.section == "synopsis":
            self.end_paragraph()
        elif self.tag:
            self.tag = False
            if _PLAIN_WORDS.fullmatch(raw):
                self.lines.append(line)
            self.end_paragraph()
        elif self.section == "name":
            names = _NAME_LINE.match(raw)
            if names and not _UNSAFE.search(raw):
                start = line.span[0] + names.end()
                self.lines = [line._replace(span=(start, line.span[1]))]
            elif self.lines:  # the description goes on
                self.lines.append(line)
        elif raw[0] in " \t" or _UNSAFE.search(raw):
            self.end_paragraph()
            if not _UNSAFE.search(raw) and "\t" not in raw:
                self.lines.append(line)
                self.end_paragraph()
        else:
            self.lines.append(line)

    def end_paragraph(self) -> None:
        """Make a unit of the lines of the current paragraph."""
        lines, self.lines = self.lines, []
        while lines and lines[-1].control:
            lines.pop()
        if not any(not line.control for line in lines):
            return
        pieces: list[Piece] = []
        position = lines[0].span[0]
        for line in lines:
            start, end = line.span
            if position < start:
                pieces.append(Piece((position, start), " "))
            position = end
            if line.control:
                position = self.text.index("\n", end) + 1
                pieces.append(Piece((start, position), self.text[start:position], "atom"))
                pieces.append(Piece((position, position), " "))
            else:
                pieces += self._pieces(line.span)
        pieces, has_runs = pair_fonts(self.text, pieces)
        unit = make_unit(pieces, escape)
        if unit is not None:
            self.units.append(replace(unit, layout=_layout_runs if has_runs else _layout_marks))

    def _pieces(self, span: Span) -> list[Piece]:
        """Return the pieces of a line of text: words, changes of the font, and other escapes."""
        pieces: list[Piece] = []
        position = span[0]
        start = position  # of the text since the last mark
        for match in ESCAPE.finditer(self.text, *span):
            if character_of(match) is not None:
                continue
            pieces += self._text_pieces((start, match.start()))
            pieces.append(Piece(match.span(), kind="single"))
            start = match.end()
        return pieces + self._text_pieces((start, span[1]))

    def _text_pieces(self, span: Span) -> list[Piece]:
        """Return the pieces of a text, in which a word after `\\-` is an option, which is an atom."""
        pieces: list[Piece] = []
        position = span[0]
        for option in _OPTION.finditer(self.text, *span):
            pieces += text_pieces(self.text, (position, option.start()), _decode)
            pieces.append(Piece(option.span(), option[0], "atom"))
            position = option.end()
        return pieces + text_pieces(self.text, (position, span[1]), _decode)


def _decode(text: str) -> str:
    return ESCAPE.sub(lambda match: character_of(match) or "", text) if "\\" in text else text


def _escape(text: str) -> str:
    """Return a text with escapes for characters that roff reads otherwise; the hyphens of options are minus signs."""
    parts, position = [], 0
    for start, end in protected_spans(text):
        parts += [_escape_characters(text[position:start]), _escape_characters(text[start:end]).replace("-", "\\-")]
        position = end
    return "".join([*parts, _escape_characters(text[position:])])


def _escape_characters(text: str) -> str:
    return "".join(_SPECIAL.get(char, char) for char in text)


def _escape_argument(text: str) -> str:
    return _escape(text).replace('"', "\\(dq").replace("\n", " ")


escape = seams.mark_edges(lambda text: _escape(text.replace("\n", " ")))


def _layout_runs(written: str) -> str:
    return _layout_lines(write_runs(written))


def _layout_marks(written: str) -> str:
    return _layout_lines(mark_macros(written))


def _layout_lines(text: str) -> str:
    """Put each macro on a line of its own, and keep text from looking like a macro."""
    lines = _LINE_BREAK.sub("\n", text).strip("\n").split("\n")
    return "\n".join(
        line[1:] if line.startswith(MACRO_SIGN) else f"\\&{line}" if line.startswith((".", "'")) else line
        for line in lines
    )
