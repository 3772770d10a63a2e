"""Batches by tokens: examples of similar lengths together, in an order that follows from seed and epoch alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

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
