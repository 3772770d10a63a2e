"""Many lines of text as arrays of code points and hashes, so that NumPy does the counting."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from sixfold.text.languages import DENSE, UNSPACED, letters

# Where words have no spaces between them, a character, and two neighbours, stand for a word.
OTHER, LETTER, DIGIT, CHARACTER = range(4)  # what a code point is: CHARACTER is a letter of an unspaced script
CODES = 0x110000
END = 0x0A
# The hash of a run of characters is a polynomial in an odd base modulo 2 ** 64. The base has an inverse there, so
# that the hash of every run follows from sums up to its two ends.
BASE = 0x9E3779B97F4A7C15
INVERSE = pow(BASE, -1, 2**64)
MIXER = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class Lines:
    """Texts, one after another, lower-cased and of one width (NFKC)."""

    kinds: np.ndarray  # of every character: OTHER, LETTER, DIGIT, CHARACTER
    codes: np.ndarray  # of every character that is not OTHER
    places: np.ndarray  # where among `kinds` each of them stands
    rows: np.ndarray  # which text each of them belongs to
    count: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> Lines:
        """Line ends inside a text become spaces; they cannot be told from those between texts."""
        joined = "\n".join(text.replace("\n", " ") if "\n" in text else text for text in texts)
        plain = joined.lower() if joined.isascii() else unicodedata.normalize("NFKC", joined).lower()
        codes = np.frombuffer(plain.encode("utf-32-le", "surrogatepass"), np.uint32)
        kinds = _kinds()[codes]
        places = np.flatnonzero(kinds)
        rows = np.cumsum(codes == END, dtype=np.int32)[places]
        return cls(kinds, codes[places], places, rows, len(texts))

    def lengths(self) -> np.ndarray:
        """Letters and digits of every text, where a character of Chinese, Japanese or Korean says as much as three."""
        weights = np.where(_dense()[self.codes], 3, 1)
        return np.bincount(self.rows, weights, self.count).astype(np.int32)

    def words(self) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of all words, single characters where words have no spaces; and their rows."""
        single, joined = self._singles()
        starts = np.flatnonzero(~joined | single | np.roll(single, 1))
        return self._hashed(starts, np.append(starts[1:], len(single))[: len(starts)])

    def couples(self) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of every two neighbours where words have no spaces; and their rows."""
        single, joined = self._singles()
        starts = np.flatnonzero(single[1:] & single[:-1] & joined[1:])
        return self._hashed(starts, starts + 2)

    def _singles(self) -> tuple[np.ndarray, np.ndarray]:
        """Which characters are words by themselves, and which have nothing between them and the one before."""
        return self.kinds[self.places] == CHARACTER, np.diff(self.places, prepend=-2) == 1

    def _hashed(self, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums, powers = _sums(self.codes)
        return mix((sums[ends] - sums[starts]) * powers[starts]), self.rows[starts]

    def shingles(self, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Hashes of every `width` neighbours, whatever stood between them and whatever their digits; and their rows."""
        sums, powers = _sums(self._blind())
        starts = np.flatnonzero(self.rows[: 1 - width] == self.rows[width - 1 :])
        return mix((sums[starts + width] - sums[starts]) * powers[starts]), self.rows[starts]

    def keys(self) -> np.ndarray:
        """One hash of each text, the same for texts that differ in case, digits, punctuation or spaces only."""
        sums, powers = _sums(self._blind())
        borders = np.searchsorted(self.rows, np.arange(self.count + 1))
        return mix((sums[borders[1:]] - sums[borders[:-1]]) * powers[borders[:-1]])

    def _blind(self) -> np.ndarray:
        return np.where(self.kinds[self.places] == DIGIT, np.uint32(ord("0")), self.codes)


def mix(values: np.ndarray) -> np.ndarray:
    """Spread hashes over all 64 bits, so that the upper ones can be used alone."""
    values = (values ^ (values >> np.uint64(32))) * MIXER
    return values ^ (values >> np.uint64(29))


def _sums(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the terms of the polynomial up to every place, and what brings a run at that place back to place 0."""
    powers = _powers(BASE, len(codes))
    terms = (codes.astype(np.uint64) + np.uint64(1)) * powers[:-1]
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)]), _powers(INVERSE, len(codes))


@cache
def _all_powers(base: int, size: int) -> np.ndarray:
    powers = np.full(size, base, np.uint64)
    powers[0] = 1
    return np.cumprod(powers, dtype=np.uint64)


def _powers(base: int, count: int) -> np.ndarray:
    """From 0 to `count`; the table is kept, in sizes that double."""
    return _all_powers(base, 1 << max(16, (count + 1).bit_length()))[: count + 1]


@cache
def _kinds() -> np.ndarray:
    """What every code point is."""
    table = np.zeros(CODES, np.uint8)
    for code in range(0x20000):  # above it only Han has letters
        category = unicodedata.category(chr(code))
        table[code] = DIGIT if category == "Nd" else LETTER if category[0] in "LM" else OTHER
    table[_members(UNSPACED)] = CHARACTER
    return table


@cache
def _dense() -> np.ndarray:
    table = np.zeros(CODES, bool)
    table[_members(DENSE)] = True
    return table


def _members(scripts: Sequence[str]) -> np.ndarray:
    every = "".join(map(chr, range(CODES)))
    return np.concatenate([np.arange(*run.span()) for run in letters(*scripts).finditer(every)])
