"""Markdown: paragraphs, headings, list items and table cells, found by a CommonMark parser; code and addresses stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from markdown_it.token import Token

from sixfold.text.languages import UNSPACED, letters
from sixfold.translation.documents import seams
from sixfold.translation.documents.markup import front_matter, html
from sixfold.translation.documents.markup.markdown_grammar import FRONT_MATTER, admonition_title, make_parser
from sixfold.translation.documents.units import Kind, Piece, Span, Unit, make_unit, text_pieces
from sixfold.translation.protection import protected_spans

_LINK_END = re.compile(
    r"\]\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)"  # ](address "title")
    r"|\]\[(?:[^\[\]\\]|\\.)*\]"
    r"|\]",
    re.S,
)
_IMAGE = re.compile(r"!\[(?P<alt>(?:[^\[\]\\]|\\.|\[(?:[^\[\]\\]|\\.)*\])*)", re.S)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
_AUTOLINK = re.compile(r"<[^<>\s]*>")
_BREAK = re.compile(r"(?:\\|[ \t]*)\n[ \t]*")
# A footnote, the box of a task, or the kind of an alert; at the start of a line, the colon of a definition.
_FURNITURE = re.compile(r"\A\[\^[^\]\s]+\]:|\[\^[^\]\s]+\]|\A\[[ xX]\](?=\s)|\A\[![A-Z]+\]")
_DEFINITION = re.compile(r":[ \t]+")
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[a-zA-Z][\w-]*)")
_CELL_CHARACTER = re.compile(r"\\\||.", re.S)
_PIPE = re.compile(r"(?<!\\)\|")
_MARKUP_CHARACTER = re.compile(r"[*`\[\]]|\\(?=[!-/:-@\[-`{-~])|<(?=[a-zA-Z/!?])|(?<!\w)_|_(?!\w)|&(?=#?\w+;)|~(?=~)")
_BLOCK_START = re.compile(r"(?:#{1,6}|[-+>]|\d+(?=[.)]))(?=\s|[.)]\s)")
_UNSPACED_LETTER = letters(*UNSPACED)
_PARSER = make_parser()
PAIRED_TOKENS = ("em", "strong", "s")


class _NotFoundError(Exception):
    """The text of a token is not where the parser says; the block stays as it is."""


def parse(text: str) -> list[Unit]:
    """Return the units of a text. Of the front matter, the title and the description are units."""
    front = FRONT_MATTER.match(text)
    body = "\n" * text.count("\n", 0, front.end()) + text[front.end() :] if front else text
    starts = [0, *(match.end() for match in re.finditer(r"\r\n?|\n", text)), len(text)]
    units = front_matter.units(text)
    row = _Row(text)
    cell = -1  # the index of the current cell in its row
    for token in _PARSER.parse(body):
        if token.type == "tr_open":
            cell = -1
        elif token.type in ("th_open", "td_open"):
            cell += 1
        elif token.type == "table_close":
            cell = -1
        elif token.map is not None and token.type == "html_block":
            units += html.parse(text, starts[token.map[0]], starts[token.map[1]])
        elif token.map is not None and token.type == "admonition_open":
            units += _title_units(text, (starts[token.map[0]], starts[token.map[0] + 1]))
        elif token.map is not None and token.type == "inline":
            lines = [(starts[number], starts[number + 1]) for number in range(*token.map)]
            in_table = cell >= 0 and token.level >= 4
            try:
                content = row.cell(lines[0], cell, token.content) if in_table else _lines(text, token, lines)
                inline = _Inline(text, *content)
                inline.read(token.children or [])
            except _NotFoundError:
                continue
            units += inline.units
            for pieces in (*inline.lines, inline.pieces):
                if (unit := make_unit(pieces, _escape_cell if in_table else _escape)) is not None:
                    units.append(_with_stars(text, replace(unit, flanking=True)))
    return units


def _title_units(text: str, line: Span) -> list[Unit]:
    """Return the title of an admonition as a unit."""
    indent = len(text[slice(*line)]) - len(text[slice(*line)].lstrip(" >\t"))
    title = admonition_title(text[line[0] + indent : line[1]].rstrip())
    if title is None:
        return []
    span = line[0] + indent + title[0], line[0] + indent + title[1]
    unit = make_unit(text_pieces(text, span), lambda translation: translation.replace('"', "'"))
    return [] if unit is None else [unit]


def _with_stars(text: str, unit: Unit) -> Unit:
    """Return a unit whose emphasis is written with `*` where `_` would touch letters, and so would be no markup."""
    if not any(mark.span and text[slice(*mark.span)] in ("_", "__") for mark in unit.marks):
        return unit
    return replace(unit, escape=seams.mark_edges(unit.escape), layout=_replace_underscores)


def _replace_underscores(written: str) -> str:
    parts = seams.split(written)
    for index in range(0, len(parts), 2):
        if parts[index] in ("_", "__") and _touches_letters(parts, index):
            underscores, stars = parts[index], parts[index].replace("_", "*")
            return "".join(
                stars if part == underscores and not number % 2 else part for number, part in enumerate(parts)
            )
    return "".join(parts)


def _touches_letters(parts: Sequence[str], index: int) -> bool:
    """Return whether letters or digits are on both sides of a mark."""
    left = parts[index - 1][-1:] if index else ""
    right = parts[index + 1][:1] if index + 1 < len(parts) else ""
    return left.isalnum() and right.isalnum()


def _lines(text: str, token: Token, lines: Sequence[Span]) -> tuple[str, list[Span]]:
    """Return the content of a block, without what begins each line, and the document span of each character."""
    spans: list[Span] = []
    contents = token.content.split("\n")
    if len(contents) > len(lines):
        raise _NotFoundError
    for content, (start, end) in zip(contents, lines, strict=False):
        position = text.rfind(content, start, end)
        if position < 0:
            raise _NotFoundError
        if spans:
            spans.append((start - 1, start))
        spans.extend((index, index + 1) for index in range(position, position + len(content)))
    return token.content, spans


class _Row:
    """The cells of one row of a table at a time; the cells of a row are read one after another."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line: Span = (0, 0)
        self.edges: list[int] = []  # positions of the bars; those at the ends of the row may be left out in the text

    def cell(self, line: Span, number: int, content: str) -> tuple[str, list[Span]]:
        """Return the content of a cell, where `\\|` is a bar, and the document span of each character."""
        if line != self.line:
            self.line, self.edges = line, self._edges(line)
        if number + 1 >= len(self.edges):
            raise _NotFoundError
        start, end = self.edges[number] + 1, self.edges[number + 1]
        inner = self.text[start:end]
        start += len(inner) - len(inner.lstrip())
        spans: list[Span] = []
        for match in _CELL_CHARACTER.finditer(self.text, start, start + len(inner.strip())):
            spans.append(match.span())
        if len(spans) != len(content):
            raise _NotFoundError
        return content, spans

    def _edges(self, line: Span) -> list[int]:
        row = self.text[slice(*line)].rstrip()
        end = line[0] + len(row)
        bars = [match.start() for match in _PIPE.finditer(self.text, line[0], end)]
        edges = [*([line[0] - 1] if not row.lstrip().startswith("|") else []), *bars]
        if not row.endswith("|") or (bars and bars[-1] != end - 1):
            edges.append(end)
        return edges


class _Inline:
    """Reads the content of a block along the tokens of the parser, to find where each token is in the document."""

    def __init__(self, text: str, content: str, spans: list[Span]) -> None:
        self.text, self.content = text, content
        end = spans[-1][1] if spans else 0
        self.spans = [*spans, (end, end)]
        self.index = 0  # in the content
        self.pieces: list[Piece] = []
        self.lines: list[list[Piece]] = []  # lines that end in a hard break, which separates units
        self.units: list[Unit] = []  # the alternative texts of images
        self.links: list[tuple[int, int]] = []  # of open links: start index, number of pieces before
        self.code: tuple[str, int, int] | None = (
            None  # of an open tag of code: name, start index, number of pieces before
        )
        self.starts_line = True
        self.skips = False  # inside an automatic link, which is an atom

    def read(self, children: Sequence[Token]) -> None:
        """Add the pieces of all tokens; raise _NotFoundError if the content does not match them."""
        for child in children:
            self.starts_line = self.starts_line and child.type == "text"
            if self.skips:
                self.skips = child.type != "link_close"
            elif child.type == "text":
                self._text(child.content)
                self.starts_line = False
            elif child.type == "text_special":
                self._piece(self._expect(child.markup), child.content)
            elif child.type in ("softbreak", "hardbreak"):
                self._break(child.type == "hardbreak")
            elif child.type == "code_inline":
                self._atom(_CODE)
            elif child.type == "image":
                self._image()
            elif child.type in ("link_open", "link_close"):
                self._link(child)
            elif child.type == "html_inline":
                self._tag(child.content)
            elif child.type == "opaque":
                start = self._expect(child.content)
                is_mark = child.markup == "attributes"
                self.pieces.append(
                    Piece(self._span(start), "" if is_mark else child.content, "single" if is_mark else "atom")
                )
            elif child.type.rpartition("_")[0] in PAIRED_TOKENS:
                self._mark(child.markup, "open" if child.nesting == 1 else "close")
            else:
                raise _NotFoundError
        if self.content[self.index :].strip():
            raise _NotFoundError

    def _expect(self, raw: str) -> int:
        """Move past `raw`, which must come next, and return the index where it starts."""
        start = self.index
        if not self.content.startswith(raw, start):
            raise _NotFoundError
        self.index += len(raw)
        return start

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Move past a match of a pattern, which must come next, and return the match."""
        match = pattern.match(self.content, self.index)
        if match is None:
            raise _NotFoundError
        self.index = match.end()
        return match

    def _span(self, start: int) -> Span:
        """Return the span in the document from an index of the content up to the current one."""
        return self.spans[start][0], self.spans[self.index - 1][1]

    def _piece(self, start: int, text: str) -> None:
        self.pieces.append(Piece(self._span(start), text))

    def _text(self, content: str) -> None:
        begin = self._expect(content)
        definition = _DEFINITION.match(content) if self.starts_line else None
        end = definition.end() if definition else 0
        for match in _FURNITURE.finditer(content, end):
            if match.start() == 0 and begin > 0 and not match[0].startswith("[^"):
                continue
            self._plain(begin + end, begin + match.start())
            span = self.spans[begin + match.start()][0], self.spans[begin + match.end() - 1][1]
            self.pieces.append(Piece(span, kind="single"))
            end = match.end()
        self._plain(begin + end, begin + len(content))

    def _plain(self, start: int, end: int) -> None:
        if end > start:
            span = self.spans[start][0], self.spans[end - 1][1]
            self.pieces += text_pieces(self.text, span, lambda raw: raw.replace("\\|", "|"))

    def _break(self, is_hard: bool) -> None:
        start = self.index
        self._match(_BREAK)
        span = self.spans[start][0], self.spans[self.index][0]
        neighbours = self.content[start - 1 : start] + self.content[self.index : self.index + 1]
        is_unspaced = len(neighbours) == 2 and all(_UNSPACED_LETTER.match(char) for char in neighbours)
        self.starts_line = True
        if is_hard or _DEFINITION.match(self.content, self.index):
            self._end_line()
        else:
            self.pieces.append(Piece(span, "" if is_unspaced else " "))

    def _end_line(self) -> None:
        self.lines.append(self.pieces)
        self.pieces = []

    def _atom(self, pattern: re.Pattern[str]) -> None:
        start = self.index
        self.pieces.append(Piece(self._span_of(self._match(pattern)), self.content[start : self.index], "atom"))

    def _span_of(self, match: re.Match[str]) -> Span:
        return self.spans[match.start()][0], self.spans[match.end() - 1][1]

    def _mark(self, raw: str, kind: Kind) -> None:
        self.pieces.append(Piece(self._span(self._expect(raw)), kind=kind))

    def _tag(self, raw: str) -> None:
        """Add a tag of HTML. A line break separates units, and code between two tags is an atom."""
        start = self.index
        tag = _TAG.match(raw)
        name = tag["name"].lower() if tag else ""
        closes = tag is not None and bool(tag["close"])
        if name in html.CODE_TAGS and not closes and self.code is None:
            self.code = (name, start, len(self.pieces))
        elif name in html.CODE_TAGS and closes and self.code is not None and self.code[0] == name:
            _, start, count = self.code
            self._expect(raw)
            self.code = None
            del self.pieces[count:]
            self.pieces.append(Piece(self._span(start), self.content[start : self.index], "atom"))
            return
        if name == "br":
            self._expect(raw)
            self._end_line()
            return
        is_pair = name in html.INLINE_TAGS - html.VOID_TAGS and not raw.endswith("/>")
        self._mark(raw, "single" if not is_pair else "close" if closes else "open")
        if tag is not None and not closes and "\n" not in raw:
            self.units += html.parse(self.text, *self._span(start))

    def _image(self) -> None:
        start = self.index
        alt = self._match(_IMAGE)
        link_end = self._match(_LINK_END)
        if link_end[0] not in ("]", "][]") and alt["alt"]:
            span = self.spans[alt.start("alt")][0], self.spans[alt.end("alt") - 1][1]
            if (unit := make_unit(text_pieces(self.text, span), _escape)) is not None:
                self.units.append(unit)
        self.pieces.append(Piece(self._span(start), kind="single"))

    def _link(self, token: Token) -> None:
        if token.markup == "autolink":
            self._atom(_AUTOLINK)
            self.skips = True
        elif token.type == "link_open":
            self.links.append((self.index, len(self.pieces)))
            self._mark("[", "open")
        else:
            start, count = self.links.pop()
            link_end = self._match(_LINK_END)
            if link_end[0] in ("]", "][]"):  # its text is also its label, so a translation would break the link
                del self.pieces[count:]
                self.pieces.append(Piece(self._span(start), self.content[start : self.index], "atom"))
            else:
                self.pieces.append(Piece(self._span_of(link_end), kind="close"))


def _escape(text: str) -> str:
    """Put a backslash before characters that would be markup; placeholders stay as they are."""
    parts, position = [], 0
    for start, end in protected_spans(text):
        parts += [_escape_characters(text[position:start]), text[start:end]]
        position = end
    escaped = "".join([*parts, _escape_characters(text[position:])])
    return _BLOCK_START.sub(_escape_block_start, escaped, count=1) if _BLOCK_START.match(escaped) else escaped


def _escape_block_start(match: re.Match[str]) -> str:
    return f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}"


def _escape_characters(text: str) -> str:
    return _MARKUP_CHARACTER.sub(lambda match: f"\\{match[0]}", text)


def _escape_cell(text: str) -> str:
    return _escape(text).replace("|", "\\|")
