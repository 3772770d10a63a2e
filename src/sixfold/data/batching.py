"""Batches by tokens: pairs of like lengths together, in an order that follows from the seed and the epoch alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

ROUND = 8  # rows of a large batch come in multiples of this, which matrix units like


def rows_of_epoch(ends: Sequence[int], weights: Sequence[float], seed: int, epoch: int) -> np.ndarray:
    """Each corpus as often as its weight says; a fraction takes another part of the corpus every epoch."""
    chosen = []
    for begin, end, weight in zip([0, *ends[:-1]], ends, weights, strict=True):
        rows = np.arange(begin, end, dtype=np.int32 if ends[-1] < 2**31 else np.int64)
        share = round((weight % 1) * len(rows))
        if share:
            order = np.random.default_rng((seed, begin)).permutation(rows)
            chosen.append(np.roll(order, -epoch * share)[:share])
        chosen += [rows] * int(weight)
    return np.concatenate(chosen) if chosen else np.empty(0, np.int64)


def plan(
    rows: np.ndarray, source_lengths: np.ndarray, target_lengths: np.ndarray, budget: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """Batches of rows, in random order; the longer side of each, padding included, has at most `budget` tokens.

    Sorted by source and within it by target, every other source length downwards, so that no border is a jump. A
    little noise keeps the batches of two epochs from being the same.
    """
    random = np.random.default_rng((seed, epoch, 1))
    rows = random.permutation(rows)
    rows = rows[_order(source_lengths[rows], target_lengths[rows], random)]
    longest = np.maximum(source_lengths[rows], target_lengths[rows])
    batches = []
    begin = 0
    while begin < len(rows):
        window = longest[begin : begin + max(1, budget // int(longest[begin]))]
        cost = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
        fit = max(1, int(np.searchsorted(cost, budget, side="right")))
        if fit >= 4 * ROUND and begin + fit < len(rows):
            fit -= fit % ROUND
        batches.append(rows[begin : begin + fit])
        begin += fit
    return [batches[index] for index in random.permutation(len(batches))]


def _order(source: np.ndarray, target: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """By both lengths at once: one number holds them, which takes half the memory of sorting by two."""
    target = target + random.integers(-1, 2, len(target), dtype=np.int8)
    key = source.astype(np.int64) << 32
    key += np.where(source % 2, target, -target)
    return np.argsort(key, kind="stable")


def padding_share(batches: Sequence[np.ndarray], source_lengths: np.ndarray, target_lengths: np.ndarray) -> float:
    """How much of what the model reads is padding."""
    real = sum(int(source_lengths[rows].sum() + target_lengths[rows].sum()) for rows in batches)
    padded = sum(len(rows) * int(source_lengths[rows].max() + target_lengths[rows].max()) for rows in batches)
    return 1 - real / padded if padded else 0.0


def steps_of(batches: Sequence[Any], together: int) -> list[list[Any]]:
    """Micro-batches in groups: the gradients of a group make one step."""
    return [list(batches[begin : begin + together]) for begin in range(0, len(batches), together)]
