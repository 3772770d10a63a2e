"""The options of a search for the best target: beam, lengths and constraints. This module needs no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sixfold.configfile import check_types, require

LARGEST_BEAM = 1000  # a search takes memory for each hypothesis and each word of the vocabulary


@dataclass(frozen=True)
class SearchOptions:
    """What decoding looks for.

    A score is the sum of log-probabilities over length ** length_penalty, where <eos> counts as a token.
    """

    beam: int = 4
    n_best: int = 1
    length_penalty: float = 1.0
    min_length: int = 1
    max_length: int = 256
    max_ratio: float = 0.0  # and at most so many tokens a token of the source, and ten more; 0: no such limit
    no_repeat: int = 0  # no run of so many tokens is written twice; 0: as often as it likes
    unlisted: bool = False  # every token may be written, a shortlist or not
    banned: tuple[int, ...] = ()  # but for these
    patience: float = 0.0  # end after beam × patience finished hypotheses; 0: when none can still win

    def __post_init__(self) -> None:
        check_types(self, "decoding")
        for name in ("n_best", "max_length"):
            require(getattr(self, name) >= 1, f"decoding.{name}", "at least 1", getattr(self, name))
        require(1 <= self.beam <= LARGEST_BEAM, "decoding.beam", f"1 to {LARGEST_BEAM}", self.beam)
        require(self.n_best <= self.beam, "decoding.n_best", f"at most beam = {self.beam}", self.n_best)
        fits = 0 <= self.min_length <= self.max_length
        require(fits, "decoding.min_length", f"0 to max_length = {self.max_length}", self.min_length)
        for name in ("max_ratio", "patience"):
            require(getattr(self, name) >= 0, f"decoding.{name}", "0 or more", getattr(self, name))

    @property
    def enough(self) -> int:
        """How many finished hypotheses end a search with patience; halves round up, as in CTranslate2."""
        return max(self.n_best, math.floor(self.beam * self.patience + 0.5))

    def longest(self, source: int) -> int:
        """Tokens that the target of a source of so many tokens may have."""
        return min(self.max_length, int(self.max_ratio * source) + 10) if self.max_ratio else self.max_length

    def normalise(self, total: float, length: int) -> float:
        return total / length**self.length_penalty
