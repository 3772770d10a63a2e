"""Near-duplicates, found by MinHash over runs of characters, in 32 bytes for each text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sixfold.audit.text_arrays import TextArrays, mix

SHINGLE_LETTERS = 3
BINS = 16  # of a signature; each holds the smallest hash of one part of all hashes
BAND_BINS = 4  # that must agree before two texts are compared
MIN_SIMILARITY = 0.7  # estimated share of common shingles of near-duplicates
MIN_SHINGLES = 10  # a shorter text that differs in one word means something else
EMPTY_BIN = 0xFFFF


def signatures(texts: TextArrays) -> np.ndarray:
    """Return the smallest hash in every bin of each text, EMPTY_BIN without one: an array (texts, BINS).

    The signature of a short text is made from a hash of the whole text instead.
    """
    hashes, rows = texts.shingles(SHINGLE_LETTERS)
    result = np.full((texts.count, BINS), EMPTY_BIN, np.uint16)
    bins = (hashes >> np.uint64(60)).astype(np.int64)
    positions = rows.astype(np.int64) * BINS + bins
    np.minimum.at(result.reshape(-1), positions, (hashes & np.uint64(0xFFFE)).astype(np.uint16))
    short = np.flatnonzero(np.bincount(rows, minlength=texts.count) < MIN_SHINGLES)
    seeds = texts.keys()[short, None] + np.arange(1, BINS + 1, dtype=np.uint64)
    result[short] = (mix(seeds) & np.uint64(0xFFFE)).astype(np.uint16)
    result[texts.lengths() == 0] = EMPTY_BIN
    return result


def similarity(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the share of equal bins among those that either signature fills; it estimates that of the shingles."""
    is_filled = (first != EMPTY_BIN) | (second != EMPTY_BIN)
    return ((first == second) & is_filled).sum(-1) / np.maximum(is_filled.sum(-1), 1)


def _bands(signatures: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each band the rows that fill at least half of it, and a key for each of these rows."""
    for first in range(0, signatures.shape[1], BAND_BINS):
        band = signatures[:, first : first + BAND_BINS]
        rows = np.flatnonzero((band != EMPTY_BIN).sum(1) >= BAND_BINS // 2)
        yield rows, np.ascontiguousarray(band[rows]).view(np.uint64)[:, 0]


def find_earlier(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return for every pair of signatures the row of an earlier near-duplicate on both sides, or -1."""
    match = np.full(len(source), -1, np.int64)
    for side in (source, target):
        for rows, keys in _bands(side):
            order = np.argsort(keys, kind="stable")
            rows, keys = rows[order], keys[order]
            is_first = np.append(True, keys[1:] != keys[:-1])[: len(keys)]
            firsts = rows[np.maximum.accumulate(np.where(is_first, np.arange(len(keys)), 0))]
            # Compare with the first row of the same key and with the row before: a key may have several groups.
            for others in (firsts, np.where(is_first, rows, np.roll(rows, 1))):
                pending = np.flatnonzero((others != rows) & (match[rows] < 0))
                left, right = rows[pending], others[pending]
                is_similar = similarity(source[left], source[right]) >= MIN_SIMILARITY
                is_similar &= similarity(target[left], target[right]) >= MIN_SIMILARITY
                match[left[is_similar]] = right[is_similar]
    return match


@dataclass(frozen=True)
class Index:
    """Signatures of texts, for finding these texts or near-duplicates of them among others."""

    signatures: np.ndarray
    bands: tuple[tuple[np.ndarray, np.ndarray], ...]  # rows and keys, sorted by key

    @classmethod
    def of(cls, texts: TextArrays) -> Index:
        """Index some texts."""
        own = signatures(texts)
        bands = []
        for rows, keys in _bands(own):
            order = np.argsort(keys, kind="stable")
            bands.append((rows[order], keys[order]))
        return cls(own, tuple(bands))

    def look_up(self, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each of these signatures the most similar indexed row, or -1, and the similarity."""
        match, best = np.full(len(others), -1, np.int64), np.zeros(len(others))
        for (indexed, keys), (rows, searched) in zip(self.bands, _bands(others), strict=True):
            if not len(keys):
                continue
            positions = np.minimum(np.searchsorted(keys, searched), len(keys) - 1)
            hit = keys[positions] == searched
            rows, candidates = rows[hit], indexed[positions[hit]]
            scores = similarity(others[rows], self.signatures[candidates])
            better = (scores >= MIN_SIMILARITY) & (scores > best[rows])
            match[rows[better]], best[rows[better]] = candidates[better], scores[better]
        return match, best
