"""Long work in a thread that can be stopped: it calls `check_cancelled` now and then, which raises when it should end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Cancelled(Exception):  # noqa: N818 -- it is not a mistake
    """Nobody waits for the result of this work any more."""


_is_stopped: ContextVar[Callable[[], bool] | None] = ContextVar("is_stopped", default=None)


@contextmanager
def cancellable(is_stopped: Callable[[], bool]) -> Iterator[None]:
    """Inside of this block, in this thread, `check_cancelled` raises Cancelled once `is_stopped()` is true."""
    token = _is_stopped.set(is_stopped)
    try:
        yield
    finally:
        _is_stopped.reset(token)


def check_cancelled() -> None:
    """Raise Cancelled if this work may be stopped and should be."""
    is_stopped = _is_stopped.get()
    if is_stopped is not None and is_stopped():
        raise Cancelled
