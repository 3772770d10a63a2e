"""Sampling of the next token: temperature, top-k, top-p and min-p, repeatable from a seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sixfold.decoding.constraints import Sentences, penalise
from sixfold.decoding.options import SamplingOptions
from sixfold.decoding.search import ChooseTokens


def sampler(options: SamplingOptions) -> ChooseTokens:
    """Return a function that takes the next token of each row from its logits or log-probabilities.

    Each sentence draws random numbers of its own, which follow from the seed and the sentence's number alone, so that
    it gets the same tokens in every batch. The repetition penalty is not here, because it needs the tokens of the text
    (`constraints.penalise`).
    """
    streams: dict[int, np.random.Generator] = {}

    def number_of(sentence: int) -> float:
        if sentence not in streams:
            streams[sentence] = np.random.default_rng((options.seed, sentence))
        return streams[sentence].random()

    def choose(logits: Float[Tensor, "rows vocab"], sentences: Sentences) -> Int[Tensor, "rows"]:
        if options.temperature == 0:
            return logits.argmax(dim=-1)
        numbers = torch.tensor([number_of(sentence) for sentence in sentences.tolist()], dtype=torch.float64)
        return draw(distribution(logits, options), numbers.to(logits.device))

    return choose


def distribution(logits: Float[Tensor, "rows vocab"], options: SamplingOptions) -> Float[Tensor, "rows vocab"]:
    """Return the probabilities that tokens are drawn with, for a temperature above 0.

    A row where every token is forbidden has no probabilities. All tokens get the same there: the score is -inf anyway.
    """
    scores = restrict(logits / options.temperature, options.top_k, options.top_p, options.min_p)
    return scores.softmax(dim=-1).nan_to_num(nan=1.0)


def next_distribution(logprobs: Sequence[float], text: Sequence[int], options: SamplingOptions) -> list[float]:
    """Return the probability of each token of the vocabulary to be drawn after a text, with all options."""
    scores = penalise(torch.tensor(logprobs), text, options.repetition_penalty)
    if options.temperature == 0:
        return torch.nn.functional.one_hot(scores.argmax(), len(logprobs)).double().tolist()
    return distribution(scores[None], options)[0].tolist()


def restrict(
    scores: Float[Tensor, "rows vocab"], top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
) -> Float[Tensor, "rows vocab"]:
    """Set the scores of the tokens to -inf that `SamplingOptions` excludes. The best one always stays.

    0 for `top_k`, 1 for `top_p` and 0 for `min_p` exclude nothing.
    """
    if 0 < top_k < scores.size(1):
        weakest = scores.topk(top_k, dim=-1).values[:, -1:]
        scores = scores.masked_fill(scores < weakest, -torch.inf)
    if top_p < 1:
        ordered, order = scores.sort(dim=-1, descending=True)
        before = ordered.softmax(dim=-1).cumsum(dim=-1) - ordered.softmax(dim=-1)
        ordered = ordered.masked_fill(before >= top_p, -torch.inf)
        scores = torch.empty_like(scores).scatter_(1, order, ordered)
    if min_p > 0:
        probabilities = scores.softmax(dim=-1)
        weakest = min_p * probabilities.amax(dim=-1, keepdim=True)
        scores = scores.masked_fill(probabilities < weakest, -torch.inf)
    return scores


def draw(probabilities: Float[Tensor, "rows vocab"], numbers: Float[Tensor, "rows"]) -> Int[Tensor, "rows"]:
    """Return the token of each row at which the sum of the probabilities up to it exceeds the row's number.

    The numbers are from 0 to below 1. The sums are float64: over a large vocabulary float32 would lose rare tokens.
    """
    sums = probabilities.double().cumsum(dim=-1)
    tokens = torch.searchsorted(sums, numbers[:, None] * sums[:, -1:], right=True)[:, 0]
    return tokens.clamp(max=probabilities.size(1) - 1)
