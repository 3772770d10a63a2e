"""Folders that the first of several test processes makes, and the others wait for and share."""

import fcntl
import os
import tempfile
from pathlib import Path


def made_once(factory, name, make):
    """Return a folder that `make(folder)` has filled once for all test processes; it must not be changed later."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each process has a folder inside that of the test run
        root = root.parent
    shared = root / name
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed or the process ends
        if not shared.exists():
            new = Path(tempfile.mkdtemp(dir=root))
            make(new)
            new.rename(shared)
    return shared
