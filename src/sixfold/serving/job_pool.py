"""Threads for one kind of work. A job that would wait for them beyond its deadline is refused at once."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from sixfold.serving.responses import HttpError
from sixfold.translation.cancellation import Cancelled, cancellable

RECENT = 0.3  # the weight of the latest job in the average
Result = TypeVar("Result")


class JobPool:
    """Runs jobs in threads and knows how long they take on average. At most `limit` jobs may run or wait."""

    def __init__(self, name: str, threads: int, limit: float) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._threads, self._limit = threads, limit
        self._lock = threading.Lock()  # of the two values below: a job ends in its thread
        self._jobs = 0  # that run or wait
        self._average = 0.0  # seconds of a job; 0 while none has ended

    async def run(self, work: Callable[[], Result], deadline: float | None = None) -> Result:
        """Run a function in a thread. If the caller is cancelled, the thread is told to stop.

        With a deadline in seconds, HttpError 503 is raised at once for a job that has to wait and will probably not be
        done by then. At the deadline, the status is 503 for a job that had to wait, and 504 for one that ran all along.
        """
        loop, is_cancelled = asyncio.get_running_loop(), threading.Event()
        has_to_wait = self._jobs >= self._threads
        seconds = self._seconds_for_next() if has_to_wait else 0.0
        if self._jobs >= self._limit or (deadline is not None and seconds > deadline):
            raise busy(max(1, math.ceil(seconds - (deadline or 0.0))))

        def run() -> Result:
            if is_cancelled.is_set():
                raise Cancelled
            start = time.monotonic()
            try:
                with cancellable(is_cancelled.is_set):
                    return work()
            finally:
                self._note(time.monotonic() - start)

        with self._lock:
            self._jobs += 1
        future = self._executor.submit(run)
        future.add_done_callback(self._end)
        try:
            async with asyncio.timeout(deadline):
                return await asyncio.wrap_future(future, loop=loop)
        except TimeoutError:
            if deadline is None:
                raise
            if has_to_wait:
                raise busy(max(1, math.ceil(self._seconds_for_next() - deadline))) from None
            raise HttpError(504, f"no response within {deadline:g} s", "send less at once") from None
        finally:
            is_cancelled.set()

    def close(self) -> None:
        """Wait for the jobs that run."""
        self._executor.shutdown()

    def _seconds_for_next(self) -> float:
        """Return the likely time until one more job would be done."""
        return (self._jobs // self._threads + 1) * self._average

    def _note(self, seconds: float) -> None:
        with self._lock:
            self._average += (RECENT if self._average else 1.0) * (seconds - self._average)

    def _end(self, _: Future[Any]) -> None:
        with self._lock:
            self._jobs -= 1


def busy(seconds: int = 2) -> HttpError:
    """Return the error for what the server has no time for now; it may be sent again after some seconds."""
    return HttpError(503, "the server is busy", "try again in a moment", retry_after=seconds)
