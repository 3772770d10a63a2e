"""A decoding step for all slots of a `DeviceBeam`, with caches that are never moved or resized."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Protocol, cast

import torch
from torch import Tensor

from sixfold.config import ModelConfig
from sixfold.decoding.device_beam import DeviceBeam
from sixfold.model.attention import KeyValue, ProjectedMemory, padding_mask
from sixfold.model.transformer import PLAIN, EncoderDecoder, Execution


class StaticStepper:
    """A `decoding.search.Stepper` that steps every slot of a beam, each at its own position.

    The hypotheses of a slot are the "length" of a row for the model. They share the memory of their source and one
    cache. A mask, slots × beam × steps × beam, says which entries of the cache are the past of each hypothesis. So
    reordering hypotheses gathers bits of the mask, and no key or value is moved.

    Its collaborators: `model` computes, in the way that `execution` says; `beam` has the position of each slot;
    `caches` and `memory` hold keys and values; `kernels`, on a GPU, write to the caches.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        config: ModelConfig,
        beam: DeviceBeam,
        source_capacity: int,
        kernels: Kernels | None = None,
        execution: Execution = PLAIN,
    ) -> None:
        """`source_capacity` is the length to which sources are padded."""
        self.model, self.config, self.beam, self.source_capacity = model, config, beam, source_capacity
        self.kernels, self.execution = kernels, execution
        self.max_keys = beam.capacity  # a step attends to at most this many earlier steps
        slots, width = beam.tokens.shape
        weight = next(model.parameters())

        def zeros(length: int) -> Tensor:
            return weight.new_zeros(slots, length, config.groups, config.d_head)

        layers = range(config.decoder_layers)
        entries = width * beam.capacity
        self.caches = [StaticCache(self, zeros(entries), zeros(entries)) for _ in layers]
        self.source_mask = torch.zeros(slots, 1, 1, source_capacity, dtype=torch.bool, device=weight.device)
        self.source_mask[:, :, :, 0] = True  # attention to nothing would be NaN
        self.memory = [
            ProjectedMemory(
                zeros(source_capacity).transpose(1, 2), zeros(source_capacity).transpose(1, 2), self.source_mask
            )
            for _ in layers
        ]
        self.past = torch.zeros(slots, width, beam.capacity, width, dtype=torch.bool, device=weight.device)
        self.position_limit = config.max_length if config.positions == "learned" else 0
        self.slots = torch.arange(slots, device=weight.device)[:, None]
        self.hypotheses = torch.arange(width, device=weight.device)
        self.steps = torch.arange(beam.capacity, device=weight.device)
        self.true = torch.ones((), dtype=torch.bool, device=weight.device)

    def put(self, slots: Tensor, source: Tensor, lengths: Tensor) -> None:
        """Encode new sources (new × source_capacity) and store their keys and values in these slots."""
        padding = torch.arange(source.size(1), device=source.device)[None] < lengths[:, None]
        mask = padding_mask(padding)
        encoded = self.model.encoder(source, mask, execution=self.execution)
        for stored, new in zip(self.memory, self.model.decoder.project_memory(encoded, mask), strict=True):
            stored.key[slots], stored.value[slots] = new.key, new.value
        self.source_mask[slots] = padding[:, None, None]
        self.past[slots] = False

    def step(self, tokens: Tensor) -> Tensor:
        """Append one token to each hypothesis. Return the logits of the next: (slots · beam) × vocab.

        1. The entry of a hypothesis in the cache is position × beam + its index in the beam: slots × beam.
        2. Mark that entry as part of its own past, and take the past as the mask: slots × 1 × beam × (max_keys · beam).
        3. Run the decoder with slots as rows and hypotheses as length, every hypothesis at the position of its slot.
        """
        slots, width = self.beam.tokens.shape
        position = self.beam.length[:, None]
        self.entries = position * width + self.hypotheses
        if width == 1:
            mask = (self.steps[: self.max_keys] <= position)[:, None, None]
        else:
            self.past.index_put_((self.slots, self.hypotheses, position, self.hypotheses), self.true)
            mask = self.past[:, None, :, : self.max_keys].flatten(3)
        if self.config.sliding_window:
            recent = self.steps[: self.max_keys] > position - self.config.sliding_window
            mask = mask & recent[:, :, None].expand(-1, -1, width).flatten(1)[:, None, None]
        positions = position.expand(-1, width)
        if self.position_limit:  # a closed slot is one position beyond its last, where a learned table may end
            positions = positions.clamp(max=self.position_limit - 1)
        x = self.model.decoder(
            tokens.view(slots, width),
            mask,
            self.memory,
            caches=self.caches,
            positions=positions,
            execution=self.execution,
        )
        return self.model.output(x).flatten(0, 1)

    def reorder(self, rows: Tensor) -> None:
        """Make hypothesis i continue hypothesis rows[i]; both count over all slots, and stay within a slot."""
        self.past.copy_(self.past.flatten(0, 1)[rows].view_as(self.past))


class StaticCache:
    """The keys and values of one layer for all slots: slots × (capacity · beam) × kv_heads × d_head."""

    def __init__(self, stepper: StaticStepper, key: Tensor, value: Tensor) -> None:
        self.stepper, self.key, self.value = stepper, key, value

    def extend(self, key: Tensor, value: Tensor) -> KeyValue:
        """Store new keys and values at the entries of this step. Return those of the first `max_keys` steps."""
        stepper = self.stepper
        if stepper.kernels is not None:
            stepper.kernels.write_cache((self.key, self.value), (key, value), stepper.entries)
        else:
            for stored, new in ((self.key, key), (self.value, value)):
                stored[stepper.slots, stepper.entries] = new.transpose(1, 2)
        end = stepper.max_keys * len(stepper.hypotheses)
        return self.key[:, :end].transpose(1, 2), self.value[:, :end].transpose(1, 2)


class Kernels(Protocol):
    """The functions of `gpu_kernels`."""

    def attend_few_queries(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool
    ) -> Tensor: ...

    def top_tokens(self, logits: Tensor, count: int) -> tuple[Tensor, Tensor]: ...

    def write_cache(self, stored: KeyValue, new: KeyValue, entries: Tensor) -> None: ...


def load_kernels() -> Kernels | None:
    """Import `gpu_kernels`. Return None where there is no Triton, which torch does not bring on every system."""
    if importlib.util.find_spec("triton") is None:
        return None
    return cast(Kernels, importlib.import_module("sixfold.engines.gpu_kernels"))
