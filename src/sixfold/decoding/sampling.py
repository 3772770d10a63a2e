"""Drawing the next token at random: temperature, top-k and top-p, repeatable from a seed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sixfold.configfile import check_types
from sixfold.decoding.search import Pick
from sixfold.errors import ConfigError


@dataclass(frozen=True)
class SamplingOptions:
    """A low temperature keeps to likely tokens; top_k and top_p cut off the unlikely tail."""

    temperature: float = 1.0
    top_k: int = 0  # 0: all
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


def sampler(options: SamplingOptions, device: torch.device | str = "cpu") -> Pick:
    """A pick for `follow`. Each call begins a fresh sequence of random numbers from the seed."""
    random = torch.Generator(device).manual_seed(options.seed)

    def pick(logprobs: Float[Tensor, "rows vocab"]) -> Int[Tensor, "rows"]:
        kept = restrict(logprobs / options.temperature, options.top_k, options.top_p)
        # A row where everything is forbidden has no probabilities; any token will do, its score is -inf.
        return torch.multinomial(kept.softmax(dim=-1).nan_to_num(nan=1.0), 1, generator=random)[:, 0]

    return pick


def restrict(scores: Float[Tensor, "rows vocab"], top_k: int, top_p: float) -> Float[Tensor, "rows vocab"]:
    """Keep the k best, then the fewest best whose probabilities reach p; the best one always stays."""
    if 0 < top_k < scores.size(1):
        weakest = scores.topk(top_k, dim=-1).values[:, -1:]
        scores = scores.masked_fill(scores < weakest, -torch.inf)
    if top_p < 1:
        ordered, order = scores.sort(dim=-1, descending=True)
        before = ordered.softmax(dim=-1).cumsum(dim=-1) - ordered.softmax(dim=-1)
        ordered = ordered.masked_fill(before >= top_p, -torch.inf)
        scores = torch.empty_like(scores).scatter_(1, order, ordered)
    return scores
