"""What a later start must respect: a folder that one process holds at a time, and what was asked for before."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from sixfold.errors import ConfigError


@contextmanager
def claim(folder: Path, where: str, busy: str) -> Iterator[None]:
    """Make the folder and hold it: two that write to one folder would ruin both. A kill lets go of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a+b")
    except OSError as error:
        raise ConfigError(f"{where}: cannot write: {error.strerror}", "choose a folder of your own") from None
    with lock:
        hold(lock, ConfigError(f"{where}: {busy}", "wait for it, or choose another folder"))
        for half_written in _own_files(folder, ".*.part"):  # by a process that was killed
            half_written.unlink(missing_ok=True)
        yield


def _own_files(folder: Path, pattern: str) -> Iterator[Path]:
    """Below the folder, but for what belongs to a run that has its own folder in it and may be under way."""
    runs = {lock.parent for lock in folder.rglob(".lock")} - {folder}
    return (path for path in folder.rglob(pattern) if runs.isdisjoint(path.parents))


def hold(file: BinaryIO, refusal: ConfigError) -> None:
    """Until the file is closed or the process ends, whatever ends it."""
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise refusal from None


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """`beam: 4 → 1` for every value that differs."""
    return [
        f"{name}: {before.get(name, 'not set')} → {now.get(name, 'not set')}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
