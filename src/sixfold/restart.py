"""What a later start must respect: a folder that one process holds at a time, and what was asked for before."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from sixfold import tensorfile
from sixfold.errors import ConfigError


@contextmanager
def claim(folder: Path, where: str, busy: str, subfolders: Sequence[str] = ()) -> Iterator[None]:
    """Make the folder and lock it, as two processes that write to one folder would ruin both. A kill unlocks it.

    What an earlier process left unfinished there is deleted, in the folder itself and in those `subfolders` (patterns
    such as "data/tokens-*") that belong to it; nothing else is.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a+b")
    except OSError as error:
        raise ConfigError(f"{where}: cannot write: {error.strerror}", "choose a folder of your own") from None
    with lock:
        hold(lock, ConfigError(f"{where}: {busy}", "wait for it, or choose another folder"))
        for own in (folder, *(path for pattern in subfolders for path in folder.glob(pattern))):
            tensorfile.discard_unfinished(own)
        yield


def hold(file: BinaryIO, refusal: ConfigError) -> None:
    """Lock a file until it is closed or the process ends, whatever ends it. Raise `refusal` where it is locked already.

    On a file system without locks nothing can be held: a note on standard error says so.
    """
    try:
        is_ours = tensorfile.lock(file.fileno())
    except OSError as error:
        print(
            f"note: {file.name}: cannot be locked ({error.strerror}); make sure that no other process writes there",
            file=sys.stderr,
        )
        return
    if not is_ours:
        raise refusal


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """`beam: 4 → 1` for every value that differs."""
    return [
        f"{name}: {before.get(name, 'not set')} → {now.get(name, 'not set')}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
