"""The safetensors container, read one tensor at a time and written atomically, with a checksum of the whole file.

The library is not used, because NumPy has no bfloat16, because every kind of damage has its own error message, and
because a file is not mapped into memory here: a mapped file that is truncated ends the process with SIGBUS, while a
short read is an ordinary error.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from sixfold import files
from sixfold.errors import ModelFileError

# The types of the safetensors specification that NumPy has too.
DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "C64": np.complex64,
    "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8,
    "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
# For each eight-bit floating-point type: the bits of the exponent and of the mantissa, and the bias of the exponent.
FLOAT8 = {
    "F8_E4M3": (4, 3, 7), "F8_E5M2": (5, 2, 15), "F8_E8M0": (8, 0, 127),
    "F8_E4M3FNUZ": (4, 3, 8), "F8_E5M2FNUZ": (5, 2, 16),
}  # fmt: skip
# The NumPy type in which the elements of every type of whole bytes are stored; raw bits if NumPy lacks the type.
LAYOUTS: dict[str, Any] = {**DTYPES, "BF16": np.uint16, **dict.fromkeys(FLOAT8, np.uint8)}
# Types smaller than a byte, with their bits. They are stored packed, and read as one row of bytes.
PACKED_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
CHECKSUM = "checksum"
MAX_HEADER_BYTES = 256 * 2**20
CHECKSUM_CHUNK = 2**20  # bytes read at once for the checksum
PICKLE_BEGINNINGS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


class Tensor:
    """An array and its safetensors type. A tensor of a file, or one that is computed, is read when it is first used."""

    def __init__(
        self, dtype: str, data: np.ndarray | StoredArray | ComputedArray, shape: tuple[int, ...] | None = None
    ) -> None:
        self.dtype = dtype
        self.shape = (
            data.shape if shape is None else shape
        )  # of the elements; the array of a packed type has another shape
        self._data = data

    @classmethod
    def of(cls, array: np.ndarray) -> Tensor:
        """Return a tensor with the type of a NumPy array."""
        return cls(next(name for name, kind in DTYPES.items() if kind == array.dtype), array)

    @property
    def data(self) -> np.ndarray:
        """Return the values, or raw bits if NumPy lacks the type. An array from a file is read-only and cached."""
        self._data = self.read()
        return self._data

    def read(self) -> np.ndarray:
        """Return the same as `data`, without caching what is read from a file or computed."""
        return self._data if isinstance(self._data, np.ndarray) else self._data.read()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the data too, because another machine may not have the file."""
        return Tensor, (self.dtype, self.data, self.shape)

    @property
    def cached_bytes(self) -> int:
        """The memory that the values take; 0 if they are in a file and have not been read, or not been kept."""
        return self._data.nbytes if isinstance(self._data, np.ndarray) else 0

    @property
    def nbytes(self) -> int:
        """The size of the stored values, in bytes."""
        return self._data.nbytes if isinstance(self._data, np.ndarray) else self._data.size

    def float32(self) -> np.ndarray:
        """Return the values as float32; raise ModelFileError for a type that cannot be converted."""
        self.check_number()
        if self.dtype in DTYPES:
            return self.data.astype(np.float32, copy=False)
        # The raw bits are not cached: no caller needs both, and they may be large.
        return self.read_float32()

    def read_float32(self) -> np.ndarray:
        """Return the same as `float32`, without caching what is read from a file or computed."""
        self.check_number()
        values = self.read()
        if self.dtype in DTYPES:
            return values.astype(np.float32, copy=False)
        return widen_bfloat16(values) if self.dtype == "BF16" else float8_values(self.dtype)[values]

    def check_number(self) -> None:
        """Raise ModelFileError for a type that cannot be converted to float32."""
        if self.dtype == "C64" or self.dtype not in ("BF16", *DTYPES, *FLOAT8):
            where = "" if isinstance(self._data, np.ndarray) else f"{self._data.where}: "
            raise ModelFileError(
                f"{where}tensors of the type {self.dtype} cannot be converted to float32",
                "save the model with float32, float16 or bfloat16 weights",
            )


@cache
def float8_values(dtype: str) -> np.ndarray:
    """Return the 256 values of an eight-bit floating-point type as float32."""
    exponent_bits, mantissa_bits, bias = FLOAT8[dtype]
    bits = np.arange(256)
    exponent = bits >> mantissa_bits & (1 << exponent_bits) - 1
    powers = np.exp2(np.maximum(exponent, 1) - float(bias))
    fraction = (bits & (1 << mantissa_bits) - 1) / (1 << mantissa_bits)
    values = powers * np.where(exponent == 0, fraction, 1 + fraction) * np.where(bits >> 7, -1.0, 1.0)
    if dtype == "F8_E8M0":  # a power of two without sign or zero
        values = np.exp2(bits - float(bias))
        values[255] = np.nan
    elif dtype == "F8_E5M2":  # as in IEEE 754: the highest exponent is infinity or not a number
        values[exponent == 31] = np.array([np.inf, np.nan, np.nan, np.nan, -np.inf, np.nan, np.nan, np.nan])
    elif dtype == "F8_E4M3":  # no infinity; all bits set is not a number
        values[bits & 0x7F == 0x7F] = np.nan
    else:  # FNUZ: no infinity; the bits of negative zero are not a number
        values[0x80] = np.nan
    return values.astype(np.float32)


def widen_bfloat16(bits: np.ndarray) -> np.ndarray:
    """Return the float32 values of the bits of bfloat16 numbers."""
    values: np.ndarray = (bits.astype(np.uint32) << 16).view(np.float32)
    return values


def bfloat16(array: np.ndarray) -> Tensor:
    """Return an array as bfloat16, rounded to nearest even, as hardware does."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    quiet_nan = ((bits >> 16) | 0x40).astype(np.uint16)
    return Tensor("BF16", np.where(np.isnan(array), quiet_nan, rounded))


class OpenFile:
    """A file that stays open for reading as long as this object exists, also if it is renamed or deleted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        weakref.finalize(self, os.close, self._descriptor)
        self._lock = Lock()
        self._opened_status = self._status()
        self.size = self._opened_status[0]

    def _status(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns

    def read(self, start: int, size: int) -> np.ndarray:
        """Read `size` bytes; raise ModelFileError if the file has changed since it was opened."""
        data = np.empty(size, np.uint8)
        count = 0
        try:
            while count < size and (length := self._read_some(start + count, data.data[count:])):
                count += length
            is_same = count == size and self._status() == self._opened_status
        except OSError as error:
            raise ModelFileError(f"{self.path}: {error.strerror}") from None
        if not is_same:
            raise ModelFileError(
                f"{self.path}: the file was changed or cut short after it had been opened",
                "open it again; to replace a file in use, write a new one and rename it",
            )
        return data

    def _read_some(self, start: int, into: memoryview) -> int:
        into = into[: 2**30]  # Linux reads at most 2 GiB at once
        if hasattr(os, "preadv"):  # does not move the position, which forked processes share
            return os.preadv(self._descriptor, [into], start)
        with self._lock:
            os.lseek(self._descriptor, start, os.SEEK_SET)
            piece = os.read(self._descriptor, len(into))
        into[: len(piece)] = piece
        return len(piece)


@dataclass(frozen=True)
class StoredArray:
    """An array in a file: the position of its bytes, its name for error messages, its type and its shape."""

    file: OpenFile
    name: str
    start: int
    size: int
    kind: Any  # the NumPy type of its elements; raw bits if NumPy lacks the type
    shape: tuple[int, ...]

    @property
    def where(self) -> str:
        return f"{self.file.path}: {self.name}"

    def read(self) -> np.ndarray:
        """Read the array, which is read-only."""
        array = self.file.read(self.start, self.size).view(self.kind).reshape(self.shape)
        array.flags.writeable = False
        return array


@dataclass(frozen=True)
class ComputedArray:
    """An array that is computed each time it is read, so that a large one need not stay in memory."""

    where: str  # for error messages
    compute: Callable[[], np.ndarray]
    size: int  # in bytes
    shape: tuple[int, ...]

    def read(self) -> np.ndarray:
        """Compute the array."""
        return self.compute()


def computed(dtype: str, shape: tuple[int, ...], compute: Callable[[], np.ndarray], where: str) -> Tensor:
    """Return a tensor of a type and shape whose values `compute` returns, each time they are read."""
    size = math.prod(shape) * np.dtype(LAYOUTS[dtype]).itemsize
    return Tensor(dtype, ComputedArray(where, compute, size, shape))


def open_file(path: Path) -> OpenFile:
    """Open a file; raise ModelFileError if that fails."""
    try:
        return OpenFile(path)
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror}") from None


def read(path: Path | OpenFile, verify: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a file, each of which is read when its data is first used, and the metadata.

    `verify` compares the checksum, if the file has one. This reads the whole file once in small parts.
    """
    file = path if isinstance(path, OpenFile) else open_file(path)
    path = file.path
    head = file.read(0, min(8, file.size)).tobytes()
    if file.size < 8 or struct.unpack("<Q", head)[0] > min(file.size - 8, MAX_HEADER_BYTES):
        # Checked only here, because the length of a valid header may begin with the same bytes.
        if head.startswith(PICKLE_BEGINNINGS):
            raise ModelFileError(
                f"{path}: expected safetensors; got a pickle, which may run code when opened",
                "convert it to safetensors with the program that made it",
            )
        if head.startswith(b"GGUF"):
            raise ModelFileError(f"{path}: expected a model file; got a GGUF file", f"sixfold import {path}")
        raise ModelFileError(f"{path}: not a safetensors file, or cut short ({file.size} bytes)", DAMAGED)
    start = 8 + struct.unpack("<Q", head)[0]
    table, metadata = _parse_header(path, file.read(8, start - 8).tobytes())
    end = start + max((entry["data_offsets"][1] for entry in table.values()), default=0)
    if end != file.size:
        raise ModelFileError(f"{path}: expected {end} bytes; got {file.size}: cut short or added to", DAMAGED)
    tensors = {name: _stored_tensor(file, name, entry, start) for name, entry in table.items()}
    stated = metadata.pop(CHECKSUM, None)
    if verify and stated is not None:
        chunks = (
            file.read(position, min(CHECKSUM_CHUNK, end - position)).data
            for position in range(start, end, CHECKSUM_CHUNK)
        )
        if stated != _checksum(table, metadata, chunks):
            raise ModelFileError(
                f"{path}: the checksum does not fit the contents: the file was altered or damaged", DAMAGED
            )
    return tensors, metadata | ({CHECKSUM: stated} if stated else {})


DAMAGED = "copy or download the file again"  # the hint for damaged files


def _parse_header(path: Path, raw: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the table of tensors and the metadata; raise ModelFileError if either is malformed."""
    try:
        table = json.loads(raw.decode("utf-8"))
        metadata = table.pop("__metadata__", {})
        is_valid = all(isinstance(value, str) for value in metadata.values())
        is_valid = is_valid and all(_is_valid_entry(entry) for entry in table.values())
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        is_valid = False
    if not is_valid:
        raise ModelFileError(f"{path}: not a safetensors file, or its header is damaged", DAMAGED)
    return table, metadata


def _stored_tensor(file: OpenFile, name: str, entry: Mapping[str, Any], start: int) -> Tensor:
    begin, end = entry["data_offsets"]
    kind = LAYOUTS.get(entry["dtype"])
    shape = tuple(entry["shape"])
    layout = (end - begin,) if kind is None else shape
    stored = StoredArray(file, name, start + begin, end - begin, kind or np.uint8, layout)
    return Tensor(entry["dtype"], stored, shape)


def _is_valid_entry(entry: Any) -> bool:
    """Return whether an entry of the table is complete and its numbers are consistent.

    The size of an unknown type is not checked, because a later version of the format may have it.
    """
    begin, end = entry["data_offsets"]
    numbers = [begin, end, *entry["shape"]]
    if not (isinstance(entry["shape"], list) and len(entry["shape"]) <= MAX_DIMENSIONS and type(entry["dtype"]) is str):
        return False
    if not all(type(number) is int and 0 <= number < 2**62 for number in numbers):
        return False
    bits = bits_of(entry["dtype"])
    return begin <= end if bits is None else 8 * (end - begin) == bits * math.prod(entry["shape"])


MAX_DIMENSIONS = 32  # of a NumPy 1 array


def bits_of(dtype: str) -> int | None:
    """Return the bits of an element of a type, or None if the type is unknown."""
    kind = LAYOUTS.get(dtype)
    return PACKED_BITS.get(dtype) if kind is None else 8 * np.dtype(kind).itemsize


def write(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Write a file atomically; return its checksum. One tensor after another is read and written."""
    table = _table(tensors)
    digest = _digest(table, metadata)
    with files.atomic_write(path) as file:
        file.write(_header(table, metadata, _stated(digest)))  # of the same length as the final one
        for name in table:
            data = _bytes(np.asarray(tensors[name].read(), order="C"))
            assert data.nbytes == tensors[name].nbytes, name
            digest.update(data)
            file.write(data)
        file.seek(0)
        file.write(_header(table, metadata, _stated(digest)))
    return _stated(digest)


def packed(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> tuple[str, list[bytes | memoryview]]:
    """Return the checksum, and the parts of a file in their order."""
    table = _table(tensors)
    # Not ascontiguousarray, which would turn a scalar into an array of one dimension.
    parts = [_bytes(np.asarray(tensors[name].data, order="C")) for name in table]
    checksum = _checksum(table, metadata, parts)
    return checksum, [_header(table, metadata, checksum), *parts]


def _table(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the type, shape and position of every tensor, in the order in which they are stored."""
    # Wide types first, so that the position of every tensor is a multiple of its element size.
    order = sorted(tensors, key=lambda name: -np.dtype(LAYOUTS.get(tensors[name].dtype, np.uint8)).itemsize)
    table: dict[str, Any] = {}
    offset = 0
    for name in order:
        tensor, end = tensors[name], offset + tensors[name].nbytes
        table[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    return table


def _header(table: Mapping[str, Any], metadata: Mapping[str, str], checksum: str) -> bytes:
    header = json.dumps({"__metadata__": {**metadata, CHECKSUM: checksum}, **table}, ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _checksum(table: Mapping[str, Any], metadata: Mapping[str, str], data: Iterable[memoryview]) -> str:
    digest = _digest(table, metadata)
    for part in data:
        digest.update(part)
    return _stated(digest)


def _digest(table: Mapping[str, Any], metadata: Mapping[str, str]) -> hashlib._Hash:
    return hashlib.sha256(json.dumps([table, dict(metadata)], sort_keys=True).encode())


def _stated(digest: hashlib._Hash) -> str:
    return f"sha256:{digest.hexdigest()}"
