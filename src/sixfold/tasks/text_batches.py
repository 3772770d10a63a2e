"""Texts as batches that teach a decoder-only model to predict the next token, padded or packed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sixfold.config import ModelConfig
from sixfold.data.batching import Pieces
from sixfold.data.examples import Packing
from sixfold.data.store import Ragged
from sixfold.tasks.task import Batch, lay_out, pad


@dataclass(frozen=True, kw_only=True)
class TextBatch(Batch):
    """What a decoder-only model reads. A packed batch has segments; a padded one needs no mask."""

    tokens: Int[Tensor, "rows length"]
    segments: Int[Tensor, "rows length"] | None = None  # the number of the text in its row, from 1; 0: padding

    @property
    def output_shape(self) -> tuple[int, int]:
        return self.tokens.size(0), self.tokens.size(1)


def join(parts: Sequence[Ragged]) -> Ragged:
    """Join texts one by one: the texts 1 2 and 3 with the texts 4 and 5 6 are 1 2 4 and 3 5 6."""
    lengths = np.sum([part.lengths for part in parts], axis=0)
    values = np.empty(lengths.sum(), np.int64)
    begins = np.cumsum(lengths) - lengths
    for part in parts:
        shift = begins - (np.cumsum(part.lengths) - part.lengths)
        values[np.arange(len(part.values)) + np.repeat(shift, part.lengths)] = part.values
        begins = begins + part.lengths
    return Ragged(values, lengths)


def optional(token: int, present: np.ndarray) -> Ragged:
    """Return one token for each text where it is present, and none for the others."""
    return Ragged(np.full(np.count_nonzero(present), token), present.astype(np.int64))


def with_ends(text: Ragged, pieces: Pieces | None, shape: ModelConfig) -> Ragged:
    """Put <bos> before each text and <eos> after it; a piece of a text gets them only where the text has its ends."""
    begins = np.ones(len(text.lengths), bool) if pieces is None else pieces.begins == 0
    # A piece of n labels has n + 1 tokens.
    ends = np.ones(len(begins), bool) if pieces is None else text.lengths + begins == pieces.lengths
    return join([optional(shape.bos, begins), text, optional(shape.eos, ends)])


def make_batch(
    sequences: Ragged, shape: ModelConfig, packing: Packing | None = None, given: np.ndarray | None = None
) -> TextBatch:
    """Make a batch of sequences: all tokens of each but the last are read, and all but the first are predicted.

    `given` is the number of tokens after the first in each sequence, such as those of a prompt, that are read but are
    not labels.
    """
    lengths = sequences.lengths - 1
    ends = np.cumsum(sequences.lengths)
    is_read, is_label = np.ones((2, len(sequences.values)), bool)
    is_read[ends - 1] = False
    is_label[ends - sequences.lengths] = False
    read, labels = sequences.values[is_read], sequences.values[is_label]
    segments = None
    if packing is None:
        tokens, is_text = pad(read, lengths, shape.pad)
        positions = np.flatnonzero(is_text)
    else:
        positions, segments, _ = lay_out(lengths, packing.counts, packing.rows, sum(packing.lengths.values()))
        tokens = np.full(segments.shape, shape.pad)
        tokens.flat[positions] = read
    if given is not None:
        number = np.arange(len(labels)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        is_learnt = number >= np.repeat(given, lengths)
        positions, labels = positions[is_learnt], labels[is_learnt]
    return TextBatch(
        tokens=torch.from_numpy(tokens),
        segments=None if segments is None else torch.from_numpy(segments),
        labels=torch.from_numpy(labels),
        label_positions=torch.from_numpy(positions),
    )


def windows(ids: Sequence[int], length: int, shape: ModelConfig) -> list[list[int]]:
    """Return the sequences of `make_batch` that predict a text and <eos> in parts of at most `length` labels.

    Each part is predicted from its own tokens and the one before them, as in training.
    """
    sequence = [shape.bos, *ids, shape.eos]
    return [sequence[begin : begin + length + 1] for begin in range(0, len(sequence) - 1, length)]
