"""Long work in a thread that can be cancelled: the work calls `check_cancelled` often, which raises once it should end.

A thread cannot be ended from outside. The flag is a context variable, so that parsers need no parameter for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Cancelled(Exception):  # noqa: N818 -- it is no error
    """Raised in work whose result is no longer needed."""


_is_cancelled: ContextVar[Callable[[], bool] | None] = ContextVar("is_cancelled", default=None)


@contextmanager
def cancellable(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """Make `check_cancelled` raise Cancelled inside this block, in this thread, once `is_cancelled()` is true."""
    token = _is_cancelled.set(is_cancelled)
    try:
        yield
    finally:
        _is_cancelled.reset(token)


def check_cancelled() -> None:
    """Raise Cancelled if this work is in a `cancellable` block and has been cancelled."""
    is_cancelled = _is_cancelled.get()
    if is_cancelled is not None and is_cancelled():
        raise Cancelled
