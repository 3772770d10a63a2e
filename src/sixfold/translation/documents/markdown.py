"""Markdown: paragraphs, headings, items and cells, read by CommonMark's own rules; code, addresses and layout stay."""

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
from sixfold.translation.documents.units import PLACEHOLDER, Kind, Piece, Span, Unit, text_pieces, unit_of

_FRONT = re.compile(r"---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.S)
_TAIL = re.compile(
    r"\]\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)"  # ](address "title")
    r"|\]\[(?:[^\[\]\\]|\\.)*\]"
    r"|\]",
    re.S,
)
_IMAGE = re.compile(r"!\[(?P<alt>(?:[^\[\]\\]|\\.|\[(?:[^\[\]\\]|\\.)*\])*)", re.S)
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.S)
_AUTOLINK = re.compile(r"<[^<>\s]*>")
_BREAK = re.compile(r"(?:\\|[ \t]*)\n[ \t]*")
_NOTE = re.compile(r"\[\^[^\]\s]+\]|\A\[[ xX]\](?=\s)")  # a footnote, the box of a task
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[a-zA-Z][\w-]*)")
_PIPE = re.compile(r"(?<!\\)\|")
_ACTIVE = re.compile(r"[*`\[\]]|\\(?=[!-/:-@\[-`{-~])|<(?=[a-zA-Z/!?])|(?<!\w)_|_(?!\w)|&(?=#?\w+;)|~(?=~)")
_BLOCK = re.compile(r"(?:#{1,6}|[-+>]|\d+(?=[.)]))(?=\s|[.)]\s)")
_HAN = letters(*UNSPACED)
_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
PAIRED = ("em", "strong", "s")


def _stop_in_block(_state: StateBlock, _start: int, _end: int, _silent: bool) -> bool:
    """A rule of the parser that reads nothing: it is where long work can be stopped."""
    check_cancelled()
    return False


def _stop_in_line(_state: StateInline, _silent: bool) -> bool:
    check_cancelled()
    return False


_PARSER.block.ruler.before("table", "stop", _stop_in_block)
_PARSER.inline.ruler.before("text", "stop", _stop_in_line)


class _UnreadError(Exception):
    """The text is not where the parser says; it stays as it is."""


def parse(text: str) -> list[Unit]:
    """What stands in front between dashes is left alone."""
    front = _FRONT.match(text)
    body = "\n" * text.count("\n", 0, front.end()) + text[front.end() :] if front else text
    starts = [0, *(found.end() for found in re.finditer(r"\r\n?|\n", text)), len(text)]
    units: list[Unit] = []
    row = _Row(text)
    cell = -1  # which of its row
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
            except _UnreadError:
                continue
            units += inline.units
            for pieces in (*inline.lines, inline.pieces):
                if (unit := unit_of(pieces, _escape_cell if in_table else _escape)) is not None:
                    units.append(replace(unit, leans=True))
    return units


def _lines(text: str, token: Token, lines: Sequence[Span]) -> tuple[str, list[int]]:
    """The content of a block as it stands there, without what begins each line, and the place of each character."""
    places: list[int] = []
    contents = token.content.split("\n")
    if len(contents) > len(lines):
        raise _UnreadError
    for content, (start, end) in zip(contents, lines, strict=False):
        at = text.rfind(content, start, end)
        if at < 0:
            raise _UnreadError
        if places:
            places.append(start - 1)
        places.extend(range(at, at + len(content)))
    return token.content, places


class _Row:
    """The cells of the row of a table that was read last; all cells of a row are asked for one after another."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line: Span = (0, 0)
        self.edges: list[int] = []  # where a bar is, or would be at the ends of the row

    def cell(self, line: Span, number: int) -> tuple[str, list[int]]:
        """The content of a cell, and the place of each of its characters."""
        if line != self.line:
            self.line, self.edges = line, self._edges(line)
        if number + 1 >= len(self.edges):
            raise _UnreadError
        start, end = self.edges[number] + 1, self.edges[number + 1]
        inner = self.text[start:end]
        if "\\|" in inner:
            raise _UnreadError
        start += len(inner) - len(inner.lstrip())
        inner = inner.strip()
        return inner, list(range(start, start + len(inner)))

    def _edges(self, line: Span) -> list[int]:
        row = self.text[slice(*line)].rstrip()
        end = line[0] + len(row)
        bars = [found.start() for found in _PIPE.finditer(self.text, line[0], end)]
        edges = [*([line[0] - 1] if not row.lstrip().startswith("|") else []), *bars]
        if not row.endswith("|") or (bars and bars[-1] != end - 1):
            edges.append(end)
        return edges


class _Inline:
    """Walks along the text of a block as its parser has understood it."""

    def __init__(self, text: str, content: str, places: list[int]) -> None:
        self.text, self.content = text, content
        self.places = [*places, places[-1] + 1 if places else 0]
        self.at = 0
        self.pieces: list[Piece] = []
        self.lines: list[list[Piece]] = []  # that ended in a hard break, which stays between two texts
        self.units: list[Unit] = []  # the texts that stand for images
        self.links: list[tuple[int, int]] = []  # where each began, and how many pieces were there
        self.passes = False  # inside of what is kept whole

    def read(self, children: Sequence[Token]) -> None:
        for child in children:
            if self.passes:
                self.passes = child.type != "link_close"
            elif child.type == "text":
                self._text(child.content)
            elif child.type == "text_special":
                self._piece(self._expect(child.markup), child.content)
            elif child.type in ("softbreak", "hardbreak"):
                self._break(child.type == "hardbreak")
            elif child.type == "code_inline":
                self._whole(_CODE)
            elif child.type == "image":
                self._image()
            elif child.type in ("link_open", "link_close"):
                self._link(child)
            elif child.type == "html_inline":
                self._tag(child.content)
            elif child.type.rpartition("_")[0] in PAIRED:
                self._mark(child.markup, "open" if child.nesting == 1 else "close")
            else:
                raise _UnreadError
        if self.content[self.at :].strip():
            raise _UnreadError

    def _expect(self, raw: str) -> int:
        """Where this begins, which must be here; the walk goes on behind it."""
        at = self.at
        if not self.content.startswith(raw, at):
            raise _UnreadError
        self.at += len(raw)
        return at

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self.content, self.at)
        if found is None:
            raise _UnreadError
        self.at = found.end()
        return found

    def _span(self, start: int) -> Span:
        """Of the document, from a place of the content to where the walk has come."""
        return self.places[start], self.places[self.at - 1] + 1

    def _piece(self, start: int, text: str) -> None:
        self.pieces.append(Piece(self._span(start), text))

    def _text(self, content: str) -> None:
        begin = self._expect(content)
        at = 0
        for note in _NOTE.finditer(content):
            if note.start() == 0 and begin > 0 and not note[0].startswith("[^"):
                continue
            self._plain(begin + at, begin + note.start())
            self.pieces.append(
                Piece((self.places[begin + note.start()], self.places[begin + note.end() - 1] + 1), kind="single")
            )
            at = note.end()
        self._plain(begin + at, begin + len(content))

    def _plain(self, start: int, end: int) -> None:
        if end > start:
            self.pieces += text_pieces(self.text, (self.places[start], self.places[end - 1] + 1))

    def _break(self, is_hard: bool) -> None:
        start = self.at
        self._match(_BREAK)
        span = self.places[start], self.places[self.at]
        around = self.content[start - 1 : start] + self.content[self.at : self.at + 1]
        joins = len(around) == 2 and all(_HAN.match(char) for char in around)
        if is_hard:
            self.lines.append(self.pieces)
            self.pieces = []
        else:
            self.pieces.append(Piece(span, "" if joins else " "))

    def _whole(self, pattern: re.Pattern[str]) -> None:
        start = self.at
        self.pieces.append(Piece(self._span_of(self._match(pattern)), self.content[start : self.at], "atom"))

    def _span_of(self, found: re.Match[str]) -> Span:
        return self.places[found.start()], self.places[found.end() - 1] + 1

    def _mark(self, raw: str, kind: Kind) -> None:
        self.pieces.append(Piece(self._span(self._expect(raw)), kind=kind))

    def _tag(self, raw: str) -> None:
        found = _TAG.match(raw)
        is_pair = found is not None and found["name"].lower() in html.INLINE - html.VOID and not raw.endswith("/>")
        kind: Kind = "single" if not is_pair else "close" if found and found["close"] else "open"
        self._mark(raw, kind)

    def _image(self) -> None:
        start = self.at
        alt = self._match(_IMAGE)
        tail = self._match(_TAIL)
        if tail[0] not in ("]", "][]") and alt["alt"]:
            span = self.places[alt.start("alt")], self.places[alt.end("alt") - 1] + 1
            if (unit := unit_of(text_pieces(self.text, span), _escape)) is not None:
                self.units.append(unit)
        self.pieces.append(Piece(self._span(start), kind="single"))

    def _link(self, token: Token) -> None:
        if token.markup == "autolink":
            self._whole(_AUTOLINK)
            self.passes = True
        elif token.type == "link_open":
            self.links.append((self.at, len(self.pieces)))
            self._mark("[", "open")
        else:
            began, count = self.links.pop()
            tail = self._match(_TAIL)
            if tail[0] in ("]", "][]"):  # its text is its name: translated, it would lead nowhere
                del self.pieces[count:]
                self.pieces.append(Piece(self._span(began), self.content[began : self.at], "atom"))
            else:
                self.pieces.append(Piece(self._span_of(tail), kind="close"))


def _escape(text: str) -> str:
    """What would be markup gets a backslash; what stands for something else stays."""
    done, at = [], 0
    for kept in PLACEHOLDER.finditer(text):
        done += [_escaped(text[at : kept.start()]), kept[0]]
        at = kept.end()
    said = "".join([*done, _escaped(text[at:])])
    return _BLOCK.sub(_disarmed, said, count=1) if _BLOCK.match(said) else said


def _disarmed(found: re.Match[str]) -> str:
    return f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}"


def _escaped(text: str) -> str:
    return _ACTIVE.sub(lambda found: f"\\{found[0]}", text)


def _escape_cell(text: str) -> str:
    return _escape(text).replace("|", "\\|")
