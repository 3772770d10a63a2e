"""The shortlist of a run, learnt from its tokens: beside training on a GPU, in another process, or else at the end."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import torch

from sixfold import files
from sixfold.data.cleaned import key_of
from sixfold.data.workers import can_fork, forking, prepare_child
from sixfold.modelfile import Shortlist
from sixfold.training.display import Display
from sixfold.training.session import TrainingInputs

ARRAYS = ("always", "begins", "targets")
CHECK_SECONDS = 0.2  # between two checks whether the user stops a run that waits for its shortlist
NICENESS = 5  # the loader of the training process goes first


class ShortlistLearner:
    """Learns the shortlist of a run, if its task and settings give the model one.

    A model that is fine-tuned gets one only if it had one: the new text alone would leave out what else it can write.
    """

    def __init__(self, inputs: TrainingInputs, out: Path) -> None:
        self.inputs = inputs
        vocab = inputs.config.model.vocab
        has_one = inputs.config.training.shortlist and (inputs.start is None or inputs.start.shortlist is not None)
        self.work = inputs.task.shortlist_work(inputs.examples, vocab) if has_one else 0
        self.path = out / "data" / f"shortlist-{key_of(inputs.examples.store.key, inputs.examples.parts)}.npz"
        self._process: BaseProcess | None = None

    @contextmanager
    def beside_training(self, device: torch.device) -> Iterator[None]:
        """On a GPU, learn in another process while the body runs; enter this before training uses much memory.

        A CPU that trains has no core to spare, so that `result` learns the shortlist there.
        """
        if device.type != "cuda" or not self.work or not can_fork() or self.path.exists():
            yield
            return
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=self._write, args=(os.getpid(),), daemon=True)
        with forking():
            self._process.start()
        try:
            yield
        finally:
            self._process.kill()
            self._process.join()
            self._process = None

    def result(self, display: Display) -> Shortlist | None:
        """Return the shortlist, or None if the model gets none. Wait for the other process, or learn it here."""
        if not self.work:
            return None
        while self._process is not None and self._process.is_alive():
            display.interrupt.check()
            self._process.join(CHECK_SECONDS)
        if self.path.exists():
            with np.load(self.path) as arrays:
                return Shortlist(*(arrays[name] for name in ARRAYS))
        with display.reading("learning a shortlist", self.work) as advance:
            return self._learn(advance)

    def _learn(self, advance: Callable[[int], None]) -> Shortlist:
        inputs = self.inputs
        known = inputs.start.shortlist if inputs.start else None
        return inputs.task.shortlist(inputs.examples, inputs.config.model, known, advance)

    def _write(self, parent: int) -> None:
        """Learn the shortlist in a process of its own, and write it to the file that `result` reads."""
        prepare_child(parent)
        os.nice(NICENESS)
        shortlist = self._learn(lambda _: None)
        with files.atomic_write(self.path) as file:
            np.savez(file, **{name: getattr(shortlist, name) for name in ARRAYS})
