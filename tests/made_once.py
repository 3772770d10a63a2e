"""Folders that the first of several test processes makes, and the others wait for and share."""

import fcntl
import os
import tempfile
import time
from pathlib import Path

MAX_SECONDS = (
    500  # to wait for another process; less than `faulthandler_timeout`, which would end this one without a word
)


def made_once(factory, name, make):
    """Return a folder that `make(folder)` has filled once for all test processes; it must not be changed later."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each process has a folder inside that of the test run
        root = root.parent
    shared = root / name
    with (root / f"{name}.lock").open("w") as lock:
        take(lock)  # released when the file is closed or the process ends
        if not shared.exists():
            new = Path(tempfile.mkdtemp(dir=root))
            make(new)
            new.rename(shared)
    return shared


def take(lock):
    """Lock an open file, or raise TimeoutError if another process has held it for too long."""
    end = time.monotonic() + MAX_SECONDS
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise TimeoutError(f"{lock.name}: another process has held this lock for {MAX_SECONDS} s") from None
            time.sleep(0.05)
