"""The seam between data and training: a task says how rows become a batch, what the loss is and how a model is judged.

The store, the loader, the training session, the loop, checkpoints and distribution know no task. They hand a task's
`Examples` to its `collate`, its batches to its `loss`, and its dev sets to its `Validator`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sixfold.config import ModelConfig, TrainingConfig
from sixfold.data.examples import Examples, ExampleSet
from sixfold.data.store import Tokenizers
from sixfold.model.transformer import PLAIN, Execution
from sixfold.modelfile import Shortlist

Item = TypeVar("Item")
Dev = TypeVar("Dev", contravariant=True)  # a dev or test set of a task
OwnBatch = TypeVar("OwnBatch", bound="Batch")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The named tensors of one micro-batch. A task adds what its model reads as further fields, rows first."""

    labels: Int[Tensor, " labels"]  # the classes that the model should predict
    label_positions: Int[Tensor, " labels"]  # where it should, among the flattened (row, position) pairs of the output
    examples: np.ndarray | None = None  # the numbers of the examples; None: the batch has no loss
    micro_batch: int = 0  # its number in the step

    @property
    def inputs(self) -> dict[str, Any]:
        """Return what the model reads, by the names of its parameters."""
        own = {field.name for field in fields(Batch)}
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name not in own}

    @property
    def output_shape(self) -> tuple[int, int]:
        """Return the rows and the length of the model's output."""
        raise NotImplementedError

    def to(self: OwnBatch, device: torch.device) -> OwnBatch:
        """Move all tensors to a device, without waiting where their memory is pinned."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self: OwnBatch) -> OwnBatch:
        """Copy all tensors to memory that a GPU can read by itself."""
        return self._map(Tensor.pin_memory)

    def without_loss(self: OwnBatch) -> OwnBatch:
        """Return the same inputs with no label, for a rank that has no examples of its own in a step."""
        return replace(self, labels=self.labels[:0], label_positions=self.label_positions[:0], examples=None)

    def halves(self: OwnBatch) -> list[OwnBatch]:
        """Split the rows into two batches."""
        rows, length = self.output_shape
        return [self._rows(0, rows // 2, length), self._rows(rows // 2, rows, length)]

    def _rows(self: OwnBatch, begin: int, end: int, length: int) -> OwnBatch:
        inside = (self.label_positions >= begin * length) & (self.label_positions < end * length)
        inputs: dict[str, Any] = {
            name: None if tensor is None else tensor[begin:end] for name, tensor in self.inputs.items()
        }
        return replace(
            self,
            labels=self.labels[inside],
            label_positions=self.label_positions[inside] - begin * length,
            examples=None if self.examples is None else self.examples[begin:end],
            **inputs,
        )

    def _map(self: OwnBatch, function: Callable[[Tensor], Tensor]) -> OwnBatch:
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        tensors: dict[str, Any] = {name: function(value) for name, value in values.items() if isinstance(value, Tensor)}
        return replace(self, **tensors)


class Validation(NamedTuple):
    """The result of a validation."""

    values: dict[str, float]  # "loss" in nats a label, and what else the task measures
    samples: list[tuple[str, str, str]]  # input, output and reference, for people to read
    summary: str  # the values in one line


@runtime_checkable
class Processes(Protocol):
    """The processes that share the work of a validation; all of them call the same methods in the same order."""

    def scatter(self, items: Sequence[Item]) -> list[Item]:
        """Return this process's share of the items."""
        ...

    def gather(self, share: list[Item]) -> list[Item]:
        """Return the results for the items of all processes, in the order of the items."""
        ...

    def all_reduce(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all processes."""
        ...


@runtime_checkable
class Validator(Protocol[Dev]):
    """Judges weights with a model of its own, so that the model in training is left alone."""

    def load(self, weights: Mapping[str, Tensor | np.ndarray]) -> None:
        """Set the weights to judge."""
        ...

    def validate(self, dev: Sequence[Dev]) -> Validation:
        """Judge the weights on the dev sets, in the way that is cheap enough to do often."""
        ...

    def final_score(self, test_set: Dev) -> tuple[dict[str, Any], str, list[str]]:
        """Judge the weights as the model will be used: the scores, a line for people, and the outputs."""
        ...


@runtime_checkable
class Task(Protocol[Dev]):
    """What is learnt from the columns of a store, and how a model is judged."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns of a store and of an example."""
        ...

    def examples(self, store: Any, tokenizers: Tokenizers) -> ExampleSet:
        """Return which rows are learnt from, in which roles."""
        ...

    def collate(self, examples: Examples, shape: ModelConfig) -> Batch:
        """Make the tensors of a micro-batch, with the special tokens that `examples` has not put around the texts."""
        ...

    def loss(self, model: nn.Module, batch: Batch, execution: Execution = PLAIN) -> Float[Tensor, ""]:
        """Return the loss summed over the labels of a batch; `execution` says how the model computes it."""
        ...

    def validator(
        self, model: nn.Module, shape: ModelConfig, tokenizers: Tokenizers, config: TrainingConfig,
        processes: Processes, check_stop: Callable[[], None],
    ) -> Validator[Dev]:  # fmt: skip
        """Return a validator that uses `model`; `check_stop` is called before each batch and may raise to stop."""
        ...

    def rank(self, values: Mapping[str, float], config: TrainingConfig) -> list[float]:
        """Return what a validation is compared by: the better of two has the larger list."""
        ...

    def card(self, examples: ExampleSet) -> dict[str, Any]:
        """Return what the model's card says about the task and how much was learnt from."""
        ...

    def shortlist_work(self, examples: ExampleSet, vocab: int) -> int:
        """Return the units of work that `shortlist` reports; 0: the model gets no shortlist."""
        ...

    def shortlist(
        self, examples: ExampleSet, shape: ModelConfig, start: Shortlist | None, advance: Callable[[int], None]
    ) -> Shortlist:
        """Learn which target pieces a source piece may become; `start` is the shortlist of the model fine-tuned."""
        ...


class Padded(NamedTuple):
    """Texts as rows of one length."""

    tokens: np.ndarray  # (rows, length)
    is_text: np.ndarray  # (rows, length); False = padding


def pad(values: np.ndarray, lengths: np.ndarray, pad_id: int) -> Padded:
    """Lay texts out in rows of the length of the longest, each padded on its right."""
    is_text: np.ndarray = np.arange(lengths.max()) < lengths[:, None]
    tokens = np.full(is_text.shape, pad_id)
    tokens[is_text] = values
    return Padded(tokens, is_text)


class PackedTexts(NamedTuple):
    """Where several texts of each row stand."""

    positions: np.ndarray  # of each token in the flattened batch
    segments: np.ndarray  # (rows, length): the number of the text at each position, from 1 in each row; 0: padding
    begins: np.ndarray  # where each text begins among the tokens


def lay_out(lengths: np.ndarray, counts: np.ndarray, rows: int, width: int) -> PackedTexts:
    """Put texts one after another into rows of one width.

    For example, texts of lengths 2, 1 and 2 with two texts in the first row and one in the second, width 4, give the
    segments [[1, 1, 2, 0], [1, 1, 0, 0]] and the positions [0, 1, 2, 4, 5].
    """
    row = np.repeat(np.arange(len(counts)), counts)
    begins = np.cumsum(lengths) - lengths
    first_text = np.cumsum(counts) - counts
    # How far the tokens of each row move from where they are to where the row begins.
    shift = np.arange(len(counts)) * width - np.append(begins, 0)[first_text]
    positions = np.arange(lengths.sum()) + np.repeat(shift[row], lengths)
    segments = np.zeros((rows, width), np.int64)
    segments.flat[positions] = np.repeat(np.arange(len(row)) - first_text[row] + 1, lengths)
    return PackedTexts(positions, segments, begins)
