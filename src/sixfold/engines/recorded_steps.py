"""Steps of `Slots` with shapes that never change, so that a GPU can record each as a CUDA graph and replay it.

Without a graph, a step of a small model waits for the host, which queues some hundred kernels one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

ROWS = (1, 2, 4, 8, 16, 32, 64)  # numbers of slots that graphs are recorded for
KEYS = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)  # numbers of positions that are attended to

# It computes the logits after one token of each slot, given tokens, their positions, and how many positions are read.
StepFunction = Callable[[Int[Tensor, "rows"], Int[Tensor, "rows"], int], Float[Tensor, "rows vocab"]]


class RecordedSteps:
    """Runs steps of slots, rounded up to one of a few shapes. On a CPU they are computed each time, for tests."""

    def __init__(self, step: StepFunction, slots: int, capacity: int, device: torch.device) -> None:
        self._step, self._slots, self._capacity, self._device = step, slots, capacity, device
        self._tokens = torch.zeros(slots, dtype=torch.long, device=device)
        self._positions = torch.zeros(slots, dtype=torch.long, device=device)
        self._graphs: dict[tuple[int, int], tuple[Callable[[], None], Tensor]] = {}
        self._pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None

    def run(self, tokens: Int[Tensor, "rows"], lengths: Sequence[int], end: int) -> Float[Tensor, "rows vocab"]:
        """Return the logits after a token of each of the first slots.

        `lengths` has the filled length of every slot: those beyond the tokens write behind what they hold.
        """
        count = len(tokens)
        rows, keys = min(_round_up(count, ROWS), self._slots), min(_round_up(end, KEYS), self._capacity)
        self._tokens[:count].copy_(tokens)
        self._positions[:rows].copy_(torch.tensor(lengths[:rows]))
        if (rows, keys) not in self._graphs:
            logits = self._step(self._tokens[:rows], self._positions[:rows], keys)
            if self._device.type == "cuda":
                self._graphs[rows, keys] = self._record(rows, keys)
            return logits[:count]
        replay, logits = self._graphs[rows, keys]
        replay()
        return logits[:count].clone()

    def _record(self, rows: int, keys: int) -> tuple[Callable[[], None], Tensor]:
        """Record a step, which has run once before, and return what replays it and the logits that it writes."""
        graph = torch.cuda.CUDAGraph()
        # The graphs can share one memory pool: only one of them runs at a time.
        with torch.cuda.graph(graph, pool=self._pool):
            logits = self._step(self._tokens[:rows], self._positions[:rows], keys)
        return graph.replay, logits


def _round_up(number: int, sizes: Sequence[int]) -> int:
    """Return the first of these increasing sizes that is at least `number`, or `number` itself if none is."""
    return next((size for size in sizes if size >= number), number)
