"""A step for every place of a board: caches that stay where they are, and what a GPU can do to be quick about it."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from sixfold.config import ModelConfig
from sixfold.decoding.device_beam import Board
from sixfold.model.attention import KeyValue, Memory
from sixfold.model.positions import Sinusoid
from sixfold.model.transformer import EncoderDecoder, padding_mask


class StaticStepper:
    """Steps every place of a board, each at its own position; no key or value ever moves.

    The hypotheses of a place are the "length" of a row for the model. They share the memory of their source, and one
    cache; a mask tells each of them which entries are its own past. So survivors are followed by gathering bits.
    """

    def __init__(
        self, model: EncoderDecoder, config: ModelConfig, board: Board, sources: int, kernels: Kernels | None
    ) -> None:
        self.model, self.config, self.board, self.sources, self.kernels = model, config, board, sources, kernels
        self.reach = board.room  # how far back a step can look
        size, beam = board.tokens.shape
        weight = next(model.parameters())

        def room(length: int) -> Tensor:
            return weight.new_zeros(size, length, config.groups, config.d_head)

        layers = range(config.decoder_layers)
        self.caches = [StaticCache(self, room(beam * board.room), room(beam * board.room)) for _ in layers]
        self.may_see = torch.zeros(size, 1, 1, sources, dtype=torch.bool, device=weight.device)
        self.may_see[:, :, :, 0] = True  # whoever may look at nothing becomes NaN
        self.memory = [
            Memory(room(sources).transpose(1, 2), room(sources).transpose(1, 2), self.may_see) for _ in layers
        ]
        self.past = torch.zeros(size, beam, board.room, beam, dtype=torch.bool, device=weight.device)
        self.table = config.max_length if config.positions == "learned" else 0
        self.places = torch.arange(size, device=weight.device)[:, None]
        self.beams = torch.arange(beam, device=weight.device)
        self.times = torch.arange(board.room, device=weight.device)
        self.true = torch.ones((), dtype=torch.bool, device=weight.device)

    def put(self, places: Tensor, source: Tensor, lengths: Tensor) -> None:
        """Read new sources."""
        padding = torch.arange(source.size(1), device=source.device)[None] < lengths[:, None]
        mask = padding_mask(padding)
        memory = self.model.decoder.remember(self.model.encoder(source, mask), mask)
        for static, new in zip(self.memory, memory, strict=True):
            static.key[places], static.value[places] = new.key, new.value
        self.may_see[places] = padding[:, None, None]
        self.past[places] = False

    def step(self, tokens: Tensor) -> Tensor:
        """Logits of what follows these tokens, one a hypothesis."""
        size, beam = self.board.tokens.shape
        position = self.board.length[:, None]
        self.slots = position * beam + self.beams
        if beam == 1:
            mask = (self.times[: self.reach] <= position)[:, None, None]
        else:
            self.past.index_put_((self.places, self.beams, position, self.beams), self.true)
            mask = self.past[:, None, :, : self.reach].flatten(3)
        positions = position.expand(-1, beam)
        if self.table:  # a closed place is at a position behind its last, which a table may not have
            positions = positions.clamp(max=self.table - 1)
        x = self.model.decoder(tokens.view(size, beam), mask, self.memory, caches=self.caches, positions=positions)
        return self.model.output(x).flatten(0, 1)

    def reorder(self, rows: Tensor) -> None:
        self.past.copy_(self.past.flatten(0, 1)[rows].view_as(self.past))


class StaticCache:
    """The keys and values of one layer, for all hypotheses at all places."""

    def __init__(self, stepper: StaticStepper, key: Tensor, value: Tensor) -> None:
        self.stepper, self.key, self.value = stepper, key, value

    def extend(self, key: Tensor, value: Tensor) -> KeyValue:
        stepper = self.stepper
        if stepper.kernels is not None:
            stepper.kernels.write((self.key, self.value), (key, value), stepper.slots)
        else:
            for kept, new in ((self.key, key), (self.value, value)):
                kept[stepper.places, stepper.slots] = new.transpose(1, 2)
        end = stepper.reach * len(stepper.beams)
        return self.key[:, :end].transpose(1, 2), self.value[:, :end].transpose(1, 2)


class PositionTable(nn.Module):
    """Sinusoids that are looked up: a step that works them out takes six kernels for it."""

    def __init__(self, positions: Sinusoid, length: int, like: Tensor) -> None:
        super().__init__()
        self.rows = positions(torch.arange(length, device=like.device)[None])[0].to(like.dtype)

    def forward(self, positions: Tensor) -> Tensor:
        return self.rows[positions]


class Kernels(Protocol):
    """What `gpu_kernels` has to offer."""

    def few_queries(self, model: nn.Module) -> None: ...

    def likeliest(self, logits: Tensor, count: int) -> tuple[Tensor, Tensor]: ...

    def write(self, kept: KeyValue, new: KeyValue, slots: Tensor) -> None: ...


def kernels() -> Kernels | None:
    """Triton comes with torch where it can use a GPU, but not on every system."""
    if importlib.util.find_spec("triton") is None:
        return None
    return cast(Kernels, importlib.import_module("sixfold.engines.gpu_kernels"))
