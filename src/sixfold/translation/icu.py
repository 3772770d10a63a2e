"""Messages of ICU MessageFormat: the texts inside and around their plural and select arguments."""

from __future__ import annotations

import re

from sixfold.translation.result import Span

MAX_DEPTH = 10  # arguments inside each other
_ARGUMENT = re.compile(r"\{\s{0,9}[\w.-]{1,60}\s{0,9},\s{0,9}(?:plural|selectordinal|select)\s{0,9},")
_OFFSET = re.compile(r"\s*offset:\d{1,9}")
_BRANCH = re.compile(r"\s*(?:=\d{1,9}|[\w-]{1,60})\s*\{")
_ARGUMENT_END = re.compile(r"\s*\}")
# What has no meaning in a text: quoted characters, placeholders, and everything but braces and quotation marks. A
# quotation that has no end would take in the rest of the message.
_LITERAL = re.compile(r"''|'[{}#|][^']*+'|\{\{[^{}]*+\}\}|\{[^{}]*+\}|'(?![{}#|])|[^{}']++")


def message_texts(text: str) -> list[Span] | None:
    """Return the spans of the texts to translate in a message with plural or select arguments; None for other texts.

    "{n, plural, one {# cat} other {# cats}} here" has the texts "# cat", "# cats" and " here".
    """
    match = _ARGUMENT.search(text)
    if match is None:
        return None
    spans: list[Span] = []
    depth = 0  # branches around the position
    start = position = 0
    while position < len(text):
        if text[position] == "}":  # the end of a branch
            if depth == 0:
                return None
            spans.append((start, position))
            depth, position = depth - 1, position + 1
            entered = _next_branch(text, position)
        elif argument := _ARGUMENT.match(text, position):
            spans.append((start, position))
            offset = _OFFSET.match(text, argument.end())
            branch = _BRANCH.match(text, offset.end() if offset else argument.end())
            entered = (branch.end(), 1) if branch and depth < MAX_DEPTH else None
        elif literal := _LITERAL.match(text, position):
            position = literal.end()
            continue
        else:
            return None
        if entered is None:
            return None
        position, change = entered
        start, depth = position, depth + change
    return None if depth else [span for span in (*spans, (start, len(text))) if span[0] < span[1]]


def _next_branch(text: str, position: int) -> tuple[int, int] | None:
    """Return where the text after a branch begins and by how much the depth changes; None if it is no message.

    It is the next branch of the argument, or the text after the argument.
    """
    if branch := _BRANCH.match(text, position):
        return branch.end(), 1
    end = _ARGUMENT_END.match(text, position)
    return (end.end(), 0) if end else None


def has_same_frame(text: str, translation: str) -> bool:
    """Return whether a translation has the plural and select arguments of a text, with the same branches in order."""
    return _frame(text) == _frame(translation)


def _frame(text: str) -> list[str]:
    """Return what is between the texts of a message; nothing for other texts."""
    spans = message_texts(text) or []
    edges = [0, *(position for span in spans for position in span), len(text)]
    between = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)] if spans else []
    return [part for part in between if part]
