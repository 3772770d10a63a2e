"""Sentences of test sets, or near-duplicates of them, in a corpus: they would make every score too high."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sixfold.audit.near_duplicates import Index
from sixfold.audit.text_arrays import TextArrays
from sixfold.data.corpus import RECORDS, Corpus, read_corpus_lines, uncompressed_name
from sixfold.errors import DataError


@dataclass(frozen=True)
class HeldOut:
    """The texts of test sets, indexed so that they can be found in a corpus."""

    index: Index
    locations: list[str]  # file:line of every text

    @classmethod
    def of(cls, files: Sequence[Path], languages: tuple[str, str]) -> HeldOut:
        """Index the texts of files; each file holds lines of either language, or pairs."""
        texts: list[str] = []
        locations: list[str] = []
        for file in files:
            before = len(texts)
            for number, text in _texts(file, languages):
                texts.append(text)
                locations.append(f"{file.name}:{number}")
            if len(texts) == before:
                raise DataError(f"{file}: expected sentences that must not be trained on; the file is empty")
        return cls(Index.of(TextArrays.of(texts)), locations)

    def find_in(self, signatures: tuple[np.ndarray, np.ndarray]) -> Iterator[tuple[int, float, str]]:
        """Yield the row of each pair with a held-out side, its similarity, and the location in the test set."""
        matches, scores = zip(*(self.index.look_up(side) for side in signatures), strict=True)
        better = np.where(scores[0] >= scores[1], matches[0], matches[1])
        for row in np.flatnonzero(better >= 0):
            yield int(row), float(max(scores[0][row], scores[1][row])), self.locations[better[row]]


def _texts(file: Path, languages: tuple[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the texts of a file with their line numbers."""
    ending = uncompressed_name(file).suffix.lower()
    first = next(read_corpus_lines(file), "")
    if ending == ".tsv" or ending in RECORDS or (ending == ".txt" and "\t" in first):
        for pair in Corpus(file.name, (file,), languages=languages).pairs():
            yield pair.line, pair.source
            yield pair.line, pair.target
    else:
        yield from enumerate(read_corpus_lines(file), start=1)
