"""Endless steps of batches, made ahead of time by a thread, from a cursor that a checkpoint can keep."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from sixfold.data.batching import padding_share, plan, rows_of_epoch, steps_of
from sixfold.data.packing import Lines, Packed, line_lengths, pack
from sixfold.data.tokens import Store
from sixfold.errors import DataError
from sixfold.text.tokenizer import Tokenizer

Made = TypeVar("Made")
AHEAD = 4  # steps that may wait, made
GROWTH = 1.5  # packed rows leave so much room for subword sampling, times its rate


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
    packing: Packing | None = None
    number: int = 0  # which micro-batch of its step this is
    counts: bool = True  # or only keeps a rank company that has none of its own


@dataclass(frozen=True)
class Packing:
    """Several pairs in each row of a batch, whose shape is the same however many there are."""

    counts: np.ndarray  # pairs in each row; rows at the end may be empty
    rows: int
    lines: Lines  # how long they are


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
    packed: bool = False  # several pairs a row, instead of pairs of like lengths in one batch


class Share(NamedTuple):
    """A micro-batch, or a part of one, that a rank makes."""

    batch: Packed
    number: int
    counts: bool = True


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
        self.lines = line_lengths(*self.lengths) if order.packed else None

    @property
    def widened(self) -> Lines:
        """Rows of a packed batch, with room for what sampling adds."""
        assert self.lines is not None
        return self.lines.widened(GROWTH * self.order.subword_sampling)

    def epoch(self, number: int) -> list[list[Packed]]:
        """All steps of an epoch, for all ranks; a batch that is not packed has one pair a row."""
        rows = rows_of_epoch(self.store.ends, self.store.weights, self.order.seed, number)
        if len(rows) == 0:
            raise DataError("corpus.weight: expected weights that leave pairs in an epoch; none is left")
        seed, budget = self.order.seed, self.order.micro_tokens
        if self.lines is None:
            batches = [Packed(each, np.ones_like(each)) for each in plan(rows, *self.lengths, budget, seed, number)]
        else:
            batches = pack(rows, *self.lengths, self.lines, seed, number).split(max(1, budget // max(self.widened)))
        return steps_of(batches, self.order.together)

    def padding_share(self) -> float:
        """How much of what the model reads is padding."""
        batches = [batch for step in self.epoch(0) for batch in step]
        if self.lines is None:
            return padding_share([batch.pairs for batch in batches], *self.lengths)
        real = sum(int(lengths[batch.pairs].sum()) for batch in batches for lengths in self.lengths)
        return 1 - real / (len(batches) * len(batches[0].counts) * sum(self.widened))

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
                    made = [self.make(self._examples(share, epoch)) for share in self._mine(steps[number])]
                    after = Cursor(epoch, number + 1) if number + 1 < len(steps) else Cursor(epoch + 1, 0)
                    ready.put((after, made))
                    if stop.is_set():
                        return
                epoch, first = epoch + 1, 0
        except BaseException as error:  # whoever waits for the next step shall know
            ready.put(error)

    def _mine(self, step: list[Packed]) -> list[Share]:
        """This rank's part of a step. All ranks get equally many, for they meet in every one of them.

        Ranks take whole micro-batches in turn. Where a step has fewer of them than there are ranks, each is cut.
        """
        shares = [
            Share(batch, number)
            for number, whole in enumerate(step)
            for batch in whole.split(-(-len(whole.counts) // self.parts))
        ]
        mine = shares[self.order.rank :: self.order.ranks]
        if len(mine) < -(-len(shares) // self.order.ranks):
            mine.append(Share(shares[0].batch, shares[0].number, counts=False))
        return mine

    @property
    def parts(self) -> int:
        """Into how many a micro-batch is cut."""
        return -(-self.order.ranks // self.order.together)

    def _examples(self, share: Share, epoch: int) -> Examples:
        pairs, counts = share.batch
        sides = self.store.gather(pairs)
        source, target = (sides[0], sides[2]), (sides[1], sides[3])
        packing = None
        if self.lines is not None:
            rows = max(1, self.order.micro_tokens // max(self.widened))
            packing = Packing(counts, -(-rows // self.parts), self.widened)
        if self.order.subword_sampling and self.tokenizer is not None:
            random = np.random.default_rng((self.order.seed, epoch, int(pairs[0]), len(pairs)))
            longest = (self.order.longest,) * 2 if packing is None else packing.lines
            source = self._sampled(*source, counts, longest[0], random)
            target = self._sampled(*target, counts, longest[1], random)
        return Examples(source[0], target[0], source[1], target[1], pairs, packing, share.number, share.counts)

    def _sampled(
        self, ids: np.ndarray, lengths: np.ndarray, counts: np.ndarray, longest: int, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cut into smaller pieces at random, but for rows that would be too long then."""
        assert self.tokenizer is not None
        cut, cut_lengths = self.tokenizer.sample_batch(ids, lengths, self.order.subword_sampling, random)
        row = np.repeat(np.arange(len(counts)), counts)
        taken = (np.bincount(row, cut_lengths, len(counts)) + counts <= longest)[row]  # each has an <eos> besides
        chosen = np.where(taken, cut_lengths, lengths)
        result, is_cut = np.empty(chosen.sum(), ids.dtype), np.repeat(taken, chosen)
        result[is_cut] = cut[np.repeat(taken, cut_lengths)]
        result[~is_cut] = ids[np.repeat(~taken, lengths)]
        return result, chosen
