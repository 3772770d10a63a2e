"""Pairs as batches for teacher forcing, padded or packed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sixfold.config import ModelConfig
from sixfold.data.examples import Packing
from sixfold.data.store import Ragged
from sixfold.tasks.task import Batch, lay_out, pad


@dataclass(frozen=True, kw_only=True)
class TranslationBatch(Batch):
    """What an encoder-decoder reads. A padded batch has `source_padding`, a packed one has segments."""

    source: Int[Tensor, "rows source"]
    target: Int[Tensor, "rows target"]
    source_padding: Bool[Tensor, "rows source"] | None = None  # True = a real token
    source_segments: Int[Tensor, "rows source"] | None = None  # the number of the text in its row, from 1; 0: padding
    target_segments: Int[Tensor, "rows target"] | None = None

    @property
    def output_shape(self) -> tuple[int, int]:
        return self.target.size(0), self.target.size(1)


def append(text: Ragged, token: int) -> Ragged:
    """Add a token to the end of every text."""
    lengths = text.lengths + 1
    values = np.full(lengths.sum(), token, np.int64)
    is_text = np.ones(len(values), bool)
    is_text[np.cumsum(lengths) - 1] = False
    values[is_text] = text.values
    return Ragged(values, lengths)


def make_batch(source: Ragged, target: Ragged, shape: ModelConfig, packing: Packing | None = None) -> TranslationBatch:
    """Make a batch for teacher forcing: the decoder reads <bos> y1 … yn and predicts y1 … yn <eos>.

    A source holds everything that the encoder reads, <eos> included.
    """
    return _pad_pairs(source, target, shape) if packing is None else _pack_pairs(source, target, packing, shape)


def pair_batch(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], shape: ModelConfig) -> TranslationBatch:
    """Make a padded batch of pairs of ids without <bos> and <eos>."""
    return sequence_batch([([*source, shape.eos], target) for source, target in pairs], shape)


def sequence_batch(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], shape: ModelConfig) -> TranslationBatch:
    """Make a padded batch of sources, which hold everything that the encoder reads, and targets without <eos>."""
    source, target = (
        Ragged(
            np.array([index for pair in pairs for index in pair[side]], np.int64),
            np.array([len(pair[side]) for pair in pairs]),
        )
        for side in (0, 1)
    )
    return make_batch(source, target, shape)


def _pad_pairs(source: Ragged, target: Ragged, shape: ModelConfig) -> TranslationBatch:
    """Give each pair a row of its own."""
    tokens, is_text = pad(*source, shape.pad)
    # (rows, length + 1): what the decoder reads begins with <bos>, what it predicts ends in <eos>.
    is_target = np.arange(target.lengths.max() + 1) < target.lengths[:, None] + 1
    read = np.full(is_target.shape, shape.pad)
    read[:, 0] = shape.bos
    read[:, 1:][is_target[:, 1:]] = target.values
    labels = np.full(is_target.shape, shape.eos)
    labels[:, :-1][is_target[:, 1:]] = target.values
    return TranslationBatch(
        source=torch.from_numpy(tokens),
        target=torch.from_numpy(read),
        # Attention without a mask is faster, so that a batch without padding has none.
        source_padding=None if is_text.all() else torch.from_numpy(is_text),
        labels=torch.from_numpy(labels[is_target]),
        label_positions=torch.from_numpy(np.flatnonzero(is_target)),
    )


def _pack_pairs(source: Ragged, target: Ragged, packing: Packing, shape: ModelConfig) -> TranslationBatch:
    """Put several pairs into each row, and number the texts of a row from 1."""
    layout = lay_out(source.lengths, packing.counts, packing.rows, packing.lengths["source"])
    tokens = np.full(layout.segments.shape, shape.pad)
    tokens.flat[layout.positions] = source.values
    target_layout = lay_out(target.lengths + 1, packing.counts, packing.rows, packing.lengths["target"])
    positions, target_segments, begins = target_layout
    is_first = np.zeros(len(positions), bool)
    is_first[begins] = True
    read = np.full(target_segments.shape, shape.pad)
    read.flat[positions[begins]] = shape.bos
    read.flat[positions[~is_first]] = target.values
    labels = np.full(len(positions), shape.eos)
    labels[:-1][~is_first[1:]] = target.values
    return TranslationBatch(
        source=torch.from_numpy(tokens),
        target=torch.from_numpy(read),
        source_segments=torch.from_numpy(layout.segments),
        target_segments=torch.from_numpy(target_segments),
        labels=torch.from_numpy(labels),
        label_positions=torch.from_numpy(positions),
    )
