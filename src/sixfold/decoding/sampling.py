"""Sampling of the next token: temperature, top-k and top-p, repeatable from a seed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sixfold.configfile import check_types
from sixfold.decoding.search import ChooseTokens
from sixfold.errors import ConfigError


@dataclass(frozen=True)
class SamplingOptions:
    """The options of sampling. A low temperature prefers likely tokens; top_k and top_p exclude the least likely."""

    temperature: float = 1.0
    top_k: int = 0  # 0: no such limit
    top_p: float = 1.0
    seed: int = 1

    def __post_init__(self) -> None:
        check_types(self, "sampling")
        if self.temperature <= 0:
            raise ConfigError(
                f"sampling.temperature: expected above 0; got {self.temperature}", "greedy needs no sampling"
            )
        if self.top_k < 0:
            raise ConfigError(f"sampling.top_k: expected 0 or more; got {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"sampling.top_p: expected above 0, at most 1; got {self.top_p}")


def sampler(options: SamplingOptions, device: torch.device | str = "cpu") -> ChooseTokens:
    """Return a function that samples tokens, for `search.search_single_path`. It draws from a generator of its own."""
    random = torch.Generator(device).manual_seed(options.seed)

    def choose(logprobs: Float[Tensor, "rows vocab"]) -> Int[Tensor, "rows"]:
        kept = restrict(logprobs / options.temperature, options.top_k, options.top_p)
        # A row where every token is forbidden has no probabilities. Any token will do: its score is -inf.
        return torch.multinomial(kept.softmax(dim=-1).nan_to_num(nan=1.0), 1, generator=random)[:, 0]

    return choose


def restrict(scores: Float[Tensor, "rows vocab"], top_k: int, top_p: float) -> Float[Tensor, "rows vocab"]:
    """Set scores to -inf, except the `top_k` best, and of these the fewest whose probabilities sum up to `top_p`.

    The best one always stays. 0 for `top_k` and 1 for `top_p` exclude nothing.
    """
    if 0 < top_k < scores.size(1):
        weakest = scores.topk(top_k, dim=-1).values[:, -1:]
        scores = scores.masked_fill(scores < weakest, -torch.inf)
    if top_p < 1:
        ordered, order = scores.sort(dim=-1, descending=True)
        before = ordered.softmax(dim=-1).cumsum(dim=-1) - ordered.softmax(dim=-1)
        ordered = ordered.masked_fill(before >= top_p, -torch.inf)
        scores = torch.empty_like(scores).scatter_(1, order, ordered)
    return scores
