"""The file of GGUF: a magic, settings by name, a table of tensors, and their data, which is read when it is used."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sixfold.errors import ModelFileError
from sixfold.interop.gguf_types import BLOCK_TYPES, NAMES, PLAIN
from sixfold.tensorfile import DAMAGED, LAYOUTS, OpenFile, StoredArray, Tensor, computed, open_file

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32  # bytes, if the settings name no other
MAX_DIMENSIONS = 4
MAX_STRING_BYTES = 2**24
MIN_SETTING_BYTES, MIN_TENSOR_BYTES = 13, 32  # the smallest entries of the tables
CHUNK = 2**20  # bytes that are read at once
# The types of settings by their numbers; 8 is a string, and 9 an array.
NUMBERS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
STRING, ARRAY = 8, 9


class Contents(NamedTuple):
    """The settings and the tensors of a file. Those in blocks become float32 when they are read."""

    settings: Mapping[str, Any]
    tensors: dict[str, Tensor]


def is_gguf(path: Path) -> bool:
    """Return whether a file begins as a GGUF file does."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_gguf(path: Path) -> Contents:
    """Read the settings and the table of tensors; ModelFileError says in one line what is damaged or not supported."""
    file = open_file(path)
    cursor = Cursor(file)
    if cursor.take(len(MAGIC)) != MAGIC:
        raise ModelFileError(f"{path}: expected a GGUF file, which begins with {MAGIC.decode()}; got another one")
    version = cursor.number("<u4")
    if version not in VERSIONS:
        raise ModelFileError(f"{path}: expected version {' or '.join(map(str, VERSIONS))} of GGUF; got {version}")
    tensor_count, setting_count = cursor.number("<u8"), cursor.number("<u8")
    cursor.check_count("settings", setting_count, MIN_SETTING_BYTES)
    settings = {}
    for _ in range(setting_count):
        name = cursor.string()
        settings[name] = cursor.value(cursor.number("<u4"))
    cursor.check_count("tensors", tensor_count, MIN_TENSOR_BYTES)
    entries = [_Entry.read(cursor) for _ in range(tensor_count)]
    alignment = settings.get("general.alignment", ALIGNMENT)
    if type(alignment) is not int or not 1 <= alignment <= 2**20:
        raise cursor.damaged(f"general.alignment: expected 1 to {2**20}; got {alignment!r}")
    start = -(-cursor.position // alignment) * alignment
    tensors = {entry.name: _tensor(file, entry, start) for entry in entries}
    if len(tensors) != len(entries):
        raise cursor.damaged("a tensor is there twice")
    return Contents(settings, tensors)


class Cursor:
    """A position in a file, from which numbers and strings are read."""

    def __init__(self, file: OpenFile) -> None:
        self.file, self.position = file, 0
        self._chunk, self._start = b"", 0

    def damaged(self, reason: str) -> ModelFileError:
        return ModelFileError(f"{self.file.path}: {reason}", DAMAGED)

    def take(self, size: int) -> bytes:
        """Return the next bytes; ModelFileError is raised if the file has fewer."""
        end = self.position + size
        if end > self.file.size:
            raise self.damaged(f"cut short: expected {end} bytes at least; got {self.file.size}")
        if end > self._start + len(self._chunk):
            self._start = self.position
            length = min(max(size, CHUNK), self.file.size - self.position)
            self._chunk = self.file.read(self.position, length).tobytes()
        first = self.position - self._start
        self.position = end
        return self._chunk[first : first + size]

    def number(self, kind: str) -> Any:
        """Return a number of a NumPy type."""
        dtype = np.dtype(kind)
        return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()

    def string(self) -> str:
        """Return a text, which is stored as its size and its bytes in UTF-8."""
        (size,) = struct.unpack("<Q", self.take(8))
        if size > MAX_STRING_BYTES:
            raise self.damaged(f"a text: expected at most {MAX_STRING_BYTES} bytes; got {size}")
        return self.take(size).decode("utf-8", errors="replace")

    def check_count(self, what: str, count: int, smallest: int) -> None:
        """Raise ModelFileError for more entries than the rest of the file can hold."""
        if count * smallest > self.file.size - self.position:
            raise self.damaged(f"{what}: expected as many as fit into {self.file.size} bytes; got {count}")

    def value(self, kind: int, is_inside: bool = False) -> Any:
        """Return a value of a type: a number, a text, or a list of either."""
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind == STRING:
            return self.string()
        if kind != ARRAY or is_inside:
            raise self.damaged(f"a setting: expected a number, a text or a list of them; got the type {kind}")
        inner, count = self.number("<u4"), self.number("<u8")
        if inner in NUMBERS:
            dtype = np.dtype(NUMBERS[inner])
            self.check_count("a list", count, dtype.itemsize)
            return np.frombuffer(self.take(count * dtype.itemsize), dtype).tolist()
        self.check_count("a list", count, 8)
        return [self.value(inner, is_inside=True) for _ in range(count)]


class _Entry(NamedTuple):
    """A row of the table of tensors. The shape has the rows first, as NumPy has it; in the file it is reversed."""

    name: str
    shape: tuple[int, ...]
    kind: int
    offset: int

    @classmethod
    def read(cls, cursor: Cursor) -> _Entry:
        name, dimensions = cursor.string(), cursor.number("<u4")
        if dimensions > MAX_DIMENSIONS:
            raise cursor.damaged(f"{name}: expected at most {MAX_DIMENSIONS} dimensions; got {dimensions}")
        shape = tuple(cursor.number("<u8") for _ in range(dimensions))[::-1]
        return cls(name, shape, cursor.number("<u4"), cursor.number("<u8"))


def _tensor(file: OpenFile, entry: _Entry, start: int) -> Tensor:
    """Return a tensor whose data begins at an offset; ModelFileError says if the file has less, or another type."""
    where, count = f"{file.path}: {entry.name}", math.prod(entry.shape)
    if entry.kind in PLAIN:
        dtype = PLAIN[entry.kind]
        kind = np.dtype(LAYOUTS[dtype])
        stored = StoredArray(file, entry.name, start + entry.offset, count * kind.itemsize, kind, entry.shape)
        tensor = Tensor(dtype, stored)
    elif entry.kind in BLOCK_TYPES:
        block = BLOCK_TYPES[entry.kind]
        if not entry.shape or entry.shape[-1] % block.values:
            raise ModelFileError(
                f"{where}: expected rows of whole blocks of {block.values}; got {entry.shape}", DAMAGED
            )
        blocks = count // block.values
        size = blocks * block.record.itemsize
        stored = StoredArray(file, entry.name, start + entry.offset, size, block.record, (blocks,))
        tensor = computed("F32", entry.shape, lambda: block.dequantize(stored.read()).reshape(entry.shape), where)
    else:
        raise ModelFileError(
            f"{where}: expected one of the types {', '.join(NAMES)}; got number {entry.kind}",
            "take a file in one of these types, or convert it with `llama-quantize`",
        )
    if stored.start + stored.size > file.size:
        missing = f"expected {stored.start + stored.size} bytes at least; got {file.size}"
        raise ModelFileError(f"{where}: cut short: {missing}", DAMAGED)
    return tensor
