"""Event files for TensorBoard, with curves and sample translations, written without TensorBoard itself.

An event file is a sequence of TFRecords, each of which is one protobuf `Event`. Only a few of its fields are needed.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

CASTAGNOLI = 0x82F63B78  # the polynomial of CRC-32C, lowest bit first
DT_STRING = 7
SESSION_START = 1  # of SessionLog
FLUSH_BYTES = 2**16


class EventFile:
    """The event file of one start of a run. Records stay in memory until a flush, so that none is written by half."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # TensorBoard knows the file by "tfevents" and reads those of a resumed run in the order of their names.
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.sixfold.{os.getpid()}"
        self._file = (folder / name).open("ab", buffering=0)
        self._pending = bytearray()
        if self._file.tell() == 0:
            self._append(_block(3, b"brain.Event:2"))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Add one point to each curve; this flushes once many bytes are waiting."""
        self._summary(step, *(_block(1, tag.encode()) + _float(2, value) for tag, value in values.items()))
        if len(self._pending) > FLUSH_BYTES:
            self.flush()

    def text(self, step: int, tag: str, text: str) -> None:
        """Add a text, which TensorBoard shows as Markdown."""
        metadata = _block(1, _block(1, b"text"))  # the plugin that shows it
        tensor = _varint(1 << 3) + _varint(DT_STRING) + _block(8, text.encode())  # no shape: a scalar
        self._summary(step, _block(1, tag.encode()) + _block(8, tensor) + _block(9, metadata))

    def restart(self, step: int) -> None:
        """Tell TensorBoard to forget what was logged for this step and for later ones, in earlier files too."""
        started = _block(7, _varint(1 << 3) + _varint(SESSION_START))
        self._append(_varint(2 << 3) + _varint(step) + started)

    def flush(self) -> None:
        while self._pending:
            del self._pending[: self._file.write(self._pending)]

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._file.close()

    def __enter__(self) -> EventFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _summary(self, step: int, *values: bytes) -> None:
        self._append(_varint(2 << 3) + _varint(step) + _block(5, b"".join(_block(1, value) for value in values)))

    def _append(self, fields: bytes) -> None:
        """Frame an event as a TFRecord: its length and its bytes, each with a checksum."""
        event = struct.pack("<Bd", 1 << 3 | 1, time.time()) + fields
        length = struct.pack("<Q", len(event))
        self._pending += length + _masked(length) + event + _masked(event)


# Protobuf: each value comes after the number of its field, shifted by three bits that say how the value is encoded.


def _varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + _varint(number >> 7)


def _block(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _float(field: int, value: float) -> bytes:
    # struct refuses values beyond float32; an exploding loss should be visible, as infinity.
    return struct.pack("<Bf", field << 3 | 5, ctypes.c_float(value).value)


def crc32c(content: bytes) -> int:
    register = 0xFFFFFFFF
    for byte in content:
        register = register >> 8 ^ TABLE[(register ^ byte) & 0xFF]
    return register ^ 0xFFFFFFFF


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ CASTAGNOLI * (byte & 1)
    return byte


TABLE = tuple(_remainder(byte) for byte in range(256))


def _masked(content: bytes) -> bytes:
    """Return the checksum as TFRecord stores it: rotated and offset, because a CRC of data with CRCs in it is weak."""
    crc = crc32c(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
