"""How much fits: the worst batch that the corpus can make is tried before step 1, so that no later one surprises."""

from __future__ import annotations

import numpy as np
import torch

from sixfold.config import ModelConfig, TrainingConfig
from sixfold.data.loader import Examples, Packing
from sixfold.data.packing import Lines
from sixfold.training.batch import Batch, collate
from sixfold.training.loop import add_gradient
from sixfold.training.state import State

SPARE = 0.9  # of the memory that is free; the rest is for fragments


def fit_tokens(state: State, lengths: tuple[int, int], shape: ModelConfig, config: TrainingConfig) -> int:
    """The largest share of `batch_tokens` whose worst batch fits: all of it, or a half, a third, a quarter, …

    `lengths` are those of the longest row that a batch may have.
    """
    parts = state.group.ranks  # at least, so that each has something to do
    if config.micro_tokens or state.device.type != "cuda":
        return min(config.micro_tokens or -(-config.batch_tokens // parts), config.batch_tokens)
    while True:
        tokens = -(-config.batch_tokens // parts)
        if tokens <= max(lengths) or fits(state, worst_batch(tokens, lengths, shape, state.steady), config):
            return tokens
        parts += 1 if parts < 4 else parts // 2


def worst_batch(tokens: int, lengths: tuple[int, int], shape: ModelConfig, packed: bool = False) -> Batch:
    """As many of the longest pairs as the budget allows, with a mask, which costs most."""
    rows = max(1 if packed else 2, tokens // max(lengths))
    packing = Packing(np.ones(rows, np.int64), rows, Lines(*lengths)) if packed else None
    source_lengths = np.full(rows, lengths[0])
    source_lengths[0] = max(1, lengths[0] - 1)
    target_lengths = np.full(rows, max(1, lengths[1] - 1))
    ids = np.full(max(source_lengths.sum(), target_lengths.sum()), shape.eos)
    source, target = ids[: source_lengths.sum()], ids[: target_lengths.sum()]
    return collate(Examples(source, target, source_lengths, target_lengths, np.arange(rows), packing), shape)


def fits(state: State, batch: Batch, config: TrainingConfig) -> bool:
    """Whether a step has room: the gradients of a trial are thrown away, Adam's moments are counted in."""
    state.model.train()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    room = torch.cuda.mem_get_info()[0] + torch.cuda.memory_allocated()
    moments = 2 * sum(weight.numel() * weight.element_size() for weight in state.weights.values())
    try:
        add_gradient(state, batch.to(state.device), batch.tokens, config, last=False)
    except torch.OutOfMemoryError:
        return False
    finally:
        state.optimizer.zero_grad(set_to_none=True)
    return torch.cuda.max_memory_allocated() + moments < SPARE * room
