"""Many texts as NumPy arrays of code points, and hashes of their words and shingles."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from sixfold.text.languages import DENSE, UNSPACED, letters

# The kinds of code points. CHARACTER is a letter of a script without spaces, where single characters and pairs of
# neighbours are used as words.
OTHER, LETTER, DIGIT, CHARACTER = range(4)
CODE_POINTS = 0x110000
LINE_FEED = 0x0A
# The hash of a run of characters is a polynomial in an odd base modulo 2 ** 64. An odd base has an inverse, so the hash
# of every run can be computed from the prefix sums at its two ends.
BASE = 0x9E3779B97F4A7C15
INVERSE = pow(BASE, -1, 2**64)
MIXER = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class TextArrays:
    """The characters of several texts, one text after another, in lower case and normalised to NFKC."""

    kinds: np.ndarray  # OTHER, LETTER, DIGIT or CHARACTER, for every character
    codes: np.ndarray  # code points of the characters that are not OTHER
    positions: np.ndarray  # of those characters in `kinds`
    rows: np.ndarray  # the text that each of those characters belongs to
    count: int  # of texts

    @classmethod
    def of(cls, texts: Sequence[str]) -> TextArrays:
        """Convert texts. Line feeds inside a text become spaces, because they separate the texts here."""
        joined = "\n".join(text.replace("\n", " ") if "\n" in text else text for text in texts)
        normalised = joined.lower() if joined.isascii() else unicodedata.normalize("NFKC", joined).lower()
        codes = np.frombuffer(normalised.encode("utf-32-le", "surrogatepass"), np.uint32)
        kinds = _kinds()[codes]
        positions = np.flatnonzero(kinds)
        rows = np.cumsum(codes == LINE_FEED, dtype=np.int32)[positions]
        return cls(kinds, codes[positions], positions, rows, len(texts))

    def lengths(self) -> np.ndarray:
        """Return the letters and digits of every text; a Chinese, Japanese or Korean character counts as three."""
        weights = np.where(_dense()[self.codes], 3, 1)
        return np.bincount(self.rows, weights, self.count).astype(np.int32)

    def words(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the hashes of all words and their texts; in scripts without spaces each character is a word."""
        is_word, follows = self._single_characters()
        starts = np.flatnonzero(~follows | is_word | np.roll(is_word, 1))
        return self._hash_runs(starts, np.append(starts[1:], len(is_word))[: len(starts)])

    def character_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the hashes of every two neighbours in scripts without spaces, and their texts."""
        is_word, follows = self._single_characters()
        starts = np.flatnonzero(is_word[1:] & is_word[:-1] & follows[1:])
        return self._hash_runs(starts, starts + 2)

    def _single_characters(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which characters are words by themselves, and which directly follow the one before."""
        return self.kinds[self.positions] == CHARACTER, np.diff(self.positions, prepend=-2) == 1

    def _hash_runs(self, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums, powers = _prefix_sums(self.codes)
        return mix((sums[ends] - sums[starts]) * powers[starts]), self.rows[starts]

    def shingles(self, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the hashes of every `width` neighbouring letters and their texts; spaces and digits are ignored."""
        sums, powers = _prefix_sums(self._equal_digits())
        starts = np.flatnonzero(self.rows[: 1 - width] == self.rows[width - 1 :])
        return mix((sums[starts + width] - sums[starts]) * powers[starts]), self.rows[starts]

    def keys(self) -> np.ndarray:
        """Return one hash of each text, equal for texts that differ only in case, digits, punctuation or spaces."""
        sums, powers = _prefix_sums(self._equal_digits())
        borders = np.searchsorted(self.rows, np.arange(self.count + 1))
        return mix((sums[borders[1:]] - sums[borders[:-1]]) * powers[borders[:-1]])

    def _equal_digits(self) -> np.ndarray:
        """Return the code points with every digit replaced by 0."""
        return np.where(self.kinds[self.positions] == DIGIT, np.uint32(ord("0")), self.codes)


def mix(values: np.ndarray) -> np.ndarray:
    """Spread hashes over all 64 bits, so that the upper bits can be used alone."""
    values = (values ^ (values >> np.uint64(32))) * MIXER
    return values ^ (values >> np.uint64(29))


def _prefix_sums(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the terms before each position, and the factors that shift a run to position 0."""
    powers = _powers(BASE, len(codes))
    terms = (codes.astype(np.uint64) + np.uint64(1)) * powers[:-1]
    return np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)]), _powers(INVERSE, len(codes))


@cache
def _all_powers(base: int, size: int) -> np.ndarray:
    powers = np.full(size, base, np.uint64)
    powers[0] = 1
    return np.cumprod(powers, dtype=np.uint64)


def _powers(base: int, count: int) -> np.ndarray:
    """Return the powers of a base from 0 to `count`; tables of doubling sizes are cached."""
    return _all_powers(base, 1 << max(16, (count + 1).bit_length()))[: count + 1]


@cache
def _kinds() -> np.ndarray:
    """Return the kind of every code point."""
    table = np.zeros(CODE_POINTS, np.uint8)
    for code in range(0x20000):  # beyond this only Han characters are letters
        category = unicodedata.category(chr(code))
        table[code] = DIGIT if category == "Nd" else LETTER if category[0] in "LM" else OTHER
    table[_members(UNSPACED)] = CHARACTER
    return table


@cache
def _dense() -> np.ndarray:
    """Return for every code point whether it counts as three letters."""
    table = np.zeros(CODE_POINTS, bool)
    table[_members(DENSE)] = True
    return table


def _members(scripts: Sequence[str]) -> np.ndarray:
    """Return the code points of the letters of some scripts."""
    characters = "".join(map(chr, range(CODE_POINTS)))
    return np.concatenate([np.arange(*run.span()) for run in letters(*scripts).finditer(characters)])
