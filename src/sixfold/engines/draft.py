"""A draft: a small model that guesses the next tokens of a text, so that a large one reads several in one step.

The large model takes every token by its own rule, as if there were no draft, and goes on as long as the guesses were
right (as Leviathan et al., 2023, but each token has one random number). So a draft changes how fast a text is written,
and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from sixfold.config import ModelConfig
from sixfold.engines.slots import Slots, common_length
from sixfold.model.transformer import DecoderOnly

GUESSES = 4  # tokens that are guessed for each step of the large model


class Draft:
    """Guesses the likeliest tokens after a text. It keeps the keys and values of the latest text in one slot."""

    def __init__(self, model: DecoderOnly, config: ModelConfig) -> None:
        self.config = config
        self._slots = Slots(model.eval(), config)

    def guess(self, ids: Sequence[int], count: int = GUESSES) -> list[int]:
        """Return the likeliest tokens after a text, none of them if the text is too long for this model."""
        length, slots = len(ids) + count, self._slots
        if length > self.config.max_length or count < 1:
            return []
        if slots.live and slots.capacity < length:
            slots.remove(0)
        if not slots.live:
            slots.add(ids, min(2 * length, self.config.max_length))
        slots.cut(0, common_length(slots.tokens[0], ids[:-1]))
        logits = slots.feed(0, ids[len(slots.tokens[0]) :])
        guesses = []
        for _ in range(count - 1):
            guesses.append(int(logits.argmax(dim=-1)))
            logits = slots.step(1, logits.argmax(dim=-1))
        return [*guesses, int(logits.argmax(dim=-1))]
