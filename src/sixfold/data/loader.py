"""Endless steps of batches, made ahead of time by a thread, from a cursor that a checkpoint can keep."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from sixfold.data.batching import padding_share, plan, rows_of_epoch, steps_of
from sixfold.data.store import Store
from sixfold.errors import DataError
from sixfold.text.tokenizer import Tokenizer

Made = TypeVar("Made")
AHEAD = 4  # steps that may wait, made


@dataclass(frozen=True)
class Cursor:
    """Where in the data a run is: the next step of an epoch, both counted from 0."""

    epoch: int = 0
    step: int = 0


@dataclass(frozen=True)
class Examples:
    """Some pairs: all ids in a row, the lengths that part them, and which pairs of the store they are."""

    source: np.ndarray
    target: np.ndarray
    source_lengths: np.ndarray
    target_lengths: np.ndarray
    rows: np.ndarray


@dataclass(frozen=True)
class Order:
    """What the order of the data follows from, besides the corpus."""

    micro_tokens: int
    together: int = 1  # micro-batches a step, over all ranks
    seed: int = 1
    rank: int = 0
    ranks: int = 1
    subword_sampling: float = 0.0
    longest: int = 10**9  # tokens; sampling, which makes texts longer, stays below


class Loader(Generic[Made]):
    """Steps for one rank. `cursor` is behind the last step that was handed out, however many were made ahead."""

    def __init__(
        self,
        store: Store,
        order: Order,
        make: Callable[[Examples], Made],
        tokenizer: Tokenizer | None = None,
        cursor: Cursor | None = None,
    ) -> None:
        if len(store) == 0:
            raise DataError("corpus: expected pairs to learn from; none is left")
        self.store = store
        self.order = order
        self.make = make
        self.tokenizer = tokenizer
        self.cursor = cursor or Cursor()
        self.lengths = store.lengths()

    def epoch(self, number: int) -> list[list[np.ndarray]]:
        """All steps of an epoch, for all ranks."""
        weights = [corpus.weight for corpus in self.store.corpora]
        rows = rows_of_epoch(self.store.ends, weights, self.order.seed, number)
        if len(rows) == 0:
            raise DataError("corpus.weight: expected weights that leave pairs in an epoch; none is left")
        batches = plan(rows, *self.lengths, self.order.micro_tokens, self.order.seed, number)
        return steps_of(batches, self.order.together)

    def padding_share(self) -> float:
        batches = [rows for step in self.epoch(0) for rows in step]
        return padding_share(batches, *self.lengths)

    def __iter__(self) -> Iterator[list[Made]]:
        ready: queue.Queue[tuple[Cursor, list[Made]] | BaseException] = queue.Queue(AHEAD)
        stop = threading.Event()
        worker = threading.Thread(target=self._work, args=(ready, stop, self.cursor), daemon=True)
        worker.start()
        try:
            while True:
                item = ready.get()
                if isinstance(item, BaseException):
                    raise item
                self.cursor, made = item
                yield made
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
                    mine = steps[number][self.order.rank :: self.order.ranks]
                    made = [self.make(self._examples(rows, epoch)) for rows in mine]
                    after = Cursor(epoch, number + 1) if number + 1 < len(steps) else Cursor(epoch + 1, 0)
                    ready.put((after, made))
                    if stop.is_set():
                        return
                epoch, first = epoch + 1, 0
        except BaseException as error:  # whoever waits for the next step shall know
            ready.put(error)

    def _examples(self, rows: np.ndarray, epoch: int) -> Examples:
        source, target, source_lengths, target_lengths = self.store.gather(rows)
        if self.order.subword_sampling and self.tokenizer is not None:
            random = np.random.default_rng((self.order.seed, epoch, int(rows[0]), len(rows)))
            source, source_lengths = self._sampled(source, source_lengths, random)
            target, target_lengths = self._sampled(target, target_lengths, random)
        return Examples(source, target, source_lengths, target_lengths, rows)

    def _sampled(
        self, ids: np.ndarray, lengths: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cut into smaller pieces at random, unless that would make one too long for the model."""
        assert self.tokenizer is not None
        cut = self.tokenizer.sample_batch(ids, lengths, self.order.subword_sampling, random)
        return cut if cut[1].max() < self.order.longest else (ids, lengths)
