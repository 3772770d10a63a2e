"""Keys and values of texts of different lengths that are written together: each text has a slot.

The slots of texts that are being written come first, so that a step reads them all without copying. The others keep
what earlier texts left. A new text whose beginning stands in any slot takes over the keys and values of that beginning.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sixfold.config import ModelConfig
from sixfold.engines.gpu_steps import load_kernels
from sixfold.engines.recorded_steps import RecordedSteps
from sixfold.model.attention import KeyValue
from sixfold.model.transformer import PLAIN, DecoderOnly, Execution

Logits = Float[Tensor, "rows vocab"]
MAX_SLOTS = 64
CACHE_BYTES = 2**30  # of all slots; one text alone may take more
CAPACITY_STEP = 64  # positions by which slots grow
FREE_SLOTS = 4  # kept beside those in use, for new texts that begin as earlier ones did


class SlotLayer:
    """The keys and values of one layer, slots × heads × capacity × d_head, and the part that a call works on."""

    def __init__(self, key: Tensor, value: Tensor) -> None:
        self.key, self.value = key, value
        self.slots = slice(0, 0)
        self.lengths = torch.empty(0, dtype=torch.long)  # of these slots, before the call
        self.end = 0

    def extend(self, key: Tensor, value: Tensor) -> KeyValue:
        """Store new positions after those of each slot of this call. Return all positions up to `end`."""
        for stored, new in ((self.key[self.slots], key), (self.value[self.slots], value)):
            if new.size(2) > 1:  # a prompt, for one slot
                stored[:, :, self.end - new.size(2) : self.end] = new
            else:
                stored[torch.arange(len(new), device=new.device), :, self.lengths] = new[:, :, 0]
        return self.key[self.slots, :, : self.end], self.value[self.slots, :, : self.end]


class Slots:
    """The slots of one decoder-only model. `live` is how many texts are being written; theirs are the first slots.

    Its collaborators: `model` computes, `layers` hold keys and values, and `tokens` says which tokens they belong to.
    Not to be used by several threads at once.
    """

    def __init__(self, model: DecoderOnly, config: ModelConfig, has_fixed_shapes: bool | None = None) -> None:
        """With fixed shapes, which a GPU has if None is given, steps are rounded up to shapes that can be recorded."""
        self.model, self.config = model, config
        weight = next(model.parameters())
        self.device, self.dtype = weight.device, weight.dtype
        self.live = 0
        self.tokens: list[list[int]] = []
        self._last_use: list[int] = []  # a growing number for each slot
        self._uses = 0
        self.capacity = 0
        self.layers = [SlotLayer(*self._zeros(0, 0)) for _ in model.decoder.layers]
        self._has_fixed_shapes = self.device.type == "cuda" if has_fixed_shapes is None else has_fixed_shapes
        self._recorded: RecordedSteps | None = None
        kernels = load_kernels() if self.device.type == "cuda" and config.compatibility == "scaled-dot" else None
        self.execution = PLAIN if kernels is None else Execution(kernels.attend_few_queries)

    @property
    def position_bytes(self) -> int:
        """The bytes that one position of one slot takes."""
        return 2 * self.dtype.itemsize * len(self.layers) * self.config.groups * self.config.d_head

    def has_room(self, length: int) -> bool:
        """Return whether one more text may become live that will have at most `length` positions."""
        capacity = max(self.capacity, length) if self.live else length
        fits = (self.live + 1) * capacity * self.position_bytes <= CACHE_BYTES
        return self.live == 0 or (self.live < MAX_SLOTS and fits)

    def add(self, prompt: Sequence[int], length: int) -> int:
        """Make a slot live for a text of at most `length` positions. Return its number.

        It holds the beginning of the prompt as far as any slot has it, but never the whole prompt: its last token is
        left to be fed, because the logits after it are needed.
        """
        self._make_room(length)
        shared, origin = max(
            ((common_length(tokens, prompt[:-1]), slot) for slot, tokens in enumerate(self.tokens)), default=(0, -1)
        )
        slot = min(range(self.live, len(self.tokens)), key=lambda free: self._last_use[free])
        if shared and slot != origin:
            for layer in self.layers:
                for stored in (layer.key, layer.value):
                    stored[slot, :, :shared] = stored[origin, :, :shared]
        self.tokens[slot] = list(prompt[:shared])
        self.swap(slot, self.live)
        self.live += 1
        self._touch(self.live - 1)
        return self.live - 1

    def remove(self, slot: int) -> None:
        """End the text of a live slot. The last live text moves into this slot."""
        self._touch(slot)
        self.live -= 1
        self.swap(slot, self.live)

    def swap(self, first: int, second: int) -> None:
        """Exchange the contents of two slots."""
        if first == second:
            return
        length = max(len(self.tokens[first]), len(self.tokens[second]))
        for layer in self.layers:
            for stored in (layer.key, layer.value):
                moved = stored[first, :, :length].clone()
                stored[first, :, :length] = stored[second, :, :length]
                stored[second, :, :length] = moved
        self.tokens[first], self.tokens[second] = self.tokens[second], self.tokens[first]
        self._last_use[first], self._last_use[second] = self._last_use[second], self._last_use[first]

    def cut(self, slot: int, length: int) -> None:
        """Forget all but the first `length` tokens of a slot."""
        del self.tokens[slot][length:]

    @torch.inference_mode()
    def feed(self, slot: int, tokens: Sequence[int], count: int = 1) -> Float[Tensor, "count vocab"]:
        """Append tokens to one slot. Return the logits after each of the last `count` tokens."""
        begin = len(self.tokens[slot])
        end = begin + len(tokens)
        positions = torch.arange(begin, end, device=self.device)[None]
        mask = self._visible(torch.arange(end, device=self.device), positions[0, :, None])
        self._select(slice(slot, slot + 1), end, positions[0, :1])
        new = torch.tensor([list(tokens)], device=self.device)
        x = self.model.decoder(new, mask[None, None], caches=self.layers, positions=positions, execution=self.execution)
        self.tokens[slot].extend(tokens)
        return self.model.output(x[0, -count:]).float()

    @torch.inference_mode()
    def step(self, count: int, tokens: Int[Tensor, "rows"]) -> Logits:
        """Append a token to each of the first `count` slots. Return the logits after it.

        What a slot that is not live writes stands behind its tokens, where nothing reads it.
        """
        lengths = [len(each) for each in self.tokens]
        end = 1 + max(lengths[:count])
        if self._recorded is not None:
            logits = self._recorded.run(tokens, lengths, end)
        else:
            logits = self._compute(tokens, torch.tensor(lengths[:count], device=self.device), end)
        for each, token in zip(self.tokens, tokens.tolist(), strict=False):
            each.append(token)
        return logits

    def _compute(self, tokens: Int[Tensor, "rows"], positions: Int[Tensor, "rows"], end: int) -> Logits:
        """Return the logits after a token of each of the first slots, at these positions."""
        mask = self._visible(torch.arange(end, device=self.device)[None], positions[:, None])[:, None, None]
        self._select(slice(0, len(tokens)), end, positions)
        # A slot that is not live may be full: its next position is one that no table has.
        places = positions.clamp(max=self.config.max_length - 1)[:, None]
        x = self.model.decoder(tokens[:, None], mask, caches=self.layers, positions=places, execution=self.execution)
        return self.model.output(x[:, -1]).float()

    def _visible(self, keys: Tensor, positions: Tensor) -> Tensor:
        """Return which keys each position may attend to: those up to itself, or the last ones of them in a window."""
        visible, window = keys <= positions, self.model.decoder.window
        return visible & (keys > positions - window) if window else visible

    def _select(self, slots: slice, end: int, lengths: Int[Tensor, "rows"]) -> None:
        """Say which slots the next call of the model works on, and to which position."""
        for layer in self.layers:
            layer.slots, layer.end, layer.lengths = slots, end, lengths

    def _touch(self, slot: int) -> None:
        self._uses += 1
        self._last_use[slot] = self._uses

    def _zeros(self, slots: int, capacity: int) -> tuple[Tensor, Tensor]:
        # One position more than texts have: a slot that is full may be part of a step of others.
        shape = (slots, self.config.groups, capacity + 1, self.config.d_head)
        return (
            torch.zeros(shape, dtype=self.dtype, device=self.device),
            torch.zeros(shape, dtype=self.dtype, device=self.device),
        )

    def _make_room(self, length: int) -> None:
        """Allocate memory, so that there is a free slot, and that slots have at least `length` positions."""
        is_too_large = not self.live and 4 * length < self.capacity  # for one long text, which has ended
        capacity = length if is_too_large else max(length, self.capacity)
        capacity = max(length, min(self.config.max_length, -(-capacity // CAPACITY_STEP) * CAPACITY_STEP))
        most = CACHE_BYTES // (capacity * self.position_bytes)
        slots = max(self.live + 1, min(most, MAX_SLOTS, self.live + 1 + FREE_SLOTS))
        if capacity != self.capacity or slots > len(self.tokens):
            self._allocate(max(slots, min(most, len(self.tokens))), capacity)

    def _allocate(self, slots: int, capacity: int) -> None:
        """Change the number of slots and their capacity. If some have to go, they are the least recently used."""
        free = sorted(range(self.live, len(self.tokens)), key=lambda slot: -self._last_use[slot])
        kept = [*range(self.live), *free][:slots]
        length = min(capacity, self.capacity)
        for layer in self.layers:
            key, value = self._zeros(slots, capacity)
            key[: len(kept), :, :length] = layer.key[kept, :, :length]
            value[: len(kept), :, :length] = layer.value[kept, :, :length]
            layer.key, layer.value = key, value
        added = slots - len(kept)
        self.tokens = [self.tokens[slot][:capacity] for slot in kept] + [[] for _ in range(added)]
        self._last_use = [self._last_use[slot] for slot in kept] + [0] * added
        self.capacity = capacity
        if self._has_fixed_shapes:
            self._recorded = RecordedSteps(self._compute, slots, capacity, self.device)


def common_length(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens at the beginning of two texts are the same."""
    pairs = zip(first, second, strict=False)
    return next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))
