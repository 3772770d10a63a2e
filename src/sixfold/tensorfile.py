"""The safetensors container, read through a memory map and written atomically, with a checksum over all of it.

Read and written here rather than through the library because NumPy has no bfloat16, because a map costs no memory
and no copy, and because every kind of damage gets a sentence of its own.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import stat
import struct
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from sixfold.errors import ModelFileError

# BF16 travels as its 16 raw bits.
DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
CHECKSUM = "checksum"
MAX_HEADER = 256 * 2**20
PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


@dataclass(frozen=True)
class Tensor:
    """One stored array and the type its bits mean."""

    dtype: str
    data: np.ndarray

    @classmethod
    def of(cls, array: np.ndarray) -> Tensor:
        return cls(next(name for name, kind in DTYPES.items() if kind == array.dtype), array)

    def float32(self) -> np.ndarray:
        if self.dtype == "BF16":
            return (self.data.astype(np.uint32) << 16).view(np.float32)
        return self.data.astype(np.float32, copy=False)


def bfloat16(array: np.ndarray) -> Tensor:
    """Round to nearest even, as hardware does."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    quiet_nan = ((bits >> 16) | 0x40).astype(np.uint16)
    return Tensor("BF16", np.where(np.isnan(array), quiet_nan, rounded))


def read(path: Path, verify: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file, mapped and not copied, and its metadata."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(8)
            if size < 8 or struct.unpack("<Q", head)[0] > min(size - 8, MAX_HEADER):
                # Looked at only now: the length of a good header may begin with the same bytes.
                if head.startswith(PICKLES):
                    raise ModelFileError(
                        f"{path}: expected safetensors; got a pickle, which may run code when opened",
                        "convert it to safetensors with the program that made it",
                    )
                raise ModelFileError(f"{path}: not a safetensors file, or cut short ({size} bytes)", DAMAGED)
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror}") from None
    start = 8 + struct.unpack("<Q", head)[0]
    table, metadata = _parse_header(path, mapped[8:start])
    end = start + max((entry["data_offsets"][1] for entry in table.values()), default=0)
    if end != size:
        raise ModelFileError(f"{path}: expected {end} bytes; got {size}: cut short or added to", DAMAGED)
    try:
        tensors = {name: _mapped(entry, mapped, start) for name, entry in table.items()}
    except (ValueError, TypeError, OverflowError):  # a shape that no array can have
        raise ModelFileError(f"{path}: not a safetensors file, or its header is damaged", DAMAGED) from None
    stated = metadata.pop(CHECKSUM, None)
    if verify and stated is not None and stated != _checksum(table, metadata, memoryview(mapped)[start:]):
        raise ModelFileError(
            f"{path}: the checksum does not fit the contents: the file was altered or damaged", DAMAGED
        )
    return tensors, metadata | ({CHECKSUM: stated} if stated else {})


DAMAGED = "copy or download the file again"


def _parse_header(path: Path, raw: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """The table of tensors and the metadata, both well formed."""
    try:
        table = json.loads(raw.decode("utf-8"))
        metadata = table.pop("__metadata__", {})
        fine = all(isinstance(value, str) for value in metadata.values())
        fine = fine and all(_is_entry(entry) for entry in table.values())
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        fine = False
    if not fine:
        raise ModelFileError(f"{path}: not a safetensors file, or its header is damaged", DAMAGED)
    return table, metadata


def _mapped(entry: Mapping[str, Any], mapped: mmap.mmap, start: int) -> Tensor:
    kind = DTYPES[entry["dtype"]]
    return Tensor(entry["dtype"], np.ndarray(tuple(entry["shape"]), kind, mapped, start + entry["data_offsets"][0]))


def _is_entry(entry: Any) -> bool:
    """Whether a row of the table says what it must, and its numbers fit together."""
    begin, end = entry["data_offsets"]
    size = math.prod(entry["shape"]) * np.dtype(DTYPES[entry["dtype"]]).itemsize
    numbers = [begin, end, *entry["shape"]]
    return all(type(number) is int and number >= 0 for number in numbers) and end - begin == size


def write(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Write all or nothing; returns the checksum."""
    checksum, parts = packed(tensors, metadata)
    with atomic(path) as file:
        for part in parts:
            file.write(part)
    return checksum


def packed(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> tuple[str, list[bytes | memoryview]]:
    """The checksum, and what a file holds, in order."""
    # Wide types first, so that every tensor lies on a multiple of its own width.
    order = sorted(tensors, key=lambda name: -tensors[name].data.itemsize)
    # Not ascontiguousarray, which would make a row of a scalar.
    arrays = {name: np.asarray(tensors[name].data, order="C") for name in order}
    table: dict[str, Any] = {}
    offset = 0
    for name, array in arrays.items():
        table[name] = {
            "dtype": tensors[name].dtype, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes],
        }  # fmt: skip
        offset += array.nbytes
    checksum = _checksum(table, metadata, *(_bytes(array) for array in arrays.values()))
    header = json.dumps({"__metadata__": {**metadata, CHECKSUM: checksum}, **table}, ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    return checksum, [struct.pack("<Q", len(header)) + header, *map(_bytes, arrays.values())]


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _checksum(table: Mapping[str, Any], metadata: Mapping[str, str], *data: memoryview) -> str:
    digest = hashlib.sha256(json.dumps([table, dict(metadata)], sort_keys=True).encode())
    for part in data:
        digest.update(part)
    return f"sha256:{digest.hexdigest()}"


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A file that appears whole under its name, or not at all, whatever happens meanwhile."""
    temporary: Path | None = None
    path = check_target(path)
    try:
        mode = path.stat().st_mode if path.exists() else 0o666 & ~_umask()
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(stat.S_IMODE(mode))
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot write: {error.strerror}") from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def check_target(path: Path) -> Path:
    """Where a file may be written: what a link points to, and never over a device, a folder or an unwritable file."""
    try:
        path = path.resolve()
        if path.exists() and not path.is_file():
            raise ModelFileError(f"{path}: cannot write: expected a file name; got a folder or a device")
        if path.exists() and not os.access(path, os.W_OK):
            raise ModelFileError(f"{path}: cannot write: Permission denied")
        if not path.parent.is_dir():
            raise ModelFileError(f"{path}: cannot write: {path.parent}: No such file or directory")
    except OSError as error:
        raise ModelFileError(f"{path}: cannot write: {error.strerror}") from None
    return path


def _umask() -> int:
    """What the user wants new files to be; mkstemp makes them private. It can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":  # Windows cannot open a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
