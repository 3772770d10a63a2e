"""One token at a time: a stepper feeds a model, keeps the keys and values of the past, and follows the survivors."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sixfold.errors import RequestError
from sixfold.model.attention import KeyValue, Memory
from sixfold.model.transformer import DecoderOnly, EncoderDecoder, Padding, Tokens, padding_mask


class LayerCache:
    """Room for the keys and values of one layer, allocated once, when the first of them tell their shape and type."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.length = 0
        self.key: Tensor | None = None
        self.value: Tensor | None = None

    def extend(self, key: Tensor, value: Tensor) -> KeyValue:
        if self.key is None or self.value is None:
            rows, heads, _, d_head = key.shape
            self.key, self.value = (each.new_zeros(rows, heads, self.room, d_head) for each in (key, value))
        end = self.length + key.size(2)
        self.key[:, :, self.length : end] = key
        self.value[:, :, self.length : end] = value
        self.length = end
        return self.key[:, :, :end], self.value[:, :, :end]

    def reorder(self, rows: Tensor) -> None:
        if self.key is not None and self.value is not None:
            self.key, self.value = self._moved(self.key, rows), self._moved(self.value, rows)

    def _moved(self, kept: Tensor, rows: Tensor) -> Tensor:
        """Only what is filled moves; the room stays where it is unless the number of rows changes."""
        filled = kept[:, :, : self.length][rows]
        if len(rows) != len(kept):
            kept = kept.new_zeros(len(rows), *kept.shape[1:])
        kept[:, :, : self.length] = filled
        return kept


class Stepper:
    """Steps a decoder; the memory of an encoder is projected once and follows the rows."""

    def __init__(self, model: EncoderDecoder | DecoderOnly, room: int) -> None:
        model.decoder.check_length(room)
        self.model = model
        self.room = room
        self.position = 0
        self.memory: list[Memory] | None = None
        self.sentences: Tensor | None = None  # whose memory each row looks at
        self.caches = [LayerCache(room) for _ in model.decoder.layers]

    @torch.inference_mode()
    def step(self, tokens: Int[Tensor, "rows"]) -> Float[Tensor, "rows vocab"]:
        """Logits of what follows these tokens, one a row."""
        return self.feed(tokens[:, None])

    @torch.inference_mode()
    def feed(self, tokens: Tokens) -> Float[Tensor, "rows vocab"]:
        """Several tokens a row at once (a prompt); the logits after the last."""
        end = self.position + tokens.size(1)
        if end > self.room:
            raise RequestError(f"length: expected at most {self.room} tokens, the room of this cache; got {end}")
        positions = torch.arange(self.position, end, device=tokens.device)[None]
        keys = torch.arange(end, device=tokens.device)
        # One new token may look at everything before it, which needs no mask.
        mask = None if tokens.size(1) == 1 else (keys <= positions[0, :, None])[None, None]
        x = self.model.decoder(tokens, mask, self.memory, caches=self.caches, positions=positions)
        self.position = end
        return self.model.output(x[:, -1])

    @torch.inference_mode()
    def reorder(self, rows: Int[Tensor, "new_rows"]) -> None:
        """Row i goes on from what row rows[i] was; rows may be repeated or left out."""
        for cache in self.caches:
            cache.reorder(rows)
        if self.memory is not None and self.sentences is not None:
            before, self.sentences = self.sentences, self.sentences[rows]
            if torch.equal(before, self.sentences):  # survivors of the same sentence share its memory
                return
            mask = self.memory[0].mask
            mask = None if mask is None else mask[rows]
            self.memory = [Memory(memory.key[rows], memory.value[rows], mask) for memory in self.memory]


@torch.inference_mode()
def translate_stepper(model: EncoderDecoder, source: Tokens, padding: Padding | None, room: int) -> Stepper:
    """A stepper that has read the source."""
    stepper = Stepper(model, room)
    mask = padding_mask(padding)
    stepper.memory = model.decoder.remember(model.encoder(source, mask), mask)
    stepper.sentences = torch.arange(len(source), device=source.device)
    return stepper
