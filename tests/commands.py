"""The `sixfold` command, in a process of its own, as a user runs it, or in this one."""

import subprocess
import sys

import pytest

from sixfold.cli.main import main


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


def run_here(capsys, *words, status=0):
    """What the command said; where minutes of starting processes would add up."""
    with pytest.raises(SystemExit) as done:
        main(list(map(str, words)))
    said = capsys.readouterr()
    assert done.value.code == status, said.err
    return said
