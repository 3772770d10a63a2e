"""The options of searches and of sampling, and the hypotheses that a search returns. This module needs no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from sixfold.configfile import check_types, require

MAX_BEAM = 1000  # a search takes memory for each hypothesis and each word of the vocabulary


@dataclass(frozen=True)
class Hypothesis:
    """A finished target: its tokens without <eos>, and its length-normalised score.

    `logprobs` has the log-probability of each token, and of the <eos> if the target ended in one. It is empty where
    an engine does not report them.
    """

    tokens: list[int]
    score: float
    logprobs: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class SearchOptions:
    """The options of a search for the best targets of a source.

    The score of a target is the sum of its log-probabilities over length ** length_penalty. <eos> counts as a token.
    """

    beam: int = 4
    n_best: int = 1
    length_penalty: float = 1.0
    min_length: int = 1
    max_length: int = 256
    max_ratio: float = (
        0.0  # at most this many target tokens for each source token, plus 10 and those of a prefix; 0: any
    )
    no_repeat: int = 0  # no n-gram of this size is written twice; 0: no such rule
    ignore_shortlist: bool = False  # consider the whole vocabulary, even if the model has a shortlist
    banned: tuple[int, ...] = ()  # tokens that are never written
    patience: float = 0.0  # end after beam × patience finished hypotheses; 0: when no live one can enter the n best

    def __post_init__(self) -> None:
        check_types(self, "decoding")
        for name in ("n_best", "max_length"):
            require(getattr(self, name) >= 1, f"decoding.{name}", "at least 1", getattr(self, name))
        require(1 <= self.beam <= MAX_BEAM, "decoding.beam", f"1 to {MAX_BEAM}", self.beam)
        require(self.n_best <= self.beam, "decoding.n_best", f"at most beam = {self.beam}", self.n_best)
        fits = 0 <= self.min_length <= self.max_length
        require(fits, "decoding.min_length", f"0 to max_length = {self.max_length}", self.min_length)
        for name in ("max_ratio", "patience"):
            require(getattr(self, name) >= 0, f"decoding.{name}", "0 or more", getattr(self, name))

    @property
    def finished_limit(self) -> int:
        """The number of finished hypotheses that ends a search with patience. Halves round up, as in CTranslate2."""
        return max(self.n_best, math.floor(self.beam * self.patience + 0.5))

    def max_target_length(self, source_length: int, prefix_length: int = 0) -> int:
        """Return the largest number of target tokens for a source of this many tokens, a prefix included."""
        if not self.max_ratio:
            return self.max_length
        return min(self.max_length, int(self.max_ratio * source_length) + 10 + prefix_length)

    def normalised_score(self, total: float, length: int) -> float:
        """Return the score of a target from the sum of its log-probabilities and its length with <eos>."""
        return total / length**self.length_penalty


@dataclass(frozen=True)
class SamplingOptions:
    """How the next token is taken from its probabilities. The options act in the order of this list.

    Tokens that a limit excludes are never taken; the likeliest one is never excluded.
    """

    repetition_penalty: float = 1.0  # above 1: tokens that are in the text already become less likely
    temperature: float = 1.0  # below 1: likely tokens become likelier; 0: always the likeliest token
    top_k: int = 0  # only the k likeliest tokens; 0: all
    top_p: float = 1.0  # of these, only the fewest whose probabilities sum up to p
    min_p: float = 0.0  # of these, only those with at least this share of the probability of the likeliest
    seed: int = 1  # the same seed draws the same tokens

    def __post_init__(self) -> None:
        check_types(self, "sampling")
        for name in ("temperature", "top_k"):
            require(getattr(self, name) >= 0, f"sampling.{name}", "0 or more", getattr(self, name))
        require(self.repetition_penalty > 0, "sampling.repetition_penalty", "above 0", self.repetition_penalty)
        require(0 < self.top_p <= 1, "sampling.top_p", "above 0, at most 1", self.top_p)
        require(0 <= self.min_p <= 1, "sampling.min_p", "from 0 to 1", self.min_p)
        require(self.seed >= 0, "sampling.seed", "0 or more", self.seed)

    @property
    def is_greedy(self) -> bool:
        """Return whether the likeliest token of the model is always taken, with nothing changed or drawn."""
        return self.temperature == 0 and self.repetition_penalty == 1


GREEDY = SamplingOptions(temperature=0.0)
