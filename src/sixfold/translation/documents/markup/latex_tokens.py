"""LaTeX: the commands, groups, maths and comments of a document with their positions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.markup.latex_syntax import ACCENT, CHARACTERS, SYMBOLS, VERBATIM
from sixfold.translation.documents.units import MAX_DEPTH, Span

_TOKEN_PATTERN = (
    r"(?P<comment>%[^\n]*(?:\n(?![ \t]*\n)[ \t]*)?)|(?P<paragraph>\n[ \t]*\n\s*)"
    r"|\\(?:(?P<verb>verb\*?|lstinline)(?=[^\s\w*]|\[)|(?P<begin>begin|end)[ \t]*\{(?P<environment>[^{}\n]*)\}"
    r"|(?P<word>[A-Za-z@]+\*?)|(?P<symbol>.))"
    r"|(?P<maths>\$\$?)|(?P<open>\{)|(?P<close>\})|(?P<cell>&)"
    # Characters that documents make commands of, with what follows them, as ^{word}.
    r"|(?P<special>(?:(?<![A-Za-z\d])[A-Za-z\d]{1,40}_[A-Za-z\d_]*|[\^_#]+\d?)(?:\{[^{}\n]{0,80}\}|\|[^|\n]{1,80}\|)?)"
)
_TOKEN = re.compile(_TOKEN_PATTERN, re.S)
_TOKEN_OR_BARS = re.compile(rf"(?P<bars>\|[^|\n]{{1,80}}\|)|{_TOKEN_PATTERN}", re.S)
_BRACE = re.compile(r"\\.|%[^\n]*|[{}]", re.S)
_SPACE = re.compile(r"[ \t]*(?:%[^\n]*)?\n?[ \t]*")
MAX_ARGUMENT = 20_000  # characters
MAX_MATHS = 20_000


class Token(NamedTuple):
    """A part of a document that is no plain text."""

    kind: str  # comment, paragraph, verb, begin, end, word, symbol, maths, display, open, close, cell, special or bars
    span: Span
    name: str = ""  # of a command or an environment


def tokens(text: str, start: int, end: int, has_bars: bool = False) -> Iterator[Token]:
    """Yield what is no plain text, from left to right; a verbatim environment is one token.

    `has_bars`: text between bars is verbatim, as in |\\section|.
    """
    position = start
    pattern = _TOKEN_OR_BARS if has_bars else _TOKEN
    while (match := pattern.search(text, position, end)) is not None:
        check_cancelled()
        kind = next(name for name, value in match.groupdict().items() if value is not None and name != "environment")
        position = match.end()
        name = match["environment"] if kind == "begin" else match["word"] or match["symbol"] or ""
        if kind == "symbol" and name in "([":
            kind, position = _maths_end(text, position, end, "\\)" if name == "(" else "\\]")
        elif kind == "maths":
            kind, position = _maths_end(text, position, end, match[0])
        elif kind == "verb":
            position = _verb_end(text, position, end)
        elif (kind in ("word", "symbol")) and (
            name in CHARACTERS or name in SYMBOLS or ACCENT.match(text, match.start())
        ):
            continue  # a character, which is text
        elif kind == "begin" and match["begin"] == "end":
            kind = "end"
        elif kind == "begin" and name in VERBATIM:
            closing = text.find(f"\\end{{{name}}}", position, end)
            kind, position = "verbatim", closing + len(name) + 6 if closing >= 0 else end
        yield Token(kind, (match.start(), position), name)


def _maths_end(text: str, position: int, end: int, closing: str) -> tuple[str, int]:
    """Return the kind of maths that begins before a position, and where it ends; a sign without an end is a symbol."""
    limit = min(end, position + MAX_MATHS)
    place = text.find(closing, position, limit)
    while place > 0 and text[place - 1] == "\\" and closing.startswith("$") and text[place - 2 : place] != "\\\\":
        place = text.find(closing, place + 1, limit)
    if place < 0 or "\n\n" in text[position:place]:
        return "symbol", position
    return "display" if closing in ("$$", "\\]") else "maths", place + len(closing)


def _verb_end(text: str, position: int, end: int) -> int:
    if text[position] == "[":
        position = argument_end(text, position, end)
    closing = {"{": "}"}.get(text[position : position + 1], text[position : position + 1])
    place = text.find(closing, position + 1, min(end, position + 500)) if closing else -1
    return place + 1 if place >= 0 else position


@lru_cache(maxsize=2)
def _brace_ends(text: str) -> dict[int, int]:
    """Return where the group of each opening brace ends, and 0 for a brace that is not closed."""
    ends: dict[int, int] = {}
    open_braces: list[int] = []
    for match in _BRACE.finditer(text):
        if match[0] == "{":
            open_braces.append(match.start())
        elif match[0] == "}" and open_braces:
            ends[open_braces.pop()] = match.end()
    return ends | dict.fromkeys(open_braces, 0)


def argument_end(text: str, position: int, end: int) -> int:
    """Return where the argument ends that begins at a position with `{` or `[`; the position itself if it does not."""
    limit = min(end, position + MAX_ARGUMENT)
    if (stop := _brace_ends(text).get(position)) is not None:
        return stop if position < stop <= limit else position
    closing = {"{": "}", "[": "]"}[text[position]]
    depth, place = 0, position
    while place < limit:
        char = text[place]
        if char == "\\":
            place += 1
        elif char == "%":
            place = text.find("\n", place, limit)
            if place < 0:
                return position
        elif char == "{" or (char == "[" and place == position):
            depth += 1
        elif char == "}" or (char == closing and depth == 1):
            depth -= 1
            if depth == 0:
                return place + 1 if char == closing else position
        place += 1
    return position


def arguments(text: str, position: int, end: int, spaced: bool = True) -> list[Span]:
    """Return the spans of the arguments that follow a command, with their brackets and braces."""
    spans: list[Span] = []
    while len(spans) < MAX_DEPTH:
        match = _SPACE.match(text, position, end) if spaced else None
        start = match.end() if match else position
        if text[start : start + 1] not in ("{", "[") or start >= end:
            break
        stop = argument_end(text, start, end)
        if stop == start:
            break
        spans.append((start, stop))
        position = stop
    return spans
