"""Endless training steps, made ahead of time by a thread, from a cursor that a checkpoint can keep."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from sixfold.data.batching import (
    PackedRows,
    choose_row_lengths,
    group_steps,
    join_and_cut,
    length_batches,
    pack,
    padding_share,
    rows_of_epoch,
    widen,
)
from sixfold.data.examples import Examples, ExampleSet, Packing
from sixfold.data.store import Ragged, Tokenizers
from sixfold.errors import DataError
from sixfold.text.tokenizer import Tokenizer

Batch = TypeVar("Batch")
STEPS_AHEAD = 4  # made and waiting to be taken
GROWTH_PER_RATE = 1.5  # by which packed rows are longer for subword sampling, times its rate


@dataclass(frozen=True)
class Cursor:
    """Where in the data a run is: the next step of an epoch, both counted from 0."""

    epoch: int = 0
    step: int = 0


@dataclass(frozen=True)
class BatchPlan:
    """All that decides the batches and their order, besides the examples themselves."""

    micro_tokens: int
    micro_batches: int = 1  # of a step, over all ranks
    seed: int = 1
    rank: int = 0
    ranks: int = 1
    subword_sampling: float = 0.0
    max_length: int = 10**9  # tokens; sampling, which makes texts longer, stays below
    packed: bool = False  # several examples in a row, instead of examples of similar lengths in a batch


class Share(NamedTuple):
    """A micro-batch, or a part of one, that a rank makes."""

    batch: PackedRows
    micro_batch: int
    has_loss: bool = True


def row_lengths_of(examples: ExampleSet, lengths: Mapping[str, np.ndarray], subword_sampling: float) -> dict[str, int]:
    """Return the length of packed rows in each column, with room for what subword sampling adds."""
    if examples.row_tokens:
        return dict.fromkeys(examples.columns, examples.row_tokens)
    return widen(choose_row_lengths(lengths), GROWTH_PER_RATE * subword_sampling)


class Loader(Generic[Batch]):
    """The steps of one rank. `cursor` is behind the last step that was taken, however many were made ahead."""

    def __init__(
        self,
        examples: ExampleSet,
        plan: BatchPlan,
        collate: Callable[[Examples], Batch],
        tokenizers: Tokenizers | None = None,
        cursor: Cursor | None = None,
    ) -> None:
        if len(examples) == 0:
            raise DataError("corpus: expected examples to learn from; none is left")
        self.examples = examples
        self.plan = plan
        self.collate = collate
        self.tokenizers = tokenizers
        self.cursor = cursor or Cursor()
        self.lengths = examples.lengths()
        # Of the texts as they are stored; the rows of a batch have room for what subword sampling adds.
        self.stored_lengths = choose_row_lengths(self.lengths) if plan.packed and not examples.row_tokens else None
        self.row_lengths = row_lengths_of(examples, self.lengths, plan.subword_sampling) if self.is_packed else None

    @property
    def is_packed(self) -> bool:
        """Return whether a row holds several examples."""
        return self.plan.packed or self.examples.row_tokens > 0

    @property
    def rows_per_batch(self) -> int:
        """Return the rows of a packed micro-batch."""
        assert self.row_lengths is not None
        return max(1, self.plan.micro_tokens // max(self.row_lengths.values()))

    def epoch(self, number: int) -> list[list[PackedRows]]:
        """Return all steps of an epoch, for all ranks; a batch that is not packed has one example a row."""
        rows = rows_of_epoch(self.examples.ends, self.examples.weights, self.plan.seed, number)
        if len(rows) == 0:
            raise DataError("corpus.weight: expected weights that leave examples in an epoch; none is left")
        seed = self.plan.seed
        if self.examples.row_tokens:
            (lengths,) = self.lengths.values()
            joined = join_and_cut(rows, lengths, self.examples.row_tokens, seed, number)
            batches = joined.split(self.rows_per_batch)
            # Rows that fill no batch are left out too; other ones are in the next epoch.
            batches = batches[: max(1, len(joined.counts) // self.rows_per_batch)]
        elif self.stored_lengths is None:
            batches = [
                PackedRows(batch, np.ones_like(batch))
                for batch in length_batches(rows, self.lengths, self.plan.micro_tokens, seed, number)
            ]
        else:
            batches = pack(rows, self.lengths, self.stored_lengths, seed, number).split(self.rows_per_batch)
        return group_steps(batches, self.plan.micro_batches)

    def padding_share(self) -> float:
        """Return the share of padding in what the model reads."""
        batches = [batch for step in self.epoch(0) for batch in step]
        if self.row_lengths is None:
            return padding_share([batch.examples for batch in batches], self.lengths)
        real = sum(
            int((column[batch.examples] if batch.pieces is None else batch.pieces.lengths).sum())
            for batch in batches
            for column in self.lengths.values()
        )
        return 1 - real / (len(batches) * len(batches[0].counts) * sum(self.row_lengths.values()))

    def __iter__(self) -> Iterator[list[Batch]]:
        ready: queue.Queue[tuple[Cursor, list[Batch]] | BaseException] = queue.Queue(STEPS_AHEAD)
        stop = threading.Event()
        worker = threading.Thread(target=self._work, args=(ready, stop, self.cursor), daemon=True)
        worker.start()
        try:
            while True:
                item = ready.get()
                if isinstance(item, BaseException):
                    raise item
                self.cursor, batches = item
                yield batches
        finally:
            stop.set()
            while worker.is_alive():
                while not ready.empty():
                    ready.get_nowait()
                worker.join(0.05)

    def _work(self, ready: queue.Queue[object], stop: threading.Event, cursor: Cursor) -> None:
        try:
            epoch, first = cursor.epoch, cursor.step
            while True:
                steps = self.epoch(epoch)
                for number in range(first, len(steps)):
                    batches = [self.collate(self._read(share, epoch)) for share in self._shares(steps[number])]
                    after = Cursor(epoch, number + 1) if number + 1 < len(steps) else Cursor(epoch + 1, 0)
                    ready.put((after, batches))
                    if stop.is_set():
                        return
                epoch, first = epoch + 1, 0
        except BaseException as error:  # raised again where the next step is taken
            ready.put(error)

    def _shares(self, step: list[PackedRows]) -> list[Share]:
        """Return this rank's part of a step. All ranks get equally many, because they synchronise in each of them.

        Ranks take whole micro-batches in turn. Where a step has fewer of them than there are ranks, each is cut.
        """
        shares = [
            Share(batch, number)
            for number, micro_batch in enumerate(step)
            for batch in micro_batch.split(-(-len(micro_batch.counts) // self.cuts))
        ]
        own = shares[self.plan.rank :: self.plan.ranks]
        if len(own) < -(-len(shares) // self.plan.ranks):
            own.append(Share(shares[0].batch, shares[0].micro_batch, has_loss=False))
        return own

    @property
    def cuts(self) -> int:
        """Return the number of parts that a micro-batch is cut into."""
        return -(-self.plan.ranks // self.plan.micro_batches)

    def _read(self, share: Share, epoch: int) -> Examples:
        numbers, counts, pieces = share.batch
        columns = self.examples.gather(numbers) if pieces is None else self.examples.gather_pieces(numbers, pieces)
        packing = None
        if self.row_lengths is not None:
            packing = Packing(counts, -(-self.rows_per_batch // self.cuts), self.row_lengths)
        if self.plan.subword_sampling and self.tokenizers is not None:
            random = np.random.default_rng((self.plan.seed, epoch, int(numbers[0]), len(numbers)))
            for name, added in zip(self.examples.columns, self.examples.added, strict=True):
                max_length = packing.lengths[name] if packing else self.plan.max_length
                columns[name] = self._sample(columns[name], self.tokenizers[name], added, counts, max_length, random)
        return Examples(columns, numbers, packing, pieces, share.micro_batch, share.has_loss)

    def _sample(
        self,
        text: Ragged,
        tokenizer: Tokenizer,
        added: int,
        counts: np.ndarray,
        max_length: int,
        random: np.random.Generator,
    ) -> Ragged:
        """Cut pieces into smaller ones at random, except in rows that would become longer than `max_length`."""
        cut, cut_lengths = tokenizer.sample_batch(text.values, text.lengths, self.plan.subword_sampling, random)
        row = np.repeat(np.arange(len(counts)), counts)
        fits = (np.bincount(row, cut_lengths, len(counts)) + added * counts <= max_length)[row]
        lengths = np.where(fits, cut_lengths, text.lengths)
        values, is_cut = np.empty(lengths.sum(), text.values.dtype), np.repeat(fits, lengths)
        values[is_cut] = cut[np.repeat(fits, cut_lengths)]
        values[~is_cut] = text.values[np.repeat(~fits, text.lengths)]
        return Ragged(values, lengths)
