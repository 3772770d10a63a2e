"""Engines that are opened when they are first used, and closed again when their memory is needed for others."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from sixfold.config import ModelConfig
from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.engines.engine import Engine, Ids


class EnginePool:
    """Engines whose models together take at most `max_bytes`; the least recently used ones are closed first.

    An engine in use is never closed, so that several large ones in use at the same time may take more.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._open: dict[PooledEngine, Engine] = {}  # the most recently used one last
        self._users: dict[PooledEngine, int] = {}
        self._opening: dict[PooledEngine, threading.Lock] = {}

    @property
    def open_bytes(self) -> int:
        """The size of all models that are open."""
        with self._lock:
            return sum(engine.size for engine in self._open)

    @contextmanager
    def use(self, pooled: PooledEngine) -> Iterator[Engine]:
        """Yield an engine, which is opened if it is not; it stays open until the context ends."""
        with self._lock:
            self._users[pooled] = self._users.get(pooled, 0) + 1
            opening = self._opening.setdefault(pooled, threading.Lock())
        try:
            with opening:  # other models are used meanwhile
                with self._lock:
                    engine = self._open.pop(pooled, None)
                    if engine is not None:
                        self._open[pooled] = engine
                if engine is None:
                    self._close_others(pooled.size)
                    engine = pooled.make()
                    with self._lock:
                        self._open[pooled] = engine
            yield engine
        finally:
            with self._lock:
                self._users[pooled] -= 1
            self._close_others(0)

    def _close_others(self, needed: int) -> None:
        """Close engines that nothing uses, the least recently used first, until there is room."""
        with self._lock:
            total = needed + sum(engine.size for engine in self._open)
            closed = []
            for pooled in list(self._open):
                if total <= self.max_bytes:
                    break
                if not self._users.get(pooled):
                    closed.append(self._open.pop(pooled))
                    total -= pooled.size
        for engine in closed:
            engine.close()

    def close(self, pooled: PooledEngine) -> None:
        """Close an engine if it is open."""
        with self._lock:
            engine = self._open.pop(pooled, None)
        if engine is not None:
            engine.close()


class PooledEngine:
    """An engine of a pool. It has the shape of its model before it is open."""

    def __init__(self, pool: EnginePool, config: ModelConfig, size: int, open_engine: Callable[[], Engine]) -> None:
        """`size` is that of the model in bytes."""
        self.config, self.size, self.make = config, size, open_engine
        self._pool = pool

    def decode(
        self, sources: Sequence[Ids], options: SearchOptions | None = None, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the best targets of each source, as `Engine.decode` describes."""
        with self._pool.use(self) as engine:
            return engine.decode(sources, options, prefixes)

    def alternatives(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Hypothesis]:
        """Return a target for each of the likeliest next tokens, as `Engine.alternatives` describes."""
        with self._pool.use(self) as engine:
            return engine.alternatives(source, prefix, options)

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Return the log-probabilities of the tokens of each target, as `Engine.score` describes."""
        with self._pool.use(self) as engine:
            return engine.score(sources, targets)

    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        """Return the weights of target tokens on source tokens, as `Engine.align` describes."""
        with self._pool.use(self) as engine:
            return engine.align(sources, targets)

    def close(self) -> None:
        """Free the memory."""
        self._pool.close(self)
