"""What every engine can do: token ids in, candidates out. Translation talks to nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sixfold.config import ModelConfig, SearchOptions
from sixfold.errors import RequestError

Ids = Sequence[int]


@dataclass(frozen=True)
class Candidate:
    """One hypothesis: its tokens without <eos>, and its length-normalised score."""

    tokens: list[int]
    score: float


class Engine(Protocol):
    """A model that is ready to decode. Calls may come from several threads at once."""

    config: ModelConfig

    def decode(
        self, sources: Sequence[Ids], options: SearchOptions | None = None, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Candidate]]:
        """The best targets of each source, any number of them at once; with prefixes, those that begin so."""
        ...

    def alternatives(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Candidate]:
        """The `n_best` likeliest next tokens after the prefix, each with the best way to go on from it."""
        ...

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """The log-probability of each token of each target, the <eos> behind it included."""
        ...

    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        """How much each token of a target (rows) looks at each of its source: last layer, mean of the heads."""
        ...

    def close(self) -> None:
        """Give the memory back. Nothing may be asked of it afterwards."""
        ...


def check_sources(config: ModelConfig, sources: Sequence[Ids]) -> None:
    for source in sources:
        if len(source) == 0:
            raise RequestError("source: expected at least one token; got none", "end every source in <eos>")
        if len(source) > config.max_length:
            raise RequestError(
                f"source: expected at most {config.max_length} tokens (model.max_length); got {len(source)}",
                "split the text into sentences",
            )
        if min(source) < 0 or max(source) >= config.vocab:
            raise RequestError(f"source: expected ids from 0 to {config.vocab - 1}; got {min(source)} to {max(source)}")


def batches(lengths: Sequence[int], room: int) -> list[list[int]]:
    """Places of `lengths`, the longest first, so many together as make `room` tokens with their padding."""
    found: list[list[int]] = []
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > room:
            found.append(batch)
            batch = []
        batch.append(place)
    return [*found, batch] if batch else found
