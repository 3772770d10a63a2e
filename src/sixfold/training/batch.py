"""A batch: what a model reads, padded, and what it should have said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sixfold.config import ModelConfig
from sixfold.data.loader import Examples, Packing


@dataclass(frozen=True)
class Batch:
    """`inputs` are in the order of the model's parameters; the last of them with ids is what it goes on from."""

    inputs: tuple[Tensor | None, ...]
    places: Int[Tensor, "tokens"]  # positions of the flattened output
    labels: Int[Tensor, "tokens"]  # what each of them should say
    rows: np.ndarray | None = None  # which pairs of the corpus these are
    number: int = 0  # which micro-batch of its step this is

    @property
    def tokens(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and length of the output."""
        read = self.inputs[1] if len(self.inputs) > 1 else self.inputs[0]
        assert read is not None
        return read.size(0), read.size(1)

    def to(self, device: torch.device) -> Batch:
        inputs = tuple(None if each is None else each.to(device, non_blocking=True) for each in self.inputs)
        places, labels = (each.to(device, non_blocking=True) for each in (self.places, self.labels))
        return Batch(inputs, places, labels, self.rows, self.number)

    def pinned(self) -> Batch:
        """In memory that a GPU can fetch from by itself."""
        inputs = tuple(None if each is None else each.pin_memory() for each in self.inputs)
        return Batch(inputs, self.places.pin_memory(), self.labels.pin_memory(), self.rows, self.number)

    def halves(self) -> list[Batch]:
        """The same rows in two batches."""
        count, length = self.shape
        result = []
        for begin, end in ((0, count // 2), (count // 2, count)):
            inside = (self.places >= begin * length) & (self.places < end * length)
            inputs = tuple(None if each is None else each[begin:end] for each in self.inputs)
            rows = None if self.rows is None else self.rows[begin:end]
            result.append(Batch(inputs, self.places[inside] - begin * length, self.labels[inside], rows, self.number))
        return result


def pair_batch(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], shape: ModelConfig) -> Batch:
    """From lists of ids, which have no <eos> yet."""
    source, source_lengths = _flat([[*source, shape.eos] for source, _ in pairs])
    target, target_lengths = _flat([target for _, target in pairs])
    return collate(Examples(source, target, source_lengths, target_lengths, np.arange(len(pairs))), shape)


def _flat(texts: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([index for text in texts for index in text], np.int64), np.array([len(text) for text in texts])


def collate(examples: Examples, shape: ModelConfig) -> Batch:
    """Teacher forcing: the decoder reads <bos> y1 … yn and should say y1 … yn <eos>; a source ends in <eos>."""
    batch = _padded(examples, shape) if examples.packing is None else _packed(examples, examples.packing, shape)
    if examples.counts:
        return replace(batch, number=examples.number)
    return Batch(batch.inputs, batch.places[:0], batch.labels[:0], None, examples.number)


def _padded(examples: Examples, shape: ModelConfig) -> Batch:
    real = _inside(examples.source_lengths)
    source = np.full(real.shape, shape.pad)
    source[real] = examples.source
    said = _inside(examples.target_lengths + 1)
    target = np.full(said.shape, shape.pad)
    target[:, 0] = shape.bos
    target[:, 1:][said[:, 1:]] = examples.target
    labels = np.full(said.shape, shape.eos)
    labels[:, :-1][said[:, 1:]] = examples.target
    # Without padding there is nothing to mask, and attention without a mask is faster.
    padding = None if real.all() else torch.from_numpy(real)
    inputs = (torch.from_numpy(source), torch.from_numpy(target), padding)
    return Batch(inputs, torch.from_numpy(np.flatnonzero(said)), torch.from_numpy(labels[said]), examples.rows)


def _packed(examples: Examples, packing: Packing, shape: ModelConfig) -> Batch:
    """Text after text in each row; beside the ids goes which text of its row each belongs to."""
    read, source_texts, _ = _laid_out(examples.source_lengths, packing, packing.lines.source)
    source = np.full(source_texts.shape, shape.pad)
    source.flat[read] = examples.source
    said, target_texts, begins = _laid_out(examples.target_lengths + 1, packing, packing.lines.target)
    is_first = np.zeros(len(said), bool)
    is_first[begins] = True
    target = np.full(target_texts.shape, shape.pad)
    target.flat[said[begins]] = shape.bos
    target.flat[said[~is_first]] = examples.target
    labels = np.full(len(said), shape.eos)
    labels[:-1][~is_first[1:]] = examples.target
    arrays = (source, target, source_texts, target_texts, said, labels)
    source_ids, target_ids, *texts, places, wanted = map(torch.from_numpy, arrays)
    return Batch((source_ids, target_ids, None, None, *texts), places, wanted, examples.rows)


def _laid_out(lengths: np.ndarray, packing: Packing, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each token stands in the flattened batch, the number of the text at each place, and where texts begin."""
    counts = packing.counts
    row = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(lengths) - lengths
    begins_of_row = np.cumsum(counts) - counts
    # By how much the tokens of each row must move from where they are to where the row begins.
    shift = np.arange(len(counts)) * width - np.append(begins, 0)[begins_of_row]
    places = np.arange(lengths.sum()) + np.repeat(shift[row], lengths)
    texts = np.zeros((packing.rows, width), np.int64)
    texts.flat[places] = np.repeat(np.arange(len(row)) - begins_of_row[row] + 1, lengths)
    return places, texts, begins


def _inside(lengths: np.ndarray) -> np.ndarray:
    """True = a real token."""
    inside: np.ndarray = np.arange(lengths.max()) < lengths[:, None]
    return inside
