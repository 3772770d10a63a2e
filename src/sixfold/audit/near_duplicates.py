"""Texts that say nearly the same: found by MinHash over runs of characters, in 32 bytes a text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sixfold.audit.text_arrays import Lines, mix

WIDTH = 3  # letters in a shingle
BINS = 16  # smallest hashes of a text that are kept, each of its own part of all hashes
BAND = 4  # bins that must agree before two texts are compared
ALIKE = 0.7  # the share of shingles in common that makes two texts alike
FEWEST = 10  # shingles; a shorter text that differs in one word says something else
NONE = 0xFFFF


def signatures(lines: Lines) -> np.ndarray:
    """The smallest hash in every bin, NONE where a bin has none. Of a short text, a hash of it all instead."""
    hashes, rows = lines.shingles(WIDTH)
    found = np.full((lines.count, BINS), NONE, np.uint16)
    bins = (hashes >> np.uint64(60)).astype(np.int64)
    places = rows.astype(np.int64) * BINS + bins
    np.minimum.at(found.reshape(-1), places, (hashes & np.uint64(0xFFFE)).astype(np.uint16))
    short = np.flatnonzero(np.bincount(rows, minlength=lines.count) < FEWEST)
    seeds = lines.keys()[short, None] + np.arange(1, BINS + 1, dtype=np.uint64)
    found[short] = (mix(seeds) & np.uint64(0xFFFE)).astype(np.uint16)
    found[lines.lengths() == 0] = NONE
    return found


def likeness(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The share of bins in which signatures agree, of those that either fills: it estimates that of the shingles."""
    filled = (first != NONE) | (second != NONE)
    return ((first == second) & filled).sum(-1) / np.maximum(filled.sum(-1), 1)


def _bands(found: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each band of signatures: the rows that fill half of it or more, and a key each."""
    for first in range(0, found.shape[1], BAND):
        band = found[:, first : first + BAND]
        rows = np.flatnonzero((band != NONE).sum(1) >= BAND // 2)
        yield rows, np.ascontiguousarray(band[rows]).view(np.uint64)[:, 0]


def earlier(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """For every pair of signatures the row of an earlier pair that is alike on both sides, or -1."""
    like = np.full(len(source), -1, np.int64)
    for side in (source, target):
        for rows, keys in _bands(side):
            order = np.argsort(keys, kind="stable")
            rows, keys = rows[order], keys[order]
            new = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
            heads = rows[np.maximum.accumulate(np.where(new, np.arange(len(keys)), 0))]
            # With the first of this key, and with the one just before: a key may have several families.
            for others in (heads, np.where(new, rows, np.roll(rows, 1))):
                pending = np.flatnonzero((others != rows) & (like[rows] < 0))
                left, right = rows[pending], others[pending]
                alike = likeness(source[left], source[right]) >= ALIKE
                alike &= likeness(target[left], target[right]) >= ALIKE
                like[left[alike]] = right[alike]
    return like


@dataclass(frozen=True)
class Index:
    """Texts to be found again among others, word for word or nearly."""

    found: np.ndarray
    bands: tuple[tuple[np.ndarray, np.ndarray], ...]  # rows and keys, in the order of the keys

    @classmethod
    def of(cls, lines: Lines) -> Index:
        found = signatures(lines)
        bands = []
        for rows, keys in _bands(found):
            order = np.argsort(keys, kind="stable")
            bands.append((rows[order], keys[order]))
        return cls(found, tuple(bands))

    def look_up(self, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For texts of these signatures: a row of ours that each repeats, or -1; and how alike they are."""
        match, alike = np.full(len(found), -1, np.int64), np.zeros(len(found))
        for (ours, keys), (rows, wanted) in zip(self.bands, _bands(found), strict=True):
            if not len(keys):
                continue
            places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            hit = keys[places] == wanted
            rows, others = rows[hit], ours[places[hit]]
            scores = likeness(found[rows], self.found[others])
            better = (scores >= ALIKE) & (scores > alike[rows])
            match[rows[better]], alike[rows[better]] = others[better], scores[better]
        return match, alike
