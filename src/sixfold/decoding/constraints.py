"""What a search may not write: functions from logits to logits, told what each row has written so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

Logits = Float[Tensor, "rows vocab"]
History = Int[Tensor, "rows steps"]
Sentences = Int[Tensor, "rows"]
# Rows move about while a search runs; `sentences` says which sentence of the batch each one belongs to.
Constraint = Callable[[Logits, History, Sentences], Logits]


def ban(tokens: Sequence[int]) -> Constraint:
    """Never write these tokens."""

    def apply(logits: Logits, history: History, sentences: Sentences) -> Logits:
        return logits.index_fill(1, torch.tensor(tokens, dtype=torch.long, device=logits.device), -torch.inf)

    return apply


def force_prefix(prefixes: Sequence[Sequence[int]], then: Sequence[Constraint] = ()) -> Constraint:
    """Begin with the given tokens, one list a sentence. Forced tokens cost nothing, but count towards the length.

    The constraints in `then` hold behind the prefix only: a prefix may hold what may not be written otherwise.
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
        others = torch.arange(logits.size(1), device=logits.device)[None] != forced
        return torch.where(forced >= 0, logits.masked_fill(others, -torch.inf), free)

    return apply


def no_repeat(size: int) -> Constraint:
    """Never write the same run of `size` tokens twice."""

    def apply(logits: Logits, history: History, sentences: Sentences) -> Logits:
        steps = history.size(1)
        if steps < size:
            return logits
        runs = history.unfold(1, size, 1)  # rows, runs, size
        tail = history[:, steps - size + 1 :]
        matches = (runs[:, :, :-1] == tail[:, None]).all(-1)
        banned = torch.zeros_like(logits).scatter_add_(1, runs[:, :, -1], matches.to(logits.dtype))
        return logits.masked_fill(banned > 0, -torch.inf)

    return apply


def min_length(length: int, eos: int) -> Constraint:
    """Do not end before `length` tokens are written."""
    banned = ban([eos])

    def apply(logits: Logits, history: History, sentences: Sentences) -> Logits:
        return banned(logits, history, sentences) if history.size(1) < length else logits

    return apply
