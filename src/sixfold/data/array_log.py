"""Arrays that grow on disk and survive a kill: they are valid up to the length that the last commit recorded."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from sixfold import files
from sixfold.errors import DataError


class ArrayLog:
    """Files of one folder that are only appended to, and `ledger.json`, which holds their committed lengths and notes.

    When a log is opened for writing, bytes that were appended after the last `commit` are cut off.
    """

    def __init__(self, folder: Path, columns: Mapping[str, Any]) -> None:
        self.folder = folder
        self.columns = {name: np.dtype(kind) for name, kind in columns.items()}
        self.lengths = dict.fromkeys(columns, 0)
        self.notes: dict[str, Any] = {}
        self.done = False
        self.files: dict[str, BinaryIO] = {}
        folder.mkdir(parents=True, exist_ok=True)
        try:
            entry = json.loads((folder / "ledger.json").read_text(encoding="utf-8"))
            self.lengths, self.notes, self.done = entry["lengths"], entry["notes"], entry["done"]
        except FileNotFoundError:
            pass
        except (ValueError, KeyError) as error:
            raise DataError(f"{folder / 'ledger.json'}: cannot be read: {error}", f"delete {folder}") from None

    def __enter__(self) -> ArrayLog:
        for name, kind in self.columns.items():
            path = self._path(name)
            committed = self.lengths[name] * kind.itemsize
            if (path.stat().st_size if path.exists() else 0) < committed:
                raise DataError(
                    f"{path}: expected at least {committed} bytes; it is cut short", f"delete {self.folder}"
                )
            self.files[name] = path.open("ab")
            self.files[name].truncate(committed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self.files.values():
            file.close()

    def append(self, name: str, values: np.ndarray) -> None:
        self.files[name].write(values.astype(self.columns[name]).tobytes())
        self.lengths[name] += len(values)

    def commit(self, notes: Mapping[str, Any], done: bool = False) -> None:
        """Record the lengths of all arrays and some notes, once the data is on disk."""
        self.notes, self.done = dict(notes), done
        for file in self.files.values():
            file.flush()
            os.fsync(file.fileno())
        with files.atomic_write(self.folder / "ledger.json") as file:
            file.write(json.dumps({"lengths": self.lengths, "notes": self.notes, "done": done}).encode())

    def read(self, name: str) -> np.ndarray:
        """Map a column from disk without copying it."""
        kind, length = self.columns[name], self.lengths[name]
        path = self._path(name)
        if not length:
            return np.empty(0, kind)
        try:
            return np.memmap(path, kind, "r", shape=(length,))
        except (OSError, ValueError):
            raise DataError(f"{path}: missing or cut short", f"delete {self.folder}: it will be made again") from None

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.bin"
