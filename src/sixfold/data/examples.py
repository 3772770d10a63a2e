"""Examples: the rows of a store in the roles that a task gives their columns, with tokens around them.

A task that translates both ways reads each row twice, once from source to target and once back, with a tag before the
text that names the target language. The store holds every row once; this module makes the examples when they are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from sixfold.data.batching import Pieces
from sixfold.data.store import Ragged, TokenStore


class Part(NamedTuple):
    """All rows of one corpus, in one role: a direction of translation, for example."""

    corpus: int
    columns: tuple[str, ...]  # for each column of an example, the column of the store that it is read from
    prefixes: tuple[tuple[int, ...], ...]  # for each column of an example, the ids that come before its text
    suffixes: tuple[tuple[int, ...], ...] = ()  # for each column, the ids that come after its text; (): none at all


@dataclass(frozen=True)
class ExampleSet:
    """What a model learns from: the examples of some parts of a store, one part after another."""

    store: TokenStore
    columns: tuple[str, ...]  # their names in an example
    parts: tuple[Part, ...]
    added: tuple[int, ...]  # tokens such as <bos> and <eos> that a batch has besides, for each column
    row_tokens: int = 0  # examples are joined and cut into rows of this length; 0: every example stays whole

    @classmethod
    def of_store(cls, store: TokenStore, added: Sequence[int]) -> ExampleSet:
        """Return every row of a store as it is."""
        columns = tuple(store.columns)
        parts = tuple(Part(corpus, columns, ((),) * len(columns)) for corpus in range(len(store.corpus_ends)))
        return cls(store, columns, parts, tuple(added))

    @cached_property
    def ends(self) -> list[int]:
        """Return where the examples of each part end."""
        sizes = np.diff([0, *self.store.corpus_ends])
        return np.cumsum([sizes[part.corpus] for part in self.parts]).tolist()

    @property
    def weights(self) -> list[float]:
        """Return how often the examples of each part are seen in an epoch."""
        return [self.store.corpora[part.corpus].weight for part in self.parts]

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def lengths(self) -> dict[str, np.ndarray]:
        """Return the length of every example in each column as a model reads it, with all tokens around its text."""
        stored = {name: column.lengths() for name, column in self.store.columns.items()}
        bounds = [0, *self.store.corpus_ends]
        result = {name: np.empty(len(self), np.int32) for name in self.columns}
        for part, begin, end in zip(self.parts, [0, *self.ends], self.ends, strict=False):
            rows = slice(bounds[part.corpus], bounds[part.corpus + 1])
            for index, (name, column, added) in enumerate(zip(self.columns, part.columns, self.added, strict=True)):
                around = len(part.prefixes[index]) + len(suffix_of(part, index)) + added
                np.add(stored[column][rows], around, out=result[name][begin:end])
        return result

    def gather(self, numbers: np.ndarray) -> dict[str, Ragged]:
        """Read the examples with these numbers: prefix, text and suffix, without added tokens."""
        part, rows = self._rows(numbers)
        return {name: self._gather_column(index, part, rows) for index, name in enumerate(self.columns)}

    def gather_pieces(self, numbers: np.ndarray, pieces: Pieces) -> dict[str, Ragged]:
        """Read a part of each of these examples, which have one column and no prefixes.

        A text of n tokens counts as n + 1: each token is read to predict the next, <bos> is read first, and <eos> is
        predicted last. So the piece that begins at position b has the tokens from number b - 1 on, where there is one.
        """
        (name,) = self.columns
        column = self.store.columns[name]
        begins, lengths = column.spans(self._rows(numbers)[1])
        first = np.maximum(pieces.begins - 1, 0)
        last = np.minimum(pieces.begins + pieces.lengths, lengths)
        return {name: Ragged(column.read(begins + first, last - first), last - first)}

    def where(self, number: int) -> str:
        """Return the file and line that an example comes from."""
        (part,), (row,) = self._rows(np.array([number]))
        return self.store.corpora[self.parts[part].corpus].where(int(self.store.lines[row]))

    def _rows(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the part that each example is in, and its row in the store."""
        part = np.searchsorted(self.ends, numbers, side="right")
        begins = np.array([0, *self.store.corpus_ends])[[each.corpus for each in self.parts]]
        return part, numbers - np.array([0, *self.ends])[part] + begins[part]

    def _gather_column(self, index: int, part: np.ndarray, rows: np.ndarray) -> Ragged:
        names = [each.columns[index] for each in self.parts]
        around = [(each.prefixes[index], suffix_of(each, index)) for each in self.parts]
        if len(set(names)) == 1:
            text = self.store.columns[names[0]].take(rows)
        else:
            text = self._gather_mixed(names, part, rows)
        return _surround(text, around, part) if any(chain.from_iterable(around)) else text

    def _gather_mixed(self, names: Sequence[str], part: np.ndarray, rows: np.ndarray) -> Ragged:
        """Read each row from the column of the store that its part names."""
        lengths = np.empty(len(rows), np.int64)
        chosen = {name: np.array([each == name for each in names])[part] for name in dict.fromkeys(names)}
        for name, mask in chosen.items():
            lengths[mask] = self.store.columns[name].spans(rows[mask])[1]
        values = np.empty(lengths.sum(), np.int64)
        for name, mask in chosen.items():
            values[np.repeat(mask, lengths)] = self.store.columns[name].take(rows[mask]).values
        return Ragged(values, lengths)


def suffix_of(part: Part, index: int) -> tuple[int, ...]:
    """Return the ids that come after the texts of a column of a part."""
    return part.suffixes[index] if part.suffixes else ()


def _surround(text: Ragged, around: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], part: np.ndarray) -> Ragged:
    """Put the prefix and the suffix of its part around each text."""
    before, after = (np.array([len(pair[side]) for pair in around])[part] for side in (0, 1))
    lengths = text.lengths + before + after
    begins = np.cumsum(lengths) - lengths
    text_begins = begins + before
    values = np.empty(lengths.sum(), np.int64)
    shift = text_begins - (np.cumsum(text.lengths) - text.lengths)
    values[np.arange(len(text.values)) + np.repeat(shift, text.lengths)] = text.values
    for side, first, counts in ((0, begins, before), (1, text_begins + text.lengths, after)):
        for position in range(counts.max(initial=0)):
            token = np.array([pair[side][position] if position < len(pair[side]) else 0 for pair in around])
            has_token = counts > position
            values[first[has_token] + position] = token[part[has_token]]
    return Ragged(values, lengths)


@dataclass(frozen=True)
class Packing:
    """How the examples of a batch are packed: several in each row, in a batch whose shape is always the same."""

    counts: np.ndarray  # examples in each row; rows at the end may be empty
    rows: int
    lengths: Mapping[str, int]  # of a row, in each column


@dataclass(frozen=True)
class Examples:
    """The examples of one micro-batch, as a task's `collate` gets them."""

    columns: Mapping[str, Ragged]
    numbers: np.ndarray  # of the examples in their set
    packing: Packing | None = None  # None: each example has a row of its own, padded
    pieces: Pieces | None = None  # which part of each example `columns` has, see gather_pieces; None: all of it
    micro_batch: int = 0  # its number in the step
    has_loss: bool = True  # False: it only keeps a rank busy that has none of its own in this step
