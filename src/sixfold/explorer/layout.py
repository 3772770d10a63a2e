"""What all views share: what may be asked of them, margins and sizes of type, a heading, grids with their words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sixfold.configfile import did_you_mean
from sixfold.errors import RequestError
from sixfold.explorer.colours import shade
from sixfold.explorer.drawing import Box, Grid, Label, Length, Part, Scene, clipped, text_width
from sixfold.explorer.heads import Head, Kind, check_head
from sixfold.explorer.trace import Trace

Array = np.ndarray

MARGIN = 36.0
TITLE, TEXT, SMALL = 20.0, 13.0, 11.0  # the only sizes of type
SLANT = 60.0  # of the words above a grid, in degrees
NARROWEST = 640.0  # so that a heading has room
KINDS: dict[Kind, str] = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}
Cell = str | int | float
Labels = tuple[Sequence[str], Sequence[str]]  # of rows and columns


@dataclass(frozen=True)
class Table:
    """The numbers behind a picture; those of `tinted` columns are shown in the colours of a scale."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    tinted: Sequence[int] = ()
    scale: str = "sequential"
    largest: Length = 1.0

    def to_dict(self) -> dict[str, Any]:
        return {"title": self.title, "head": list(self.head), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True)
class View:
    """A picture and its numbers."""

    scene: Scene
    tables: Sequence[Table]


@dataclass(frozen=True)
class Wish:
    """What of a trace is to be seen; what is left out is chosen for the model."""

    kind: Kind | None = None
    layer: int | None = None
    head: int | None = None
    token: str | None = None  # a number, or what a piece says
    words: bool = False
    top: int = 5
    beam: int = 4

    def settled(self, trace: Trace) -> tuple[Kind, int, int | None]:
        """The kind of attention, its layer, and the head; None: the mean of all."""
        usual: tuple[Kind, ...] = ("cross", "encoder", "decoder")
        kind: Kind = next(each for each in usual if each in trace.kinds) if self.kind is None else self.kind
        check_head(trace.config, Head(kind, 0, self.head or 0))
        layer = trace.kinds[kind] - 1 if self.layer is None else self.layer
        check_head(trace.config, Head(kind, layer, self.head or 0))
        return kind, layer, self.head


def weights_of(trace: Trace, kind: Kind, layer: int, head: int | None) -> Array:
    """Of one head, or the mean of all heads of a layer."""
    return trace.attention(kind, layer).mean(axis=0) if head is None else trace.attention(kind, layer, head)


def place_of(token: str | None, trace: Trace, kind: Kind) -> int:
    """The row that is meant: by its number or its words; of the decoder, by the piece that is written there."""
    pieces = trace.rows(kind) if kind == "encoder" or trace.predicted is None else trace.predicted
    if token is None:
        return next((place for place, (start, end) in enumerate(pieces.spans) if end > start), 0)
    if token.isdecimal() and int(token) < len(pieces):
        return int(token)
    for fold in (str, str.casefold):
        found = [place for place, text in enumerate(pieces.texts) if fold(text) == fold(token)]
        if found:
            return found[0]
    near = did_you_mean(token, pieces.texts) or f"the pieces are {' '.join(pieces.texts)}"
    raise RequestError(f"--token: expected 0 to {len(pieces) - 1} or one of the pieces; got {token!r:.60}", near)


def compose(
    trace: Trace | None, title: str, parts: Sequence[Part], size: tuple[Length, Length], more: str = ""
) -> Scene:
    """A scene with a heading above parts that begin at `top_of`; the sentences are told in the heading."""
    # Fonts that are set bold differ by a third in width, and nobody knows which the reader has.
    width = max(size[0] + MARGIN, NARROWEST, 2 * MARGIN + min(800.0, 1.25 * text_width(title, TITLE)))
    room = width - 2 * MARGIN
    lines = [*(subtitles(trace) if trace is not None else []), *([more] if more else [])]
    heading: list[Part] = [Label(MARGIN, MARGIN + 8, clipped(title, 1.25 * TITLE, room), TITLE, weight=600)]
    for number, line in enumerate(lines):
        heading.append(Label(MARGIN, MARGIN + 36 + 20 * number, clipped(line, TEXT, room), TEXT, fill="soft"))
    end = MARGIN + 20 + 20 * len(lines)
    return Scene(width, size[1] + MARGIN, parts, title, " ".join(lines), heading, end)


def subtitles(trace: Trace) -> list[str]:
    lines = [trace.text, f"→ {trace.translation}"] if trace.translation else [trace.text]
    off = f"   (off: {', '.join(map(str, trace.off))})" if trace.off else ""
    return [*lines[:-1], lines[-1] + off]


def top_of(trace: Trace | None, more: bool = False) -> Length:
    """Where there is room under the heading."""
    return MARGIN + 36 + 20 * ((len(subtitles(trace)) if trace is not None else 0) + more) + 12


@dataclass(frozen=True)
class Panel:
    """A labelled grid and where it ends."""

    parts: list[Part]
    right: Length
    bottom: Length


def labelled_grid(
    values: Array, labels: Labels, at: tuple[Length, Length], cell: Length | None = None,
    scale: str = "sequential", largest: Length = 1.0,
) -> Panel:  # fmt: skip
    """A matrix with words at its left and, slanted, above it."""
    rows, columns = labels
    side = cell or min(44.0, max(16.0, 620 / max(values.shape)))
    left = at[0] + min(150.0, max(text_width(row, SMALL) for row in rows)) + 8
    room = min(120.0, max(text_width(column, SMALL) for column in columns))
    top = at[1] + room * math.sin(math.radians(SLANT)) + 14
    wide, high = side * values.shape[1], side * values.shape[0]
    titles = [
        [f"{row} · {column}: {value:.3f}" for column, value in zip(columns, line, strict=True)]
        for row, line in zip(rows, values, strict=True)
    ]
    parts: list[Part] = [
        Box(left - 1, top - 1, wide + 2, high + 2, "line"),
        Grid(left, top, wide, high, shade(values, scale, largest), titles),
    ]
    for number, row in enumerate(rows):
        y = top + (number + 0.5) * side
        parts.append(Label(left - 7, y, clipped(row, SMALL, 150), SMALL, "end"))
    for number, column in enumerate(columns):
        x = left + (number + 0.5) * side
        parts.append(Label(x, top - 7, clipped(column, SMALL, 120), SMALL, turn=SLANT))
    slant = room * math.cos(math.radians(SLANT))
    return Panel(parts, left + max(wide, (len(columns) - 0.5) * side + slant), top + high)


def colour_bar(x: Length, y: Length, scale: str, ends: tuple[Length, Length], name: str) -> list[Part]:
    """What colours mean: a strip from the least number to the largest."""
    width, steps = 180.0, 90
    values = np.linspace(*ends, steps)[None]
    return [
        Grid(x, y, width, 10, shade(values, scale, max(map(abs, ends)))),
        Label(x, y + 22, f"{ends[0]:g}".replace("-", "−"), SMALL, fill="soft"),
        Label(x + width, y + 22, f"{ends[1]:g}", SMALL, "end", fill="soft"),
        Label(x + width + 12, y + 5, name, SMALL, fill="soft"),
    ]


def matrix_table(title: str, values: Array, labels: Labels, scale: str = "sequential") -> Table:
    """A row for each row, after its name."""
    rows: list[list[Cell]] = [
        [row, *(round(float(value), 4) for value in line)] for row, line in zip(labels[0], values, strict=True)
    ]
    return Table(title, ["", *labels[1]], rows, range(1, len(labels[1]) + 1), scale)
