"""A function applied to many items by several processes; the results come in the order of the items."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from sixfold.errors import DataError

MIN_SHARED_BYTES = 1 << 24  # of corpora on disk; less is read before the processes have started
MAX_PROCESSES = 32  # because a single process reads for all of them
ITEMS_AHEAD = 2  # for each process
PARENT_CHECK_SECONDS = 0.2

Item = TypeVar("Item")
Result = TypeVar("Result")
_function: Callable[[Any], Any]  # the function that a process of the pool applies


def can_fork() -> bool:
    """Return whether this process may start others by `fork`, which need no pickling and no import of `__main__`.

    Libraries of macOS fail in a forked process, and a daemonic process may not have children.
    """
    return sys.platform == "linux" and not multiprocessing.current_process().daemon


def processes_for(size: int) -> int:
    """Return how many processes suit corpora of `size` bytes: one for each core, or 1 if more are of no use."""
    if size < MIN_SHARED_BYTES or not can_fork():
        return 1
    return min(len(os.sched_getaffinity(0)), MAX_PROCESSES)


def map_in_order(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    processes: int,
    check_stop: Callable[[], None] = lambda: None,
) -> Generator[tuple[Item, Result], None, None]:
    """Yield each item with the result of the function. With one process, each item is read when it is needed.

    With several, a few items for each process are read ahead. The processes are forked, so that any function will do;
    items and results are pickled. Close the iterator to end the processes early. If one of them is killed, DataError is
    raised, unless `check_stop` raises first because the same signal has asked this process to stop.
    """
    if processes < 2:
        yield from ((item, function(item)) for item in items)
        return
    initial = (function, os.getpid())
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("fork"), _start_worker, initial)
    try:
        pending: deque[tuple[Item, Future[Result]]] = deque()
        for item in items:
            with forking():
                pending.append((item, pool.submit(_call, item)))
            if len(pending) > ITEMS_AHEAD * processes:
                first, future = pending.popleft()
                yield first, future.result()
        while pending:
            first, future = pending.popleft()
            yield first, future.result()
    except BrokenProcessPool:
        check_stop()
        raise DataError(
            "a process that prepares the data was killed",
            "is there enough memory? the same command goes on where it was stopped",
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def prepare_child(parent: int) -> None:
    """Set up a forked process: signals of the terminal are left to the parent, and it ends when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _signals())
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


@contextmanager
def forking() -> Iterator[None]:
    """Hold signals back while a process is forked, so that none reaches the child before `prepare_child`.

    Python's warning about forks beside threads is ignored: the functions of this package use no lock of other threads.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _signals())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _signals() -> set[signal.Signals]:
    return {signal.SIGINT, signal.SIGHUP, signal.SIGTERM}


def _end_with(parent: int) -> None:
    # A forked process also holds the lock of the run's folder, so that it must not outlive a parent that was killed.
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)


def _start_worker(function: Callable[[Any], Any], parent: int) -> None:
    global _function
    _function = function
    prepare_child(parent)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # there is a process for each core already


def _call(item: Any) -> Any:
    return _function(item)
