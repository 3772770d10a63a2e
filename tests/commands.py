"""Runs the `sixfold` command, in a new process or in this one."""

import subprocess
import sys

import pytest

from sixfold.cli.main import main


def sixfold(*arguments):
    """Run a command in a new process, as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "sixfold", *map(str, arguments)], capture_output=True, timeout=120, text=True
    )


def complaint(*arguments):
    """Return the error message and the hint of a command that must fail with a mistake of the user."""
    process = sixfold(*arguments)
    assert (process.returncode, process.stdout) == (2, "")
    error, *hint = process.stderr.splitlines()
    assert error.startswith("error: ")
    assert all(line.startswith("hint: ") for line in hint)
    assert len(hint) <= 1
    return process.stderr


def run_here(capsys, *words, status=0):
    """Run a command in this process, which is faster, and return its output."""
    with pytest.raises(SystemExit) as exit_info:
        main(list(map(str, words)))
    output = capsys.readouterr()
    assert exit_info.value.code == status, output.err
    return output
