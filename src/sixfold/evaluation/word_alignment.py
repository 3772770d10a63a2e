"""Word alignments annotated by hand, and the alignment error rate (AER) of links against them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sixfold.errors import DataError

Span = tuple[int, int]
Link = tuple[int, int]  # the index of a target word, and that of a source word

_WORD = re.compile(r"([^{}]*)\{([^{}]*)\}")


@dataclass(frozen=True)
class AnnotatedPair:
    """A sentence pair with the spans of its words, and the links between words that translate each other.

    Possible links include the sure ones. In the error rate, a possible link that is not sure may be present or absent.
    """

    languages: tuple[str, str]
    source: str
    target: str
    source_words: tuple[Span, ...]
    target_words: tuple[Span, ...]
    sure: frozenset[Link]
    possible: frozenset[Link]

    def links(self, spans: Iterable[tuple[Span, Span]]) -> frozenset[Link]:
        """Return links between words, from pairs of a target span and a source span: all words that they overlap."""
        return frozenset(
            (target, source)
            for target_span, source_span in spans
            for target in _overlapping(self.target_words, target_span)
            for source in _overlapping(self.source_words, source_span)
        )


def read_annotated_pairs(path: Path) -> list[AnnotatedPair]:
    """Read lines of direction, source and target, separated by tabs; a line that begins with # is a comment.

    Each word ends with its labels in braces. Words with the same number on both sides have a sure link; `~2` is a
    possible link to the words with the number 2 on the other side: `这{1}本{~1}书{2}` and `This{1} book{2}`.
    """
    pairs = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("#"):
            continue
        columns = line.split("\t")
        if len(columns) != 3 or columns[0].count("-") != 1:
            raise DataError(f"{path}:{number}: expected a direction such as zh-en, a source and a target")
        source_language, target_language = columns[0].split("-")
        source, target = (_parse_words(text, f"{path}:{number}") for text in columns[1:])
        sure, possible = set(), set()
        for row, (_, target_sure, target_possible) in enumerate(target):
            for column, (_, source_sure, source_possible) in enumerate(source):
                if target_sure & source_sure:
                    sure.add((row, column))
                if target_sure & source_sure or target_sure & source_possible or target_possible & source_sure:
                    possible.add((row, column))
        pairs.append(
            AnnotatedPair(
                (source_language, target_language), _WORD.sub(r"\1", columns[1]),
                _WORD.sub(r"\1", columns[2]),
                tuple(span for span, _, _ in source), tuple(span for span, _, _ in target),
                frozenset(sure), frozenset(possible),
            )
        )  # fmt: skip
    return pairs


def alignment_error_rate(pairs: Iterable[tuple[AnnotatedPair, frozenset[Link]]]) -> float:
    """Return 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|) over all pairs, of links A, sure links S and possible links P."""
    hits = total = 0
    for annotated, links in pairs:
        hits += len(links & annotated.sure) + len(links & annotated.possible)
        total += len(links) + len(annotated.sure)
    return 1 - hits / total if total else 0.0


def _overlapping(words: tuple[Span, ...], span: Span) -> list[int]:
    return [index for index, (start, end) in enumerate(words) if start < span[1] and span[0] < end]


def _parse_words(text: str, where: str) -> list[tuple[Span, set[str], set[str]]]:
    """Return the span of each word in the text without labels, its sure labels and its possible labels."""
    if _WORD.sub("", text):
        raise DataError(f"{where}: expected every word to end in labels such as {{1}}; got {text!r:.60}")
    words = []
    end = 0
    for word in _WORD.finditer(text):
        start, end = end, end + len(word[1])
        labels = word[2].split(",") if word[2] else []
        first_letter = start + len(word[1]) - len(word[1].lstrip())
        sure = {number for label in labels for number in label.split("~")[:1] if number}
        possible = {number for label in labels for number in label.split("~")[1:]}
        words.append(((first_letter, end), sure, possible))
    return words
