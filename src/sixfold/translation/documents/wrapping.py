"""Line breaks inside a text: those that only wrap it are taken out before translation, and lines are broken again."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from sixfold.text.languages import LETTERS
from sixfold.translation.documents.units import Span
from sixfold.translation.protection import Edit, apply_edits, protected_spans

MIN_WRAPPED = 15  # columns of a line that can have been wrapped before a word in lower case
MIN_PARAGRAPH = 55  # columns of the longest line of a paragraph that is wrapped before any word
MAX_BALANCED = 150  # pieces of a text whose lines are made of one length; the time grows with the square

_WIDE = "".join(LETTERS[script] for script in ("Han", "Hiragana", "Katakana", "Hangul"))
_OPENING, _CLOSING = "（《「『【〈“‘", "，。！？；：、）》」』】〉”’…—％"
_OPEN_TAG, _CLOSE_TAG, _FILLER = "\U000f0000", "\U000f0001", "\U000f0002"  # stand for tags and for placeholders
_SINGLE = f"{_WIDE}{_OPENING}{_CLOSING}"
_PIECE = re.compile(
    rf"\s+|[{_SINGLE}]|{_OPEN_TAG}+|{_CLOSE_TAG}+|{_FILLER}+|[^\s{_SINGLE}{_OPEN_TAG}{_CLOSE_TAG}{_FILLER}]+"
)
_KEEPS_NEXT = re.compile(rf"[{_OPENING}{_OPEN_TAG}(\[{{$#]\Z")  # no line ends with it
_PARTICLES = "的了着过们吗呢吧啊呀"  # Chinese words and endings that belong to the word before
_KEEPS_PREVIOUS = re.compile(rf"[{_CLOSING}{_CLOSE_TAG}{_PARTICLES},.!?;:)\]}}%]")  # no line begins with it
_LATIN_END, _LATIN_START = (re.compile(pattern) for pattern in (rf"[^\s{_SINGLE}]\Z", rf"[^\s{_SINGLE}]"))
_TAG = re.compile(r"<(?P<close>/?)[^<>]{0,500}>|\{\\[^{}\n]{0,100}\}")
_INLINE_NAME = "a|abbr|b|big|cite|del|em|font|i|ins|mark|q|s|small|span|strong|sub|sup|u"
_ELEMENT = re.compile(
    rf"<(?P<name>{_INLINE_NAME})(?=[\s>])[^<>]{{0,500}}>(?:[^<]|<(?!/?(?P=name)[\s>])){{1,2000}}+</(?P=name)\s*>", re.I
)
_BREAK_OR_TAG = re.compile(r"<[^<>]*>|(?<=\S)[ \t\r]*\n[ \t]*(?=\S)")
# Line beginnings that begin something of their own: items of lists, options, quotations, tables, rules.
_ITEM = re.compile(r"\s*(?:[-*•·+#>|=~$%@]|\(?\d{1,3}[.):]\s|\(?[a-zA-Z][.)]\s|<\w)")
_SENTENCE_END = re.compile(r"[.!?:。！？：…][\"'”’)\]」』）]*\s*\Z")
_CONTINUATION = re.compile(r"\s*[\"'“‘(\[<`]?[a-zß-öø-ÿа-я%{]")
_WIDE_START = re.compile(rf"\s*[{_WIDE}]")


class Wrapping(NamedTuple):
    """How a line of a text was wrapped."""

    columns: int  # of the longest line
    indent: str  # of the lines after the first


def display_width(text: str) -> int:
    """Return the columns that a text takes in a terminal; a Chinese character takes two."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def breaks_in_elements(text: str) -> list[Span]:
    """Return the line breaks inside inline elements of HTML, with the white space around them.

    Such a break is a space, as in "<b>one\\ntwo</b>", and what it divides cannot be translated line by line.
    """
    if "\n" not in text or "</" not in text:
        return []
    elements = [match for match in _ELEMENT.finditer(text) if "\n" in match[0]]
    breaks = (match for element in elements for match in _BREAK_OR_TAG.finditer(text, *element.span()))
    return [match.span() for match in breaks if not match[0].startswith("<")]


def join_elements(text: str) -> str:
    """Return a text with a space for each line break inside an inline element of HTML."""
    return apply_edits(text, [Edit(span, " ") for span in breaks_in_elements(text)])


def join_wrapped(text: str) -> tuple[str, Callable[[str], str]]:
    """Return a text without the line breaks that only wrap it, and the function that wraps its translation as long.

    "The name of\\nthe file.\\n\\nIts size" has one such break. Breaks stay before items of lists, after the end of a
    sentence, at a blank line, and in a line that is too short to have been wrapped.
    """
    if "\n" not in text:
        return text, str
    lines: list[str] = []
    wrappings: list[Wrapping | None] = []
    in_elements = {text.index("\n", start) + 1 for start, _ in breaks_in_elements(text)}
    position = 0
    for paragraph in re.split(r"(?<=\n)(?=[^\S\n]*\n)|(?<=\n)(?<!\S\n)", text):
        _join_paragraph(paragraph, lines, wrappings, position, in_elements)
        position += len(paragraph)
    joined = "".join(lines)
    if not any(wrappings):
        return text, str
    return joined, lambda translation: _wrap_lines(translation, wrappings)


def _join_paragraph(
    paragraph: str, lines: list[str], wrappings: list[Wrapping | None], position: int, continuations: Collection[int]
) -> None:
    """Add the lines of a paragraph, each with its line feed, to `lines`; those that were wrapped as one line.

    `position`: of the paragraph in its text. `continuations`: the positions in the text of the lines that surely go on
    with the line before.
    """
    raw_lines = paragraph.splitlines(keepends=True) if "\r" in paragraph else re.findall(r"[^\n]*\n|[^\n]+", paragraph)
    columns = max((display_width(line.rstrip()) for line in raw_lines), default=0)
    columns_of_translation = max(columns, min(columns * 5 // 4, MIN_PARAGRAPH))  # so that no word is left alone
    previous = ""
    starts = accumulate((len(line) for line in raw_lines), initial=position)
    for start, line in zip(starts, raw_lines, strict=False):
        if previous and (start in continuations or _continues(previous, line, columns, wrappings[-1])):
            body, end = lines[-1].rstrip(), line.lstrip(" \t")
            is_spaced = not (_WIDE_START.match(end) and _WIDE_START.match(body[-1:]))
            lines[-1] = body + (" " if is_spaced else "") + end
            wrappings[-1] = wrappings[-1] or Wrapping(columns_of_translation, line[: len(line) - len(end)])
        else:
            lines.append(line)
            wrappings.append(None)
        previous = line


def _continues(previous: str, line: str, columns: int, wrapping: Wrapping | None) -> bool:
    """Return whether a line break only wraps the text before and after it."""
    body, indent = line.strip(), line[: len(line) - len(line.lstrip(" \t"))]
    before = previous.rstrip()
    previous_indent = previous[: len(previous) - len(previous.lstrip(" \t"))]
    if not body or not before.strip() or _ITEM.match(line) or _SENTENCE_END.search(before[-8:]):
        return False
    if indent != (wrapping.indent if wrapping else previous_indent) and (
        wrapping or len(indent) < len(previous_indent)
    ):
        return False
    width = display_width(before)
    if _CONTINUATION.match(line):
        return width >= MIN_WRAPPED and " " in before.strip()
    word = body[:1] if _WIDE_START.match(body) else body.split(None, 1)[0]
    return columns >= MIN_PARAGRAPH and width + 1 + display_width(word) > columns


def _wrap_lines(translation: str, wrappings: Sequence[Wrapping | None]) -> str:
    lines = translation.split("\n")
    if len(lines) not in (
        len(wrappings),
        len(wrappings) + 1,
    ):  # the lines of the source are not those of the translation
        widest = max((wrapping.columns for wrapping in wrappings if wrapping), default=0)
        wrappings = [Wrapping(widest, "")] * len(lines)
    return "\n".join(
        wrap(line, wrapping.columns, wrapping.indent) if wrapping else line
        for line, wrapping in zip(lines, [*wrappings, None], strict=False)
    )


def wrap(line: str, columns: int, indent: str = "") -> str:
    """Return a line broken into lines of at most so many columns, as far as its words allow that."""
    pieces = line_pieces(line)
    lines, current, width = [], "", 0
    for piece in pieces:
        size = display_width(piece)
        if width + size > columns and current.strip() and not piece.isspace():
            lines.append(current.rstrip())
            current, width = indent, display_width(indent)
        current += piece
        width += size
    return "\n".join([*lines, current])


def line_pieces(text: str) -> list[str]:
    """Return a text in parts that a line break can stand between: words, white space, single Chinese characters.

    Placeholders and tags are not broken; a tag stays with what it opens or closes.
    """
    masked = apply_edits(
        text,
        [Edit((start, end), _FILLER * (end - start)) for start, end in protected_spans(text) if text[start] != "<"],
    )
    masked = _TAG.sub(lambda tag: (_CLOSE_TAG if tag["close"] else _OPEN_TAG) * len(tag[0]), masked)
    starts: list[int] = []
    previous = ""
    for match in _PIECE.finditer(masked):
        piece = match[0]
        is_joined = not piece.isspace() and previous and not previous.isspace() and (
            _KEEPS_NEXT.search(previous) or _KEEPS_PREVIOUS.match(piece)
            or (_LATIN_END.search(previous) and _LATIN_START.match(piece))
        )  # fmt: skip
        if not is_joined:
            starts.append(match.start())
        previous = piece
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def visible_width(text: str) -> int:
    """Return the columns of a text without the tags in it."""
    return display_width(_TAG.sub("", text) if "<" in text or "{" in text else text)


def balance(text: str, count: int, columns: int) -> list[str]:
    """Return a text as so many lines of about one length, or more if one would be wider than `columns`.

    Breaks after punctuation are preferred.
    """
    pieces = [(piece, visible_width(piece)) for piece in line_pieces(text.strip())]
    total = sum(width for _, width in pieces)
    count = max(1, count, -(-total // columns))
    if len(pieces) > MAX_BALANCED:
        return wrap(text.strip(), columns).split("\n")
    while True:
        lines = _best_lines(pieces, count, columns)
        if lines or count > len(pieces):
            return lines or wrap(text.strip(), columns).split("\n")
        count += 1


def _best_lines(pieces: Sequence[tuple[str, int]], count: int, columns: int) -> list[str]:
    """Return the best lines by dynamic programming; none if there are no such lines."""
    ends = [0, *accumulate(width for _, width in pieces)]
    breaks = [0, *(index for index in range(1, len(pieces)) if not pieces[index - 1][0].isspace())]
    aim = ends[-1] / count
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, (0,))}
    for number in range(1, count + 1):
        reached: dict[int, tuple[float, tuple[int, ...]]] = {}
        for stop in breaks if number < count else [len(pieces)]:
            for start in range(stop - 1, -1, -1):
                width = ends[stop] - ends[start]
                if width > columns + 1:
                    break
                if start in best:
                    cost = best[start][0] + (width - aim) ** 2 + _break_cost(pieces, stop, aim)
                    if stop not in reached or cost < reached[stop][0]:
                        reached[stop] = cost, (*best[start][1], stop)
        best = reached
    if len(pieces) not in best:
        return []
    lines = [
        "".join(piece for piece, _ in pieces[start:stop]).strip() for start, stop in pairwise(best[len(pieces)][1])
    ]
    return lines if all(lines) and all(visible_width(line) <= columns for line in lines) else []


def _break_cost(pieces: Sequence[tuple[str, int]], stop: int, aim: float) -> float:
    if stop == len(pieces) or re.search(r"[，。！？；：、,.!?;:…—](?:<[^<>]*>)*\Z", pieces[stop - 1][0][-80:]):
        return 0.0
    if pieces[stop][0].isspace() or pieces[stop - 1][0][-1:] in _PARTICLES:
        return 0.15 * aim**2
    return 0.4 * aim**2
