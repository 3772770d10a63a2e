"""Incremental decoding: a stepper runs a decoder token by token and owns its cache of keys and values."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sixfold.errors import RequestError
from sixfold.model.attention import KeyValue, ProjectedMemory, padding_mask
from sixfold.model.transformer import PLAIN, DecoderOnly, EncoderDecoder, Execution, Padding, Tokens


class LayerCache:
    """The keys and values of one layer, for at most `capacity` positions.

    Memory is allocated when the first keys arrive, whose shape and type it takes.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    def extend(self, key: Tensor, value: Tensor) -> KeyValue:
        """Append the keys and values of new positions. Return those of all positions so far."""
        if self.key is None or self.value is None:
            rows, heads, _, d_head = key.shape
            self.key, self.value = (tensor.new_zeros(rows, heads, self.capacity, d_head) for tensor in (key, value))
        end = self.length + key.size(2)
        self.key[:, :, self.length : end] = key
        self.value[:, :, self.length : end] = value
        self.length = end
        return self.key[:, :, :end], self.value[:, :, :end]

    def reorder(self, rows: Tensor) -> None:
        """Make row i a copy of what row rows[i] was."""
        if self.key is not None and self.value is not None:
            self.key, self.value = self._reordered(self.key, rows), self._reordered(self.value, rows)

    def _reordered(self, stored: Tensor, rows: Tensor) -> Tensor:
        """Copy only the filled positions; allocate anew only if the number of rows changes."""
        filled = stored[:, :, : self.length][rows]
        if len(rows) != len(stored):
            stored = stored.new_zeros(len(rows), *stored.shape[1:])
        stored[:, :, : self.length] = filled
        return stored


class Stepper:
    """Runs a decoder step by step: a `decoding.search.Stepper` for models of this package.

    Its collaborators: `model` computes, `caches` hold the keys and values of earlier positions, one cache for each
    layer, and `memory` holds the encoder's output, projected once. Rows of caches and memory are reordered together.
    """

    def __init__(self, model: EncoderDecoder | DecoderOnly, capacity: int, execution: Execution = PLAIN) -> None:
        """`capacity` is the largest number of positions of a row."""
        model.decoder.check_length(capacity)
        self.model = model
        self.capacity = capacity
        self.execution = execution
        self.position = 0
        self.memory: list[ProjectedMemory] | None = None
        self.sentences: Tensor | None = None  # the source sentence of each row
        self.caches = [LayerCache(capacity) for _ in model.decoder.layers]

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, "rows"]) -> Float[Tensor, "rows vocab"]:
        """Append one token to each row. Return the logits of the next."""
        return self.feed(tokens[:, None])

    @torch.inference_mode()
    def feed(self, tokens: Tokens) -> Float[Tensor, "rows vocab"]:
        """Append several tokens to each row, as a prompt has. Return the logits after the last."""
        end = self.position + tokens.size(1)
        if end > self.capacity:
            raise RequestError(
                f"length: expected at most {self.capacity} tokens, the capacity of this cache; got {end}"
            )
        positions = torch.arange(self.position, end, device=tokens.device)[None]
        keys = torch.arange(end, device=tokens.device)
        # One new token may attend to everything before it, which needs no mask, unless there is a window.
        window = self.model.decoder.window
        mask = None if tokens.size(1) == 1 else (keys <= positions[0, :, None])[None, None]
        if 0 < window < end:
            in_window = (keys > positions[0, :, None] - window)[None, None]
            mask = in_window if mask is None else mask & in_window
        x = self.model.decoder(
            tokens, mask, self.memory, caches=self.caches, positions=positions, execution=self.execution
        )
        self.position = end
        return self.model.output(x[:, -1])

    @torch.inference_mode()
    def reorder(self, rows: Int[Tensor, "new_rows"]) -> None:
        """Make row i a copy of what row rows[i] was. Rows may be repeated or left out."""
        for cache in self.caches:
            cache.reorder(rows)
        if self.memory is not None and self.sentences is not None:
            before, self.sentences = self.sentences, self.sentences[rows]
            if torch.equal(before, self.sentences):  # hypotheses of the same sentence have the same memory
                return
            mask = self.memory[0].mask
            mask = None if mask is None else mask[rows]
            self.memory = [ProjectedMemory(each.key[rows], each.value[rows], mask) for each in self.memory]


@torch.inference_mode()
def translation_stepper(
    model: EncoderDecoder, source: Tokens, padding: Padding | None, capacity: int, execution: Execution = PLAIN
) -> Stepper:
    """Encode the sources and return a stepper for their targets of at most `capacity` tokens."""
    stepper = Stepper(model, capacity, execution)
    mask = padding_mask(padding)
    stepper.memory = model.decoder.project_memory(model.encoder(source, mask, execution=execution), mask)
    stepper.sentences = torch.arange(len(source), device=source.device)
    return stepper
