"""The models that a server has open; a file that changes is opened anew, and what is in work ends with the old."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sixfold import modelfile
from sixfold.errors import SixfoldError
from sixfold.explorer.explore import Explorer
from sixfold.translation.translator import Translator

Stamp = tuple[tuple[int, int, int], ...]


class Opened:
    """One translator and those who use it; it is closed when it has been replaced and the last of them has gone."""

    def __init__(self, paths: Sequence[Path], threads: int | None) -> None:
        self.translator = Translator(list(paths), "cpu", threads)
        self.explorer = Explorer(self.translator)
        self.cards: list[dict[str, Any]] = [
            {"name": path.stem, "checksum": file.checksum, "bytes": path.stat().st_size, "card": file.card}
            for path in paths
            for file in [modelfile.load(path, verify=False)]
        ]
        self.users = 0
        self.is_replaced = False

    def close(self) -> None:
        self.explorer.close()
        self.translator.close()


class Models:
    """What is open now. `generation` counts how often it was replaced."""

    def __init__(self, paths: Sequence[Path], threads: int | None = None) -> None:
        self._paths, self._threads = list(paths), threads
        self._lock = threading.Lock()
        self._stamp = self._look()
        self._opened = Opened(self._paths, threads)
        self.generation = 0

    @contextmanager
    def borrow(self) -> Iterator[Opened]:
        """It stays open until it is given back."""
        with self._lock:
            opened = self._opened
            opened.users += 1
        try:
            yield opened
        finally:
            with self._lock:
                opened.users -= 1
                is_last = opened.is_replaced and not opened.users
            if is_last:
                opened.close()

    @property
    def directions(self) -> list[tuple[str, str]]:
        return self._opened.translator.directions

    @property
    def cards(self) -> list[dict[str, Any]]:
        return self._opened.cards

    def refresh(self) -> str:
        """Open what has changed since the last look; what happened in a line, or nothing."""
        try:
            stamp = self._look()
        except OSError as error:
            stamp = ((0, 0, error.errno or 0),)
        if stamp == self._stamp:
            return ""
        self._stamp = stamp
        names = ", ".join(path.name for path in self._paths)
        try:
            fresh = Opened(self._paths, self._threads)
        except (SixfoldError, OSError) as error:
            return f"a changed model was not opened, the old one goes on: {error}"
        with self._lock:
            old, self._opened = self._opened, fresh
            old.is_replaced = True
            self.generation += 1
            is_idle = not old.users
        if is_idle:
            old.close()
        return f"opened {names} again, as it has changed"

    def close(self) -> None:
        self._opened.close()

    def _look(self) -> Stamp:
        found = [path.stat() for path in self._paths]
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in found)
