"""Models that are opened when they are first used, and closed again when their memory is needed for others."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import numpy as np

from sixfold.config import ModelConfig
from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.engines.engine import Engine, Ids
from sixfold.modelfile import ModelFile

Opened = TypeVar("Opened")  # a ModelFile, or what has a method `close`


class ModelPool:
    """Files and engines of models that together take at most `max_bytes`; the least recently used are closed first.

    An engine in use is never closed, so that several large ones in use at the same time may take more.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._open: dict[Pooled[Any], Any] = {}  # the most recently used one last
        self._users: dict[Pooled[Any], int] = {}
        self._opening: dict[Pooled[Any], threading.Lock] = {}

    @property
    def open_bytes(self) -> int:
        """The memory that all open files and engines take, as it is estimated."""
        with self._lock:
            return self._total()

    def _total(self) -> int:
        return sum(memory_of(*each) for each in self._open.items())

    @contextmanager
    def use(self, pooled: Pooled[Opened]) -> Iterator[Opened]:
        """Yield a file or an engine, which is opened if it is not; it stays open until the context ends."""
        with self._lock:
            self._users[pooled] = self._users.get(pooled, 0) + 1
            opening = self._opening.setdefault(pooled, threading.Lock())
        try:
            with opening:  # other models are used meanwhile
                with self._lock:
                    opened = self._open.pop(pooled, None)
                    if opened is not None:
                        self._open[pooled] = opened
                if opened is None:
                    self._close_others(pooled.size)
                    opened = pooled.make()
                    with self._lock:
                        self._open[pooled] = opened
            yield opened
        finally:
            with self._lock:
                self._users[pooled] -= 1
            self._close_others(0)

    def is_open(self, pooled: Pooled[Any]) -> bool:
        """Return whether a file or an engine is open now."""
        with self._lock:
            return pooled in self._open

    def _close_others(self, needed: int) -> None:
        """Close what nothing uses, the least recently used first, until there is room."""
        closed = []
        with self._lock:
            total = needed + self._total()
            for pooled in list(self._open):
                if total <= self.max_bytes:
                    break
                if not self._users.get(pooled):
                    closed.append(self._open.pop(pooled))
                    total -= memory_of(pooled, closed[-1])
        self._close(closed)

    def close(self, pooled: Pooled[Any]) -> None:
        """Close a file or an engine if it is open."""
        with self._lock:
            opened = self._open.pop(pooled, None)
        if opened is not None:
            self._close([opened])

    def close_all(self) -> None:
        """Close everything that is open."""
        with self._lock:
            closed = list(self._open.values())
            self._open.clear()
        self._close(closed)

    def _close(self, closed: list[Any]) -> None:
        if closed:
            while closed:
                opened = closed.pop()
                if not isinstance(opened, ModelFile):
                    opened.close()
                del opened
            gc.collect()  # a tokeniser and its parts refer to each other
            return_memory()


def memory_of(pooled: Pooled[Any], opened: object) -> int:
    """Return the memory in bytes that a file or an engine takes now. The weights of a file count when they are read."""
    return pooled.size + (opened.cached_bytes if isinstance(opened, ModelFile) else 0)


def return_memory() -> None:
    """Give freed memory back to the system: the C library of Linux would keep most of a closed model."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # other C libraries than glibc have no such function
            ctypes.CDLL(None).malloc_trim(0)


class Pooled(Generic[Opened]):
    """A file or an engine of a pool."""

    def __init__(self, pool: ModelPool, size: int, make: Callable[[], Opened]) -> None:
        """`size` is the memory in bytes that it takes when it has been opened."""
        self.pool, self.size = pool, size
        self.make: Callable[[], Opened] = make

    @property
    def is_open(self) -> bool:
        return self.pool.is_open(self)

    def close(self) -> None:
        """Close it if it is open."""
        self.pool.close(self)


class PooledFile(Pooled[ModelFile]):
    """A model file of a pool: tokenisers, shortlist, and weights that were read to look into them."""

    def get(self) -> ModelFile:
        """Return the file. Its memory is freed when it is closed and the caller has forgotten it too."""
        with self.pool.use(self) as file:
            return file


class PooledEngine(Pooled[Engine]):
    """An engine of a pool. It has the shape of its model before it is open."""

    def __init__(
        self,
        pool: ModelPool,
        config: ModelConfig,
        size: int,
        open_engine: Callable[[ModelFile], Engine],
        file: PooledFile,
    ) -> None:
        """`size` is the memory in bytes that the engine takes when it has been opened from its file."""
        super().__init__(pool, size, lambda: open_engine(file.get()))
        self.config = config

    def decode(
        self, sources: Sequence[Ids], options: SearchOptions | None = None, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the best targets of each source, as `Engine.decode` describes."""
        with self.pool.use(self) as engine:
            return engine.decode(sources, options, prefixes)

    def alternatives(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Hypothesis]:
        """Return a target for each of the likeliest next tokens, as `Engine.alternatives` describes."""
        with self.pool.use(self) as engine:
            return engine.alternatives(source, prefix, options)

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Return the log-probabilities of the tokens of each target, as `Engine.score` describes."""
        with self.pool.use(self) as engine:
            return engine.score(sources, targets)

    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        """Return the weights of target tokens on source tokens, as `Engine.align` describes."""
        with self.pool.use(self) as engine:
            return engine.align(sources, targets)
