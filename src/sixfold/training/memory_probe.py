"""How much fits into memory: the largest batch that the data can make is tried before step 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch

from sixfold.config import TrainingConfig
from sixfold.data.examples import Examples, ExampleSet, Packing
from sixfold.data.store import Ragged
from sixfold.tasks.task import Batch
from sixfold.training.loop import add_gradient
from sixfold.training.state import State

USABLE_SHARE = 0.9  # of the free memory; the rest is for fragmentation


def fit_tokens(
    state: State,
    examples: ExampleSet,
    row_lengths: Mapping[str, int],
    collate: Callable[[Examples], Batch],
    config: TrainingConfig,
) -> int:
    """Return the largest part of `batch_tokens` whose largest batch fits: all of it, or a half, a third, a quarter, …

    `row_lengths` are the lengths of the longest row that a batch may have, in each column.
    """
    parts = state.group.ranks  # at least one micro-batch for each process
    if config.micro_tokens or state.device.type != "cuda":
        return min(config.micro_tokens or -(-config.batch_tokens // parts), config.batch_tokens)
    while True:
        tokens = -(-config.batch_tokens // parts)
        batch = collate(largest_examples(tokens, examples, row_lengths, state.fixed_shapes))
        if tokens <= max(row_lengths.values()) or fits(state, batch, config):
            return tokens
        parts += 1 if parts < 4 else parts // 2


def largest_examples(
    tokens: int, examples: ExampleSet, row_lengths: Mapping[str, int], packed: bool = False
) -> Examples:
    """Return as many of the longest examples as the budget allows, of different lengths, as a mask costs most."""
    rows = max(1 if packed else 2, tokens // max(row_lengths.values()))
    packing = Packing(np.ones(rows, np.int64), rows, row_lengths) if packed else None
    columns = {}
    for name, added in zip(examples.columns, examples.added, strict=True):
        lengths = np.full(rows, max(1, row_lengths[name] - added))
        if name == examples.columns[0]:
            lengths[0] = max(1, lengths[0] - 1)
        columns[name] = Ragged(np.ones(lengths.sum(), np.int64), lengths)
    return Examples(columns, np.arange(rows), packing)


def fits(state: State, batch: Batch, config: TrainingConfig) -> bool:
    """Return whether a step fits: the gradients of a trial are discarded, Adam's moments are added to its peak."""
    state.model.train()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_allocated()
    moments = 2 * sum(weight.numel() * weight.element_size() for weight in state.weights.values())
    try:
        add_gradient(state, batch.to(state.device), len(batch.labels), config, is_last=False)
    except torch.OutOfMemoryError:
        return False
    finally:
        state.optimizer.zero_grad(set_to_none=True)
    return torch.cuda.max_memory_allocated() + moments < USABLE_SHARE * free
