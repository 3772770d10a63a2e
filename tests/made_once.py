"""What several test processes need is made by the first of them that asks; the others wait and share it."""

import fcntl
import os
import tempfile
from pathlib import Path


def made_once(factory, name, make):
    """A folder that all processes of this session share, as `make(folder)` left it; nobody may write into it later."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # each process has a folder of its own inside of the session's
        root = root.parent
    done = root / name
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go of when the file is closed, or its process has died
        if not done.exists():
            fresh = Path(tempfile.mkdtemp(dir=root))
            make(fresh)
            fresh.rename(done)
    return done
