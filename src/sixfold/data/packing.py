"""Packing: several pairs in each row of a batch, so that all batches have one shape and next to nothing is padding."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

MULTIPLE = 16  # of the length of a row, which matrix units like
SHORTEST = 128  # shorter rows are no faster, and harder to fill


class Lines(NamedTuple):
    """How long a row is on each side."""

    source: int
    target: int

    def widened(self, share: float) -> Lines:
        """For texts that may still grow by that share of their length."""
        return Lines(*(round_up(length * (1 + share)) for length in self))


def round_up(length: float) -> int:
    return -(-math.ceil(length) // MULTIPLE) * MULTIPLE


def line_lengths(source_lengths: np.ndarray, target_lengths: np.ndarray) -> Lines:
    """Room for the longest pair, and on both sides alike full: as long relative to each other as the languages are."""
    wanted = [int(lengths.max(initial=1)) for lengths in (source_lengths, target_lengths)]
    totals = [max(1, int(lengths.sum())) for lengths in (source_lengths, target_lengths)]
    scale = max(SHORTEST / max(totals), *(length / total for length, total in zip(wanted, totals, strict=True)))
    return Lines(*(round_up(scale * total) for total in totals))


class Packed(NamedTuple):
    """First the pairs of the first row, then those of the second, …"""

    pairs: np.ndarray
    counts: np.ndarray  # pairs in each row

    def split(self, rows: int) -> list[Packed]:
        """So many rows each, and what is left."""
        begins = range(0, len(self.counts), rows)
        ends = np.cumsum(self.counts)
        cuts = [*(int(ends[begin - 1]) if begin else 0 for begin in begins), len(self.pairs)]
        return [
            Packed(self.pairs[first:last], self.counts[begin : begin + rows])
            for begin, first, last in zip(begins, cuts[:-1], cuts[1:], strict=True)
        ]


def pack(
    pairs: np.ndarray, source_lengths: np.ndarray, target_lengths: np.ndarray, lines: Lines, seed: int, epoch: int
) -> Packed:
    """Each pair in some row that has room for both of its sides; rows come in random order.

    Dealt like cards, the longest first: in each round every row gets one pair, the emptiest row the longest. So a round
    is a few operations on arrays, and the rows end equally full.
    """
    random = np.random.default_rng((seed, epoch, 2))
    pairs = random.permutation(pairs)
    sizes = np.stack((source_lengths[pairs], target_lengths[pairs])).astype(np.int32)
    room = np.array(lines, np.int32)[:, None]
    longest_first = np.argsort(-(sizes / room).max(0), kind="stable")
    row_of = np.empty(len(pairs), np.int64)
    rows = 0
    while len(longest_first):
        count = max(1, int(np.ceil((sizes[:, longest_first].sum(1) / room[:, 0]).max())))
        longest_first = _deal(longest_first, sizes, room, row_of, rows, count)
        rows += count
    names = random.permutation(rows)[row_of]
    order = np.argsort(names, kind="stable")
    return Packed(pairs[order], np.bincount(names, minlength=rows))


def _deal(
    waiting: np.ndarray, sizes: np.ndarray, room: np.ndarray, row_of: np.ndarray, first: int, count: int
) -> np.ndarray:
    """Write into `row_of` which of `count` new rows each pair goes to; the pairs that found no place are returned."""
    filled = np.zeros((2, count), np.int32)
    for _ in range(2):  # who fits no row in the first deal may fit the emptiest of the second
        left = []
        for begin in range(0, len(waiting), count):
            dealt = waiting[begin : begin + count]
            emptiest = np.argsort((filled / room).max(0), kind="stable")[: len(dealt)]
            after = filled[:, emptiest] + sizes[:, dealt]
            fits = (after <= room).all(0)
            filled[:, emptiest[fits]] = after[:, fits]
            row_of[dealt[fits]] = first + emptiest[fits]
            left.append(dealt[~fits])
        waiting = np.concatenate(left)
        if len(waiting) == 0:
            break
    return waiting
