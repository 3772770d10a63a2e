"""Numbers as colours: one scale for weights, one for signed numbers, both readable in grey and without red or green."""

from __future__ import annotations

import numpy as np

Array = np.ndarray
Number = int | float

# Places and colours between which all others lie, on straight lines in sRGB; the page draws with the same table.
# Lightness only falls in the first; in the second it falls to both sides, and orange and blue stay apart for everyone.
ANCHORS: dict[str, tuple[tuple[float, str], ...]] = {
    "sequential": (
        (0.0, "#f7f8fc"),
        (0.1, "#d6dff3"),
        (0.25, "#a6bbe6"),
        (0.5, "#6480cb"),
        (0.75, "#37489f"),
        (1.0, "#1a1a52"),
    ),
    "diverging": (
        (-1.0, "#173a7d"),
        (-0.5, "#5b8bd0"),
        (-0.15, "#c3d6ef"),
        (0.0, "#f8f7f4"),
        (0.15, "#f6d9b8"),
        (0.5, "#e18b3c"),
        (1.0, "#8a3d06"),
    ),
}


def shade(values: Array | Number, scale: str = "sequential", largest: Number = 1) -> Array:
    """Red, green and blue of each number; what lies beyond `largest`, and infinity, has the colour of the end."""
    places, colours = zip(*ANCHORS[scale], strict=True)
    known = np.nan_to_num(np.asarray(values, np.float64) / largest, nan=0.0, posinf=places[-1], neginf=places[0])
    channels = np.array([rgb(colour) for colour in colours])
    found = [np.interp(known, places, channels[:, channel]) for channel in range(3)]
    return np.rint(np.stack(found, axis=-1)).astype(np.uint8)


def rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return red, green, blue


def hexadecimal(colour: Array) -> str:
    return "#" + "".join(f"{int(part):02x}" for part in colour)


def lightness(colour: Array) -> Array:
    """As an eye sees it, from 0 to 1: CIE L* of the relative luminance."""
    parts = np.asarray(colour) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    return np.where(luminance > 0.008856, 1.16 * np.cbrt(luminance) - 0.16, 9.033 * luminance)
