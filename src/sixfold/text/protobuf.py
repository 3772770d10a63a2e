"""Protocol buffers, as far as a SentencePiece model needs them: messages are read and written field by field."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Value = int | float | bytes


def read_fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the number and the value of each field of a message; ValueError is raised for anything malformed."""
    position, end = 0, len(data)
    while position < end:
        key, position = _read_varint(data, position)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, position = _read_varint(data, position)
            yield number, value
            continue
        if kind == 2:
            size, position = _read_varint(data, position)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"field {number} has the unknown wire type {kind}")
        if number == 0 or position + size > end:
            raise ValueError(f"field {number} ends behind the end of its message")
        raw = data[position : position + size]
        position += size
        yield number, raw if kind == 2 else struct.unpack("<d" if kind == 1 else "<f", raw)[0]


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return a number and the position after it: seven bits in each byte, the lowest first."""
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
    raise ValueError("a number is cut short")


def message_field(number: int, content: bytes) -> bytes:
    """Return a field that holds a message, a text or bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def integer_field(number: int, value: int) -> bytes:
    """Return a field that holds a whole number."""
    return varint(number << 3) + varint(value)


def float_field(number: int, value: float) -> bytes:
    """Return a field that holds a 32-bit floating-point number."""
    return varint(number << 3 | 5) + struct.pack("<f", value)


def varint(value: int) -> bytes:
    """Encode a number, seven bits in each byte, the lowest first. The highest bit says that another byte follows."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
