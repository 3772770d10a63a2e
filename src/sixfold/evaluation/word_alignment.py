"""Word alignments marked by hand, and the alignment error rate of links against them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sixfold.errors import DataError

Span = tuple[int, int]
Pair = tuple[int, int]  # the number of a target word, and that of a source word

_WORD = re.compile(r"([^{}]*)\{([^{}]*)\}")


@dataclass(frozen=True)
class MarkedPair:
    """A sentence pair with the spans of its words, and which of them are translations of each other.

    Possible links, which contain the sure ones, cost nothing when they are found and nothing when they are missed.
    """

    languages: tuple[str, str]
    source: str
    target: str
    source_words: tuple[Span, ...]
    target_words: tuple[Span, ...]
    sure: frozenset[Pair]
    possible: frozenset[Pair]

    def links(self, spans: Iterable[tuple[Span, Span]]) -> frozenset[Pair]:
        """Links between spans of target and source as pairs of marked words: of all words that they touch."""
        return frozenset(
            (target, source)
            for written, read in spans
            for target in _touched(self.target_words, written)
            for source in _touched(self.source_words, read)
        )


def read_marked_pairs(path: Path) -> list[MarkedPair]:
    """Lines of direction, source and target, separated by tabs; a line that begins with # is a comment.

    A word ends where {labels} stand. Words with the same number on both sides are sure links, `~2` is a possible link
    to the words with the number 2 on the other side: `这{1}本{~1}书{2}` and `This{1} book{2}`.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != 3 or columns[0].count("-") != 1:
            raise DataError(f"{path}:{number}: expected a direction such as zh-en, a source and a target")
        one, other = columns[0].split("-")
        source, target = (_words(text, f"{path}:{number}") for text in columns[1:])
        sure, possible = set(), set()
        for row, (_, written, maybe_written) in enumerate(target):
            for column, (_, read, maybe_read) in enumerate(source):
                if written & read:
                    sure.add((row, column))
                if written & read or written & maybe_read or maybe_written & read:
                    possible.add((row, column))
        found.append(
            MarkedPair(
                (one, other), _WORD.sub(r"\1", columns[1]), _WORD.sub(r"\1", columns[2]),
                tuple(span for span, _, _ in source), tuple(span for span, _, _ in target),
                frozenset(sure), frozenset(possible),
            )
        )  # fmt: skip
    return found


def error_rate(pairs: Iterable[tuple[MarkedPair, frozenset[Pair]]]) -> float:
    """1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|) over all pairs, of links A, sure links S and possible links P."""
    hits = total = 0
    for marked, links in pairs:
        hits += len(links & marked.sure) + len(links & marked.possible)
        total += len(links) + len(marked.sure)
    return 1 - hits / total if total else 0.0


def _touched(words: tuple[Span, ...], span: Span) -> list[int]:
    return [number for number, (start, end) in enumerate(words) if start < span[1] and span[0] < end]


def _words(text: str, where: str) -> list[tuple[Span, set[str], set[str]]]:
    """The span of each word in the text without labels, its numbers, and those it may belong to."""
    if _WORD.sub("", text):
        raise DataError(f"{where}: expected every word to end in labels such as {{1}}; got {text!r:.60}")
    found = []
    end = 0
    for word in _WORD.finditer(text):
        start, end = end, end + len(word[1])
        labels = word[2].split(",") if word[2] else []
        bare = start + len(word[1]) - len(word[1].lstrip())
        numbers = {label for name in labels for label in name.split("~")[:1] if label}
        maybe = {label for name in labels for label in name.split("~")[1:]}
        found.append(((bare, end), numbers, maybe))
    return found
