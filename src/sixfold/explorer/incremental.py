"""The NumPy decoder one token at a time, with a cache of keys and values, as every decoder in production works."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float, Int

from sixfold.explorer.forward import Array, Forward, Hidden, Keys, Mask, Memory, MemoryMask, Padding, Queries
from sixfold.modelfile import ModelFile


class IncrementalDecoder(Forward):
    """The decoder of `Forward`, which takes one token of each row at a time.

    Keys and values of earlier tokens are cached; those of the memory are projected once. All weights stay in float32
    as long as this object lives: a model in int8 would be dequantised again for every token.
    """

    def __init__(
        self,
        model: ModelFile,
        memory: Memory | None = None,
        padding: Padding | None = None,
        candidates: Int[Array, "candidates"] | None = None,
    ) -> None:
        """Start before the first token.

        `memory` is the encoder's output, a row a sentence; a decoder-only model has none. With `candidates`, only the
        logits of these pieces are computed; all others are -inf.
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
        """Take one token of each row and return the logits of the next."""
        # A single new token may look at everything before it, which needs no mask.
        self.output(self.stack("decoder", tokens[:, None], None, self.memory, self.memory_mask))
        self.position += 1
        logits = np.full((len(tokens), self.config.vocab), -np.inf, np.float32)
        logits[:, self.candidates] = self.arrays["logits"][:, 0]
        return logits

    def reorder(self, rows: Int[Array, "new_rows"]) -> None:
        """Let row i continue from what row rows[i] was; rows may be repeated or dropped."""
        self.caches = {name: (key[rows], value[rows]) for name, (key, value) in self.caches.items()}
        if self.memory is not None:
            self.memory = self.memory[rows]
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[rows]

    def positions(self, length: int) -> Int[Array, "length"]:
        return self.position + np.arange(length)

    def cross_attention(self, name: str, x: Hidden, memory: Memory, mask: MemoryMask | None) -> Hidden:
        if name not in self.caches:
            self.caches[name] = self.project(name, "key", memory), self.project(name, "value", memory)
        return self.attention(name, self.project(name, "query", x), *self.caches[name], mask)

    def attention(self, name: str, query: Queries, key: Keys, value: Keys, mask: Mask | None) -> Hidden:
        if name.endswith("self_attention"):
            if name in self.caches:
                earlier = self.caches[name]
                key, value = (np.concatenate(pair, axis=2) for pair in zip(earlier, (key, value), strict=True))
            self.caches[name] = key, value
            window = self.config.sliding_window
            key, value = key[:, :, -window:], value[:, :, -window:]  # 0: all
        return super().attention(name, query, key, value, mask)
