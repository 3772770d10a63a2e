"""What all views share: options, margins and font sizes, the heading, grids with labels, colour bars and tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sixfold.configfile import did_you_mean
from sixfold.errors import RequestError
from sixfold.explorer.drawing import Box, Grid, Label, Length, Part, Scene, clip_text, colormap, text_width
from sixfold.explorer.heads import Head, Kind, check_head
from sixfold.explorer.pieces import VISIBLE_CHARACTERS
from sixfold.explorer.trace import Trace

Array = np.ndarray

MARGIN = 36.0
TITLE, TEXT, SMALL = 20.0, 13.0, 11.0  # the only font sizes
SLANT = 60.0  # of the labels above a grid, in degrees
MIN_WIDTH = 640.0  # so that a heading fits
KIND_TITLES: dict[Kind, str] = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}
Cell = str | int | float
Labels = tuple[Sequence[str], Sequence[str]]  # of rows, and of columns


@dataclass(frozen=True)
class Table:
    """The numbers behind a picture. A terminal shows those of `coloured_columns` in the colours of `scale`."""

    title: str
    columns: Sequence[str]  # their names
    rows: Sequence[Sequence[Cell]]
    coloured_columns: Sequence[int] = ()
    scale: str = "sequential"
    largest: Length = 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return what `sixfold see --json` prints."""
        return {"title": self.title, "head": list(self.columns), "rows": [list(row) for row in self.rows]}


@dataclass(frozen=True)
class View:
    """A picture and its numbers."""

    scene: Scene
    tables: Sequence[Table]


@dataclass(frozen=True)
class ViewOptions:
    """Which part of a trace a view shows; what is left out is chosen to fit the model."""

    kind: Kind | None = None
    layer: int | None = None
    head: int | None = None
    token: str | None = None  # the index of a piece, or its text
    words: bool = False  # join pieces into words
    top: int = 5  # how many of the likeliest pieces
    beam: int = 4

    def resolve(self, trace: Trace) -> tuple[Kind, int, int | None]:
        """Return the kind of attention, the layer, and the head, or None for the mean of all heads.

        Left out, the kind is the first of cross, encoder and decoder that the model has, and the layer is the last.
        """
        preferred: tuple[Kind, ...] = ("cross", "encoder", "decoder")
        kind: Kind = next(kind for kind in preferred if kind in trace.kinds) if self.kind is None else self.kind
        check_head(trace.config, Head(kind, 0, self.head or 0))
        layer = trace.kinds[kind] - 1 if self.layer is None else self.layer
        check_head(trace.config, Head(kind, layer, self.head or 0))
        return kind, layer, self.head


def kind_title(trace: Trace, kind: Kind) -> str:
    """Return the name of a kind of attention; that of a decoder without an encoder is its only one."""
    return "Causal self-attention" if set(trace.kinds) == {"decoder"} else KIND_TITLES[kind]


def attention_weights(trace: Trace, kind: Kind, layer: int, head: int | None) -> Array:
    """Return the weights of one head, or the mean of all heads of a layer: rows × columns."""
    return trace.attention(kind, layer).mean(axis=0) if head is None else trace.attention(kind, layer, head)


def token_index(token: str | None, trace: Trace, kind: Kind) -> int:
    """Return the row that `token` names by its index or its text.

    A row of a translation is named by the piece that is written there, every other row by the piece that is read.
    Without `token` it is the first piece that is text, or of a decoder-only model the last, which sees all others.
    """
    is_written = trace.names_rows_by_output(kind) and trace.predicted is not None
    pieces = trace.predicted if is_written and trace.predicted is not None else trace.rows(kind)
    if token is None and trace.source is None:
        return len(pieces) - 1
    if token is None:
        return next((index for index, (start, end) in enumerate(pieces.spans) if end > start), 0)
    if token.isdecimal() and int(token) < len(pieces):
        return int(token)
    for normalise in (str, str.casefold):
        matches = [index for index, text in enumerate(pieces.texts) if normalise(text) == normalise(token)]
        if matches:
            return matches[0]
    hint = did_you_mean(token, pieces.texts) or f"the pieces are {' '.join(pieces.texts)}"
    raise RequestError(f"--token: expected 0 to {len(pieces) - 1} or one of the pieces; got {token!r:.60}", hint)


def scene_with_heading(
    trace: Trace | None, title: str, parts: Sequence[Part], size: tuple[Length, Length], note: str = ""
) -> Scene:
    """Return a scene with a heading above its parts, which begin at `content_top`.

    `size` is the right and bottom end of the parts. The heading has the title, the sentences of the trace, and a note.
    """
    # The widths of bold fonts differ by a third, and the reader may have any of them.
    width = max(size[0] + MARGIN, MIN_WIDTH, 2 * MARGIN + min(800.0, 1.25 * text_width(title, TITLE)))
    inner_width = width - 2 * MARGIN
    lines = [*(subtitles(trace) if trace is not None else []), *([note] if note else [])]
    heading: list[Part] = [Label(MARGIN, MARGIN + 8, clip_text(title, 1.25 * TITLE, inner_width), TITLE, weight=600)]
    for number, line in enumerate(lines):
        heading.append(Label(MARGIN, MARGIN + 36 + 20 * number, clip_text(line, TEXT, inner_width), TEXT, fill="soft"))
    end = MARGIN + 20 + 20 * len(lines)
    return Scene(width, size[1] + MARGIN, parts, title, " ".join(lines), heading, end)


def subtitles(trace: Trace) -> list[str]:
    """Return the lines under a title: the text, its translation or next piece, and the heads that are switched off."""
    lines = [trace.text.translate(VISIBLE_CHARACTERS)]
    if trace.translation:
        lines.append(f"→ {trace.translation}")
    elif trace.predicted is not None:
        lines.append(f"likeliest next piece: {trace.predicted.texts[-1]}")
    off = f"   (off: {', '.join(map(str, trace.off))})" if trace.off else ""
    return [*lines[:-1], lines[-1] + off]


def content_top(trace: Trace | None, has_note: bool = False) -> Length:
    """Return the y below the heading of `scene_with_heading`."""
    return MARGIN + 36 + 20 * ((len(subtitles(trace)) if trace is not None else 0) + has_note) + 12


@dataclass(frozen=True)
class Panel:
    """The parts of a labelled grid, and its right and bottom ends."""

    parts: list[Part]
    right: Length
    bottom: Length


def labelled_grid(
    values: Array, labels: Labels, origin: tuple[Length, Length], cell: Length | None = None,
    scale: str = "sequential", largest: Length = 1.0,
) -> Panel:  # fmt: skip
    """Return a matrix of coloured cells with the labels of rows at its left and those of columns, slanted, above it.

    `origin` is the left and top end of the labels, `cell` the side of a cell.
    """
    rows, columns = labels
    side = cell or min(44.0, max(16.0, 620 / max(values.shape)))
    left = origin[0] + min(150.0, max(text_width(row, SMALL) for row in rows)) + 8
    label_length = min(120.0, max(text_width(column, SMALL) for column in columns))
    top = origin[1] + label_length * math.sin(math.radians(SLANT)) + 14
    width, height = side * values.shape[1], side * values.shape[0]
    titles = [
        [f"{row} · {column}: {value:.3f}" for column, value in zip(columns, line, strict=True)]
        for row, line in zip(rows, values, strict=True)
    ]
    parts: list[Part] = [
        Box(left - 1, top - 1, width + 2, height + 2, "line"),
        Grid(left, top, width, height, colormap(values, scale, largest), titles),
    ]
    for number, row in enumerate(rows):
        y = top + (number + 0.5) * side
        parts.append(Label(left - 7, y, clip_text(row, SMALL, 150), SMALL, "end"))
    for number, column in enumerate(columns):
        x = left + (number + 0.5) * side
        parts.append(Label(x, top - 7, clip_text(column, SMALL, 120), SMALL, turn=SLANT))
    overhang = label_length * math.cos(math.radians(SLANT))
    return Panel(parts, left + max(width, (len(columns) - 0.5) * side + overhang), top + height)


def colour_bar(x: Length, y: Length, scale: str, ends: tuple[Length, Length], name: str) -> list[Part]:
    """Return a legend of colours from the least number to the largest; `name` says what the numbers are."""
    width, steps = 180.0, 90
    values = np.linspace(*ends, steps)[None]
    return [
        Grid(x, y, width, 10, colormap(values, scale, max(map(abs, ends)))),
        Label(x, y + 22, f"{ends[0]:g}".replace("-", "−"), SMALL, fill="soft"),
        Label(x + width, y + 22, f"{ends[1]:g}", SMALL, "end", fill="soft"),
        Label(x + width + 12, y + 5, name, SMALL, fill="soft"),
    ]


def matrix_table(title: str, values: Array, labels: Labels, scale: str = "sequential") -> Table:
    """Return a matrix as a table: each row begins with its label."""
    rows: list[list[Cell]] = [
        [row, *(round(float(value), 4) for value in line)] for row, line in zip(labels[0], values, strict=True)
    ]
    return Table(title, ["", *labels[1]], rows, range(1, len(labels[1]) + 1), scale)
