"""int8 weights as CTranslate2 has them: every row of a matrix as 8-bit integers with a scale of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def is_quantized(name: str, array: np.ndarray) -> bool:
    """Return whether int8 storage quantises a weight: matrices and token tables, but no small tables."""
    return is_quantized_shape(name, array.shape)


def is_quantized_shape(name: str, shape: Sequence[int]) -> bool:
    """Return the same as `is_quantized` for a weight of this shape."""
    exact = (".position.", ".segment.", ".compatibility.")
    return len(shape) == 2 and not any(part in name for part in exact)


def quantize(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of int8 and one scale for each row: value = int8 / scale. This is CTranslate2's scheme."""
    largest = np.abs(array).max(axis=1)
    largest[largest == 0] = 127.0
    largest = np.maximum(largest, np.float32(127) / np.finfo(np.float32).max)
    scale = (127.0 / largest).astype(np.float32)
    return np.rint(array * scale[:, None]).astype(np.int8), scale


def dequantize(rows: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return the float32 values of rows of int8 and their scales."""
    values = rows.astype(np.float32)
    values /= scale[:, None]  # in place, because new memory costs most of the time
    return values
