"""What the validators of several tasks share: weights to judge, and batches that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor, nn


@torch.no_grad()
def copy_weights(model: nn.Module, weights: Mapping[str, Tensor | np.ndarray]) -> None:
    """Set all weights of a model by their names."""
    for name, weight in model.named_parameters():
        new = weights[name]
        weight.copy_(new if isinstance(new, Tensor) else torch.from_numpy(np.array(new)))


def within_memory(work: Callable[[list[int]], None], numbers: list[int], check_stop: Callable[[], None]) -> None:
    """Work on a batch or, where memory does not suffice, on one half after the other.

    `check_stop` is called before each and may raise to stop.
    """
    check_stop()
    try:
        work(numbers)
        return
    except torch.OutOfMemoryError:
        if len(numbers) == 1:
            raise
    torch.cuda.empty_cache()
    for half in (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]):
        within_memory(work, half, check_stop)
