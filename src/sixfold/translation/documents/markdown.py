"""Markdown: paragraphs, headings, list items and table cells, found by a CommonMark parser; code and addresses stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from sixfold.text.languages import UNSPACED, letters
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents import html
from sixfold.translation.documents.units import Kind, Piece, Span, Unit, make_unit, text_pieces
from sixfold.translation.protection import protected_spans

_FRONT_MATTER = re.compile(r"---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
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
_FOOTNOTE_OR_BOX = re.compile(r"\[\^[^\]\s]+\]|\A\[[ xX]\](?=\s)")  # a footnote, or the box of a task
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[a-zA-Z][\w-]*)")
_PIPE = re.compile(r"(?<!\\)\|")
_MARKUP_CHARACTER = re.compile(r"[*`\[\]]|\\(?=[!-/:-@\[-`{-~])|<(?=[a-zA-Z/!?])|(?<!\w)_|_(?!\w)|&(?=#?\w+;)|~(?=~)")
_BLOCK_START = re.compile(r"(?:#{1,6}|[-+>]|\d+(?=[.)]))(?=\s|[.)]\s)")
_UNSPACED_LETTER = letters(*UNSPACED)
_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
PAIRED_TOKENS = ("em", "strong", "s")


def _check_in_block(_state: StateBlock, _start: int, _end: int, _silent: bool) -> bool:
    """A rule of the parser that matches nothing: it lets long work be cancelled."""
    check_cancelled()
    return False


def _check_in_line(_state: StateInline, _silent: bool) -> bool:
    check_cancelled()
    return False


_PARSER.block.ruler.before("table", "check_cancelled", _check_in_block)
_PARSER.inline.ruler.before("text", "check_cancelled", _check_in_line)


class _NotFoundError(Exception):
    """The text of a token is not where the parser says; the block stays as it is."""


def parse(text: str) -> list[Unit]:
    """Return the units of a text; front matter between dashes stays as it is."""
    front = _FRONT_MATTER.match(text)
    body = "\n" * text.count("\n", 0, front.end()) + text[front.end() :] if front else text
    starts = [0, *(match.end() for match in re.finditer(r"\r\n?|\n", text)), len(text)]
    units: list[Unit] = []
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
        elif token.map is not None and token.type == "inline":
            lines = [(starts[number], starts[number + 1]) for number in range(*token.map)]
            in_table = cell >= 0 and token.level >= 4
            try:
                inline = _Inline(text, *(row.cell(lines[0], cell) if in_table else _lines(text, token, lines)))
                inline.read(token.children or [])
            except _NotFoundError:
                continue
            units += inline.units
            for pieces in (*inline.lines, inline.pieces):
                if (unit := make_unit(pieces, _escape_cell if in_table else _escape)) is not None:
                    units.append(replace(unit, flanking=True))
    return units


def _lines(text: str, token: Token, lines: Sequence[Span]) -> tuple[str, list[int]]:
    """Return the content of a block, without what begins each line, and the document position of each character."""
    positions: list[int] = []
    contents = token.content.split("\n")
    if len(contents) > len(lines):
        raise _NotFoundError
    for content, (start, end) in zip(contents, lines, strict=False):
        position = text.rfind(content, start, end)
        if position < 0:
            raise _NotFoundError
        if positions:
            positions.append(start - 1)
        positions.extend(range(position, position + len(content)))
    return token.content, positions


class _Row:
    """The cells of one row of a table at a time; the cells of a row are read one after another."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line: Span = (0, 0)
        self.edges: list[int] = []  # positions of the bars; those at the ends of the row may be left out in the text

    def cell(self, line: Span, number: int) -> tuple[str, list[int]]:
        """Return the content of a cell, and the document position of each character."""
        if line != self.line:
            self.line, self.edges = line, self._edges(line)
        if number + 1 >= len(self.edges):
            raise _NotFoundError
        start, end = self.edges[number] + 1, self.edges[number + 1]
        inner = self.text[start:end]
        if "\\|" in inner:
            raise _NotFoundError
        start += len(inner) - len(inner.lstrip())
        inner = inner.strip()
        return inner, list(range(start, start + len(inner)))

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

    def __init__(self, text: str, content: str, positions: list[int]) -> None:
        self.text, self.content = text, content
        self.positions = [*positions, positions[-1] + 1 if positions else 0]
        self.index = 0  # in the content
        self.pieces: list[Piece] = []
        self.lines: list[list[Piece]] = []  # lines that end in a hard break, which separates units
        self.units: list[Unit] = []  # the alternative texts of images
        self.links: list[tuple[int, int]] = []  # of open links: start index, number of pieces before
        self.skips = False  # inside an automatic link, which is an atom

    def read(self, children: Sequence[Token]) -> None:
        """Add the pieces of all tokens; raise _NotFoundError if the content does not match them."""
        for child in children:
            if self.skips:
                self.skips = child.type != "link_close"
            elif child.type == "text":
                self._text(child.content)
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
        return self.positions[start], self.positions[self.index - 1] + 1

    def _piece(self, start: int, text: str) -> None:
        self.pieces.append(Piece(self._span(start), text))

    def _text(self, content: str) -> None:
        begin = self._expect(content)
        end = 0
        for note in _FOOTNOTE_OR_BOX.finditer(content):
            if note.start() == 0 and begin > 0 and not note[0].startswith("[^"):
                continue
            self._plain(begin + end, begin + note.start())
            self.pieces.append(
                Piece((self.positions[begin + note.start()], self.positions[begin + note.end() - 1] + 1), kind="single")
            )
            end = note.end()
        self._plain(begin + end, begin + len(content))

    def _plain(self, start: int, end: int) -> None:
        if end > start:
            self.pieces += text_pieces(self.text, (self.positions[start], self.positions[end - 1] + 1))

    def _break(self, is_hard: bool) -> None:
        start = self.index
        self._match(_BREAK)
        span = self.positions[start], self.positions[self.index]
        neighbours = self.content[start - 1 : start] + self.content[self.index : self.index + 1]
        is_unspaced = len(neighbours) == 2 and all(_UNSPACED_LETTER.match(char) for char in neighbours)
        if is_hard:
            self.lines.append(self.pieces)
            self.pieces = []
        else:
            self.pieces.append(Piece(span, "" if is_unspaced else " "))

    def _atom(self, pattern: re.Pattern[str]) -> None:
        start = self.index
        self.pieces.append(Piece(self._span_of(self._match(pattern)), self.content[start : self.index], "atom"))

    def _span_of(self, match: re.Match[str]) -> Span:
        return self.positions[match.start()], self.positions[match.end() - 1] + 1

    def _mark(self, raw: str, kind: Kind) -> None:
        self.pieces.append(Piece(self._span(self._expect(raw)), kind=kind))

    def _tag(self, raw: str) -> None:
        tag = _TAG.match(raw)
        paired = html.INLINE_TAGS - html.VOID_TAGS
        is_pair = tag is not None and tag["name"].lower() in paired and not raw.endswith("/>")
        kind: Kind = "single" if not is_pair else "close" if tag and tag["close"] else "open"
        self._mark(raw, kind)

    def _image(self) -> None:
        start = self.index
        alt = self._match(_IMAGE)
        link_end = self._match(_LINK_END)
        if link_end[0] not in ("]", "][]") and alt["alt"]:
            span = self.positions[alt.start("alt")], self.positions[alt.end("alt") - 1] + 1
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
