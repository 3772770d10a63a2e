"""reStructuredText: paragraphs, titles, lists, fields, notes; code, tables, comments and targets stay as they are."""

from __future__ import annotations

import re
from dataclasses import replace

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.markup import rst_syntax as syntax
from sixfold.translation.documents.markup.rst_inline import InlineReader, escape, layout
from sixfold.translation.documents.units import MAX_DEPTH, Unit, make_unit

_LINE = re.compile(r"[^\n]*")
_UNTRANSLATED_FIELDS = re.compile(r"(?:type|rtype|raises|vartype|orphan|tocdepth|nosearch)\b")
_DEFINED = re.compile(r"(?P<term>.*?)(?P<classifiers> : .*)?")


class Lines:
    """The lines of a document, with the column and the position where the text of each begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.ends: list[int] = []
        self.begins: list[int] = []
        self.columns: list[int] = []  # -1 for a blank line
        start = 0
        for raw in text.split("\n"):
            line = raw.rstrip(" \t\r\f\v")
            indentation = line[: len(line) - len(line.lstrip(" \t\f\v"))]
            self.begins.append(start + len(indentation))
            self.ends.append(start + len(line))
            self.columns.append(len(indentation.expandtabs(8)) if line else -1)
            start += len(raw) + 1

    def __len__(self) -> int:
        return len(self.ends)

    def content(self, number: int) -> str:
        return self.text[self.begins[number] : self.ends[number]]

    def is_blank(self, number: int) -> bool:
        return self.columns[number] < 0

    def block_end(self, first: int, last: int, column: int) -> int:
        """Return the number of the first line at or after `first` that is not blank and left of a column."""
        number = first
        while number < last and (self.is_blank(number) or self.columns[number] >= column):
            number += 1
        return number

    def text_end(self, first: int, last: int) -> int:
        """Return the number of the first blank line at or after `first`."""
        number = first
        while number < last and not self.is_blank(number):
            number += 1
        return number

    def column_of_rest(self, first: int, last: int, default: int) -> int:
        """Return the smallest column of some lines."""
        return min((column for column in self.columns[first:last] if column >= 0), default=default)


def parse(text: str) -> list[Unit]:
    """Return the units of a document."""
    reader = _Reader(text)
    reader.read(0, len(reader.lines), 0, 0)
    return reader.units


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines = Lines(text)
        self.inline = InlineReader(text)
        self.units: list[Unit] = []
        self.is_start = True  # before the first paragraph, where fields are data about the document

    def read(self, first: int, last: int, column: int, depth: int) -> None:
        """Read the blocks in some lines, none of which is left of a column."""
        number = first
        while number < last:
            check_cancelled()
            if self.lines.is_blank(number):
                number += 1
            elif self.lines.columns[number] > column:
                end = self.lines.block_end(number, last, column + 1)
                if depth < MAX_DEPTH:
                    self.read(number, end, self.lines.column_of_rest(number, end, column + 1), depth + 1)
                number = end
            else:
                number = self._read_block(number, last, column, depth)

    def _read_block(self, number: int, last: int, column: int, depth: int) -> int:
        """Read the block that begins in a line, and return the number of the line after it."""
        content = self.lines.content(number)
        for read in (self._read_table, self._read_title):
            if (end := read(number, last, column)) is not None:
                return end
        if content.startswith((".. ", "..\t", "__ ")) or content in ("..", "__"):
            end = self.lines.block_end(number + 1, last, column + 1)
            self._read_explicit(number, end, column, depth)
            return end
        if content.startswith(">>>") and content[3:4] in ("", " "):
            return self.lines.text_end(number, last)
        marker = self._marker(number, last, column)
        if marker is not None:
            end = self.lines.block_end(number + 1, last, column + 1)
            if syntax.BULLET.match(content) or syntax.ENUMERATOR.match(content):
                rest = self.lines.column_of_rest(number + 1, end, column + 1)
                end = self.lines.block_end(
                    number + 1, last, min(column + len(marker[0].expandtabs(8)), max(rest, column + 1))
                )
            field = marker.re is syntax.FIELD
            if not (field and (self.is_start or _UNTRANSLATED_FIELDS.match(marker["name"]))):
                self._read_body(number, end, column, len(marker[0]), depth)
            return end
        if re.match(r"\|(?:\s|$)", content):
            self._add(number, number + 1, 1)
            return number + 1
        self.is_start = False
        return self._read_paragraph(number, last, column, depth)

    def _marker(self, number: int, last: int, column: int) -> re.Match[str] | None:
        """Return the marker of a list or a field that a line begins with."""
        content = self.lines.content(number)
        for pattern in (syntax.BULLET, syntax.ENUMERATOR, syntax.FIELD, syntax.OPTION):
            match = pattern.match(content)
            if match is None:
                continue
            next_is_text = number + 1 < last and not self.lines.is_blank(number + 1)
            if pattern is syntax.ENUMERATOR and next_is_text and self.lines.columns[number + 1] <= column:
                return match if pattern.match(self.lines.content(number + 1)) else None
            return match
        return None

    def _read_body(self, number: int, end: int, column: int, width: int, depth: int) -> None:
        """Read what follows a marker: the rest of its line, which belongs to the lines after it, and these."""
        rest = self.lines.column_of_rest(number + 1, end, column + max(width, 1))
        begin = self.lines.begins[number] + width
        if begin < self.lines.ends[number]:
            content = self.lines.text[begin : self.lines.ends[number]]
            begin += len(content) - len(content.lstrip())
            self.lines.begins[number], self.lines.columns[number] = begin, rest
            first = number
        else:
            first = number + 1
        if depth < MAX_DEPTH:
            self.read(first, end, rest, depth + 1)

    def _read_table(self, number: int, last: int, _column: int) -> int | None:
        content = self.lines.content(number)
        if syntax.GRID_TABLE.fullmatch(content):
            return self.lines.text_end(number, last)
        if not syntax.SIMPLE_TABLE.fullmatch(content):
            return None
        ends = (row + 1 for row in range(number + 1, last) if self._ends_table(row, last))
        return next(ends, self.lines.text_end(number, last))

    def _ends_table(self, number: int, last: int) -> bool:
        is_followed = number + 1 < last and not self.lines.is_blank(number + 1)
        return not is_followed and syntax.TABLE_BORDER.fullmatch(self.lines.content(number)) is not None

    def _read_title(self, number: int, last: int, column: int) -> int | None:
        """Read a title with its underline, perhaps with an overline, or a transition."""
        content = self.lines.content(number)
        following = [self.lines.content(row) for row in range(number + 1, min(last, number + 3))]
        if syntax.ADORNMENT.fullmatch(content):
            if len(following) == 2 and following[0] and following[1] == content:
                self._add_title(number + 1)
                return number + 3
            return number + 1 if len(content) >= 4 and (not following or not following[0]) else None
        is_here = column == 0 and bool(following) and self.lines.columns[number + 1] == 0
        if is_here and syntax.is_adornment(following[0], content):
            self._add_title(number)
            return number + 2
        return None

    def _add_title(self, number: int) -> None:
        if not self.inline.is_referenced(self.lines.content(number)):
            self._add(number, number + 1)

    def _read_explicit(self, number: int, end: int, column: int, depth: int) -> None:
        """Read what begins with two dots: notes and some directives have text, anything else has none."""
        content = self.lines.content(number)
        if footnote := syntax.FOOTNOTE.match(content):
            self._read_body(number, end, column, len(footnote[0]), depth)
        elif directive := syntax.DIRECTIVE.match(content):
            name, width = directive["name"].lower(), directive.end()
            if name in syntax.ADMONITIONS or name in syntax.VERSIONS:
                version = re.compile(r"\S+(?:[ \t]+|$)").match(content, width) if name in syntax.VERSIONS else None
                self._skip_options(number, end)
                self._read_body(number, end, column, version.end() if version else width, depth)
            elif name in syntax.TITLED or name in syntax.CONTAINERS or syntax.OBJECTS.fullmatch(name):
                if name in syntax.TITLED and width < len(content):
                    self._add(number, number + 1, width)
                first = self.lines.text_end(number, end)
                if name in ("container", "only", "compound", "epigraph", "pull-quote", "highlights") and width == len(
                    content
                ):
                    first = number + 1
                if depth < MAX_DEPTH:
                    self.read(first, end, self.lines.column_of_rest(first, end, column + 1), depth + 1)

    def _skip_options(self, number: int, end: int) -> None:
        """Make the options of a directive, which follow its first line, blank lines."""
        for row in range(number + 1, end):
            if self.lines.is_blank(row) or not syntax.FIELD.match(self.lines.content(row)):
                return
            self.lines.columns[row] = -1

    def _read_paragraph(self, number: int, last: int, column: int, depth: int) -> int:
        """Read a paragraph, or a term with its definition."""
        end = number + 1
        while end < last and self.lines.columns[end] == column:
            end += 1
        is_indented_next = end < last and self.lines.columns[end] > column
        if end == number + 1 and is_indented_next:
            self._add_term(number)
            definition = self.lines.block_end(end, last, column + 1)
            if depth < MAX_DEPTH:
                self.read(end, definition, self.lines.column_of_rest(end, definition, column + 1), depth + 1)
            return definition
        if syntax.LITERAL_END.search(self.lines.content(end - 1)):
            self._add(number, end, trailing=2)
            return self._skip_literal(end, last, column)
        if not is_indented_next:  # an indented line right after a paragraph is a mistake that a translation may change
            self._add(number, end)
        return end

    def _add_term(self, number: int) -> None:
        match = _DEFINED.fullmatch(self.lines.content(number))
        classifiers = match["classifiers"] if match and match["classifiers"] else ""
        if not syntax.LITERAL_END.search(self.lines.content(number)):
            self._add(number, number + 1, trailing=len(classifiers))

    def _skip_literal(self, number: int, last: int, column: int) -> int:
        while number < last and self.lines.is_blank(number):
            number += 1
        if (
            number < last
            and self.lines.columns[number] == column
            and syntax.ADORNMENT.match(self.lines.content(number)[:1] * 2)
        ):
            return self.lines.text_end(number, last)
        return self.lines.block_end(number, last, column + 1)

    def _add(self, first: int, end: int, leading: int = 0, trailing: int = 0) -> None:
        """Add the text of some lines as a unit, without some characters at its ends."""
        span = self.lines.begins[first] + leading, self.lines.ends[end - 1] - trailing
        if span[0] >= span[1]:
            return
        unit = make_unit(self.inline.pieces(span), escape)
        if unit is not None:
            self.units.append(replace(unit, layout=layout))


def fit_titles(text: str, _code: str = "") -> str:
    """Make the underlines and overlines of titles as long as the titles, which docutils asks for.

    The format has no place for the language of a document; this is what a translated document needs besides.
    """
    lines = text.split("\n")
    for number in range(1, len(lines)):
        line, title = lines[number].rstrip(), lines[number - 1].strip()
        if not title or line == "::" or not syntax.ADORNMENT.fullmatch(line) or syntax.ADORNMENT.fullmatch(title):
            continue
        overline = lines[number - 2].rstrip() if number >= 2 else ""
        width = syntax.column_width(lines[number - 1].rstrip())
        is_title = overline == line or (syntax.is_adornment(line, line[:4]) and (number < 2 or not overline))
        if is_title and len(line) < width:
            lines[number] = line[0] * width + lines[number][len(line) :]
            if overline == line:
                lines[number - 2] = line[0] * width + lines[number - 2][len(line) :]
    return "\n".join(lines)
