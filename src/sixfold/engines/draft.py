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

MAX_GUESSES = 8  # tokens that are guessed for a step of the large model
PLAIN_STEPS = 16  # without guesses, after they have been wrong


class GuessCount:
    """How many tokens to guess for the next step of a text: it follows how many of the last guesses were right.

    Where a draft is mostly wrong, as it is at a high temperature, guessing costs more than it saves.
    """

    def __init__(self) -> None:
        self._count = 4
        self._plain = 0  # steps without guesses that are left

    def take(self) -> int:
        """Return the number for the next step."""
        if self._plain:
            self._plain -= 1
            return 0
        return self._count

    def update(self, guessed: int, right: int) -> None:
        """Note how many of the guesses of a step were right."""
        if not guessed:
            return
        self._count = min(MAX_GUESSES, guessed + 2) if right == guessed else right + 1 if right else guessed // 2
        if not self._count:
            self._count, self._plain = 1, PLAIN_STEPS


class Draft:
    """Guesses the likeliest tokens after a text. It keeps the keys and values of the latest text in one slot."""

    def __init__(self, model: DecoderOnly, config: ModelConfig) -> None:
        self.config = config
        self._slots = Slots(model.eval(), config)

    def guess(self, ids: Sequence[int], count: int) -> list[int]:
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
