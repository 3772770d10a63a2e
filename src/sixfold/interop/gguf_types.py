"""The number types of GGUF files: plain ones, and blocks of small whole numbers that share a scale.

The table has the layout of a block, as a NumPy record, and a function from blocks to float32, blocks × values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Blocks = np.ndarray  # of records
Values = np.ndarray  # float32, blocks × values of a block

PLAIN = {0: "F32", 1: "F16", 30: "BF16"}  # the types that safetensors has too, by their numbers in a file


class BlockType(NamedTuple):
    """A type whose values are stored in blocks."""

    name: str
    values: int  # of a block
    record: np.dtype[Any]
    dequantize: Callable[[Blocks], Values]


def _q4_0(blocks: Blocks) -> Values:
    return _scale(blocks, "d") * (_nibbles(blocks["low"]).astype(np.float32) - 8)


def _q4_1(blocks: Blocks) -> Values:
    return _scale(blocks, "d") * _nibbles(blocks["low"]) + _scale(blocks, "m")


def _q5_0(blocks: Blocks) -> Values:
    return _scale(blocks, "d") * (_five_bits(blocks).astype(np.float32) - 16)


def _q5_1(blocks: Blocks) -> Values:
    return _scale(blocks, "d") * _five_bits(blocks) + _scale(blocks, "m")


def _q8_0(blocks: Blocks) -> Values:
    return _scale(blocks, "d") * blocks["values"]


def _q4_k(blocks: Blocks) -> Values:
    return _with_scales_and_minima(blocks, _groups(blocks["low"]))


def _q5_k(blocks: Blocks) -> Values:
    """Bit i of `high` byte j is the fifth bit of value j of group i."""
    fifth = blocks["high"][:, None] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return _with_scales_and_minima(blocks, _groups(blocks["low"]) | fifth << 4)


def _q6_k(blocks: Blocks) -> Values:
    """Two halves of 128 values: the low four bits of value i and i + 64 share a byte, the high two bits of four do."""
    pairs = blocks["low"].reshape(-1, 2, 1, 64)
    low = np.concatenate([pairs & 15, pairs >> 4], axis=2).reshape(-1, 16, 16)
    high = blocks["high"].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    values = (low | high.reshape(-1, 16, 16) << 4).astype(np.float32) - 32
    scales = _scale(blocks, "d") * blocks["scales"]
    return (scales[:, :, None] * values).reshape(len(blocks), 256)


def _scale(blocks: Blocks, name: str) -> np.ndarray:
    return np.asarray(blocks[name].astype(np.float32)[:, None])


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """Return the low four bits of all bytes of a block, and then the high ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def _five_bits(blocks: Blocks) -> np.ndarray:
    """Return values of five bits. Bit i of the 32 bits of `high` is the fifth bit of value i."""
    fifth = np.unpackbits(blocks["high"], axis=1, bitorder="little")
    return np.asarray(_nibbles(blocks["low"]) | fifth << 4)


def _groups(packed: np.ndarray) -> np.ndarray:
    """Return the eight groups of 32 values of a block. Two groups share 32 bytes: the low bits and the high bits."""
    pairs = packed.reshape(-1, 4, 1, 32)
    return np.concatenate([pairs & 15, pairs >> 4], axis=2).reshape(-1, 8, 32)


def _with_scales_and_minima(blocks: Blocks, values: np.ndarray) -> Values:
    """Return scale · value - minimum. Scales and minima of the eight groups have six bits each, packed into 12 bytes.

    Bytes 0 to 3 and 4 to 7 have those of the first four groups in their low six bits. Bytes 8 to 11 have the low four
    bits of those of the last four groups, whose high two bits are the high two bits of bytes 0 to 7.
    """
    first, second, third = (blocks["scales"].reshape(-1, 3, 4)[:, part] for part in range(3))
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=1)
    minima = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=1)
    scaled = (_scale(blocks, "d") * scales)[:, :, None] * values.astype(np.float32)
    return np.asarray((scaled - (_scale(blocks, "m") * minima)[:, :, None]).reshape(len(blocks), 256))


def _record(*fields: tuple[str, str, int]) -> np.dtype[Any]:
    return np.dtype([(name, kind) if count == 1 else (name, kind, count) for name, kind, count in fields])


_D, _M, _LOW, _HIGH = ("d", "<f2", 1), ("m", "<f2", 1), ("low", "u1", 16), ("high", "u1", 4)
_K = (_D, _M, ("scales", "u1", 12))
BLOCK_TYPES = {
    2: BlockType("Q4_0", 32, _record(_D, _LOW), _q4_0),
    3: BlockType("Q4_1", 32, _record(_D, _M, _LOW), _q4_1),
    6: BlockType("Q5_0", 32, _record(_D, _HIGH, _LOW), _q5_0),
    7: BlockType("Q5_1", 32, _record(_D, _M, _HIGH, _LOW), _q5_1),
    8: BlockType("Q8_0", 32, _record(_D, ("values", "i1", 32)), _q8_0),
    12: BlockType("Q4_K", 256, _record(*_K, ("low", "u1", 128)), _q4_k),
    13: BlockType("Q5_K", 256, _record(*_K, ("high", "u1", 32), ("low", "u1", 128)), _q5_k),
    14: BlockType("Q6_K", 256, _record(("low", "u1", 128), ("high", "u1", 64), ("scales", "i1", 16), _D), _q6_k),
}
NAMES = [*PLAIN.values(), *(each.name for each in BLOCK_TYPES.values())]
