"""The NumPy decoder, one token at a time: what it has computed of the past it keeps, as every real decoder does."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float, Int

from sixfold.explorer.forward import Array, Forward, Heads, Keys, Mask, Memory, MemoryMask, Padding, X
from sixfold.modelfile import ModelFile


class Stepwise(Forward):
    """The decoder of `Forward`, whose rows may change places. Keys and values of the memory are projected once.

    Weights are kept in float32 as long as this is: a model in int8 would be unpacked anew for every token.
    """

    def __init__(
        self,
        model: ModelFile,
        memory: Memory | None = None,
        padding: Padding | None = None,
        candidates: Int[Array, "some"] | None = None,
    ) -> None:
        """`memory` is the encoder's output, a row a sentence; a decoder alone has none.

        Only the `candidates` are multiplied with, if they are given: the logits of all other pieces are -inf.
        """
        super().__init__(model)
        self.candidates = np.arange(self.config.vocab) if candidates is None else candidates

        def weight(name: str) -> Array:
            is_shortened = candidates is not None and name.startswith("output.projection")
            return model.weight(name)[candidates] if is_shortened else model.weight(name)

        self.weight = cache(weight)
        self.position = 0
        self.memory = memory
        self.memory_mask = None if padding is None else padding[:, None, None, :]
        self.caches: dict[str, tuple[Keys, Keys]] = {}

    def step(self, tokens: Int[Array, "rows"]) -> Float[Array, "rows vocab"]:
        """Take one token a row; return the logits of the next."""
        # One new token may look at everything before it, which needs no mask.
        self.output(self.stack("decoder", tokens[:, None], None, self.memory, self.memory_mask))
        self.position += 1
        logits = np.full((len(tokens), self.config.vocab), -np.inf, np.float32)
        logits[:, self.candidates] = self.trace["logits"][:, 0]
        return logits

    def reorder(self, rows: Int[Array, "new_rows"]) -> None:
        """Row i goes on from what row rows[i] was; rows may be repeated or left out."""
        self.caches = {at: (key[rows], value[rows]) for at, (key, value) in self.caches.items()}
        if self.memory is not None:
            self.memory = self.memory[rows]
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[rows]

    def positions(self, length: int) -> Int[Array, "length"]:
        return self.position + np.arange(length)

    def cross_attention(self, at: str, x: X, memory: Memory, mask: MemoryMask | None) -> X:
        if at not in self.caches:
            self.caches[at] = self.part(at, "key", memory), self.part(at, "value", memory)
        return self.attention(at, self.part(at, "query", x), *self.caches[at], mask)

    def attention(self, at: str, query: Heads, key: Keys, value: Keys, mask: Mask | None) -> X:
        if at.endswith("self_attention"):
            if at in self.caches:
                before = self.caches[at]
                key, value = (np.concatenate(pair, axis=2) for pair in zip(before, (key, value), strict=True))
            self.caches[at] = key, value
        return super().attention(at, query, key, value, mask)
