"""Constraints on what a search may write: functions from logits to logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

Logits = Float[Tensor, "rows vocab"]
History = Int[Tensor, "rows steps"]  # the tokens that each row has written so far
Sentences = Int[Tensor, "rows"]  # the sentence of the batch that each row belongs to: a search reorders its rows
Constraint = Callable[[Logits, History, Sentences], Logits]


def ban(tokens: Sequence[int]) -> Constraint:
    """Return a constraint that never lets these tokens be written."""

    def apply(logits: Logits, history: History, sentences: Sentences) -> Logits:
        return logits.index_fill(1, torch.tensor(tokens, dtype=torch.long, device=logits.device), -torch.inf)

    return apply


def force_prefix(prefixes: Sequence[Sequence[int]], then: Sequence[Constraint] = ()) -> Constraint:
    """Return a constraint that makes each sentence begin with its prefix.

    Forced tokens have probability 1, and count towards the length. The constraints in `then` act only after the
    prefix: a prefix may hold tokens that may not be written otherwise.
    """
    longest = max(map(len, prefixes), default=0)
    table = torch.tensor([[*prefix, *[-1] * (longest - len(prefix))] for prefix in prefixes], dtype=torch.long)

    def apply(logits: Logits, history: History, sentences: Sentences) -> Logits:
        free, step = logits, history.size(1)
        for constraint in then:
            free = constraint(free, history, sentences)
        if step >= longest:
            return free
        forced = table.to(logits.device)[sentences, step][:, None]
        is_other = torch.arange(logits.size(1), device=logits.device)[None] != forced
        return torch.where(forced >= 0, logits.masked_fill(is_other, -torch.inf), free)

    return apply


def no_repeat(size: int) -> Constraint:
    """Return a constraint that never lets the same n-gram of `size` tokens be written twice."""

    def apply(logits: Logits, history: History, sentences: Sentences) -> Logits:
        steps = history.size(1)
        if steps < size:
            return logits
        ngrams = history.unfold(1, size, 1)  # rows, n-grams, size
        last_tokens = history[:, steps - size + 1 :]
        matches = (ngrams[:, :, :-1] == last_tokens[:, None]).all(-1)
        banned = torch.zeros_like(logits).scatter_add_(1, ngrams[:, :, -1], matches.to(logits.dtype))
        return logits.masked_fill(banned > 0, -torch.inf)

    return apply


def min_length(length: int, eos: int) -> Constraint:
    """Return a constraint that does not let a target end before `length` tokens are written."""
    ban_eos = ban([eos])

    def apply(logits: Logits, history: History, sentences: Sentences) -> Logits:
        return ban_eos(logits, history, sentences) if history.size(1) < length else logits

    return apply


def penalise(logits: Float[Tensor, "vocab"], tokens: Sequence[int], penalty: float) -> Float[Tensor, "vocab"]:
    """Make the tokens of a text less likely (Keskar et al., 2019): prompt and continuation count alike.

    Positive logits are divided by the penalty, negative ones multiplied. How often a token is there does not matter.
    """
    written = torch.tensor(sorted(set(tokens)), dtype=torch.long, device=logits.device)
    chosen = logits[written]
    return logits.index_copy(0, written, torch.where(chosen < 0, chosen * penalty, chosen / penalty))
