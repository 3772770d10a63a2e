"""Batches by tokens, padded or packed: their examples and order follow from the seed and the epoch alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

ROW_MULTIPLE = 8  # the rows of a large batch come in multiples of this, which matrix units prefer
Batch = TypeVar("Batch")


def rows_of_epoch(ends: Sequence[int], weights: Sequence[float], seed: int, epoch: int) -> np.ndarray:
    """Return the examples of an epoch: those of each part as often as its weight says.

    A fractional weight takes another share of the part every epoch.
    """
    chosen = []
    for begin, end, weight in zip([0, *ends[:-1]], ends, weights, strict=True):
        rows = np.arange(begin, end, dtype=np.int32 if ends[-1] < 2**31 else np.int64)
        share = round((weight % 1) * len(rows))
        if share:
            order = np.random.default_rng((seed, begin)).permutation(rows)
            chosen.append(np.roll(order, -epoch * share)[:share])
        chosen += [rows] * int(weight)
    return np.concatenate(chosen) if chosen else np.empty(0, np.int64)


def length_batches(
    rows: np.ndarray, lengths: Mapping[str, np.ndarray], budget: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """Return batches of rows in random order; the longest column of each has at most `budget` tokens with padding.

    Rows are sorted by their first column and within it by their last, every other length downwards, so that no border
    between two lengths is a jump. A little noise keeps the batches of two epochs from being the same.
    """
    random = np.random.default_rng((seed, epoch, 1))
    rows = random.permutation(rows)
    columns = list(lengths.values())
    rows = rows[_length_order([column[rows] for column in columns], random)]
    longest = np.maximum.reduce([column[rows] for column in columns])
    batches = []
    begin = 0
    while begin < len(rows):
        window = longest[begin : begin + max(1, budget // int(longest[begin]))]
        cost = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
        fit = max(1, int(np.searchsorted(cost, budget, side="right")))
        if fit >= 4 * ROW_MULTIPLE and begin + fit < len(rows):
            fit -= fit % ROW_MULTIPLE
        batches.append(rows[begin : begin + fit])
        begin += fit
    return [batches[index] for index in random.permutation(len(batches))]


def _length_order(lengths: Sequence[np.ndarray], random: np.random.Generator) -> np.ndarray:
    """Sort by the first and the last column at once: one number holds both, which halves the memory of two keys."""
    first, last = lengths[0], lengths[-1]
    last = last + random.integers(-1, 2, len(last), dtype=np.int8)
    key = first.astype(np.int64) << 32
    key += np.where(first % 2, last, -last)
    return np.argsort(key, kind="stable")


def padding_share(batches: Sequence[np.ndarray], lengths: Mapping[str, np.ndarray]) -> float:
    """Return the share of padding in what the model reads."""
    columns = list(lengths.values())
    real = sum(int(column[rows].sum()) for rows in batches for column in columns)
    padded = sum(len(rows) * int(column[rows].max()) for rows in batches for column in columns)
    return 1 - real / padded if padded else 0.0


def group_steps(batches: Sequence[Batch], micro_batches: int) -> list[list[Batch]]:
    """Group micro-batches: the gradients of a group make one step."""
    return [list(batches[begin : begin + micro_batches]) for begin in range(0, len(batches), micro_batches)]


LENGTH_MULTIPLE = 16  # the length of a row is a multiple of this, which matrix units prefer
MIN_ROW_LENGTH = 128  # shorter rows are no faster, and harder to fill

RowLengths = Mapping[str, int]  # tokens that a row has room for, in each column


def round_up(length: float) -> int:
    """Round a length up to a multiple of LENGTH_MULTIPLE."""
    return -(-math.ceil(length) // LENGTH_MULTIPLE) * LENGTH_MULTIPLE


def widen(row_lengths: RowLengths, growth: float) -> dict[str, int]:
    """Return rows with room for texts that may still grow by this share of their length."""
    return {name: round_up(length * (1 + growth)) for name, length in row_lengths.items()}


def choose_row_lengths(lengths: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Return row lengths that hold the longest example, in the proportion of the columns, so that all fill up alike."""
    longest = {name: int(column.max(initial=1)) for name, column in lengths.items()}
    totals = {name: max(1, int(column.sum())) for name, column in lengths.items()}
    scale = max(MIN_ROW_LENGTH / max(totals.values()), *(longest[name] / totals[name] for name in lengths))
    return {name: round_up(scale * total) for name, total in totals.items()}


class Pieces(NamedTuple):
    """Parts of examples, in tokens as a model reads them."""

    begins: np.ndarray  # where each piece begins in its example
    lengths: np.ndarray

    def part(self, first: int, last: int) -> Pieces:
        """Return the pieces from number `first` to before `last`."""
        return Pieces(self.begins[first:last], self.lengths[first:last])


class PackedRows(NamedTuple):
    """Examples in rows: first those of the first row, then those of the second, and so on."""

    examples: np.ndarray
    counts: np.ndarray  # examples in each row
    pieces: Pieces | None = None  # which part of each example is in its row; None: all of it

    def split(self, rows: int) -> list[PackedRows]:
        """Cut into batches of this many rows; the last may have fewer."""
        begins = range(0, len(self.counts), rows)
        ends = np.cumsum(self.counts)
        cuts = [*(int(ends[begin - 1]) if begin else 0 for begin in begins), len(self.examples)]
        return [
            PackedRows(
                self.examples[first:last],
                self.counts[begin : begin + rows],
                self.pieces and self.pieces.part(first, last),
            )
            for begin, first, last in zip(begins, cuts[:-1], cuts[1:], strict=True)
        ]


def join_and_cut(examples: np.ndarray, lengths: np.ndarray, row_length: int, seed: int, epoch: int) -> PackedRows:
    """Join examples in random order and cut them into rows of one length, which come in random order.

    For example, examples of lengths 3 and 4 in this order and rows of 5 tokens give a row with the first example and
    two tokens of the second. The last tokens of an epoch, which fill no row, are left out unless no row is full.
    """
    random = np.random.default_rng((seed, epoch, 3))
    order = random.permutation(examples)
    ends = np.cumsum(lengths[order], dtype=np.int64)
    rows = max(1, int(ends[-1]) // row_length)
    total = min(int(ends[-1]), rows * row_length)
    # A piece begins where a row or an example begins.
    begins = np.union1d(np.arange(0, total, row_length), ends[ends < total])
    number = np.searchsorted(ends, begins, side="right")
    in_example = begins - (ends[number] - lengths[order[number]])
    names = random.permutation(rows)[begins // row_length]
    by_name = np.argsort(names, kind="stable")
    pieces = Pieces(in_example[by_name], np.diff(np.append(begins, total))[by_name])
    return PackedRows(order[number][by_name], np.bincount(names, minlength=rows), pieces)


def pack(
    examples: np.ndarray, lengths: Mapping[str, np.ndarray], row_lengths: RowLengths, seed: int, epoch: int
) -> PackedRows:
    """Put each example into a row that has room for all of its columns; rows come in random order.

    Examples are dealt like cards, the longest first: in each round every row gets one example, the emptiest row the
    longest. So a round is a few operations on arrays, and the rows end equally full.
    """
    random = np.random.default_rng((seed, epoch, 2))
    examples = random.permutation(examples)
    sizes = np.stack([column[examples] for column in lengths.values()]).astype(np.int32)
    capacity = np.array([row_lengths[name] for name in lengths], np.int32)[:, None]
    longest_first = np.argsort(-(sizes / capacity).max(0), kind="stable")
    row_of = np.empty(len(examples), np.int64)
    rows = 0
    while len(longest_first):
        count = max(1, int(np.ceil((sizes[:, longest_first].sum(1) / capacity[:, 0]).max())))
        longest_first = _deal(longest_first, sizes, capacity, row_of, rows, count)
        rows += count
    names = random.permutation(rows)[row_of]
    order = np.argsort(names, kind="stable")
    return PackedRows(examples[order], np.bincount(names, minlength=rows))


def _deal(
    waiting: np.ndarray, sizes: np.ndarray, capacity: np.ndarray, row_of: np.ndarray, first: int, count: int
) -> np.ndarray:
    """Write into `row_of` which of `count` new rows each example goes to; return the examples that did not fit."""
    filled = np.zeros((len(sizes), count), np.int32)
    for _ in range(2):  # an example that fits no row in the first deal may fit the emptiest of the second
        remaining = []
        for begin in range(0, len(waiting), count):
            dealt = waiting[begin : begin + count]
            emptiest = np.argsort((filled / capacity).max(0), kind="stable")[: len(dealt)]
            after = filled[:, emptiest] + sizes[:, dealt]
            fits = (after <= capacity).all(0)
            filled[:, emptiest[fits]] = after[:, fits]
            row_of[dealt[fits]] = first + emptiest[fits]
            remaining.append(dealt[~fits])
        waiting = np.concatenate(remaining)
        if len(waiting) == 0:
            break
    return waiting
