"""The `sixfold` command in a process of its own, as a user runs it."""

import subprocess
import sys


def sixfold(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "sixfold", *map(str, arguments)], capture_output=True, timeout=120, text=True
    )


def complaint(*arguments):
    """The one line and the hint that a user's mistake gets."""
    done = sixfold(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    error, *hint = done.stderr.splitlines()
    assert error.startswith("error: ")
    assert all(line.startswith("hint: ") for line in hint)
    assert len(hint) <= 1
    return done.stderr
