"""Views of what a model is given: the table of positions, how alike pieces are, and the masks of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sixfold.errors import RequestError
from sixfold.explorer.colours import shade
from sixfold.explorer.drawing import Box, Grid, Label, Length, Line, Part, clipped
from sixfold.explorer.forward import causal_mask, unit
from sixfold.explorer.layout import (
    MARGIN,
    SMALL,
    TEXT,
    Cell,
    Table,
    View,
    Wish,
    colour_bar,
    compose,
    labelled_grid,
    matrix_table,
    top_of,
)  # fmt: skip
from sixfold.explorer.positions import position_table
from sixfold.explorer.trace import Trace
from sixfold.explorer.views_training import plotted
from sixfold.reports.charts import Series
from sixfold.weights import depth

Array = np.ndarray
POSITIONS = 64
MAY, NOT = 0.55, 0.04  # shades of what may be looked at, and of what may not


def positions(trace: Trace, wish: Wish) -> View:  # noqa: ARG001 -- views share one signature
    """The table as a heat map, and how alike two positions are, by how far they lie apart."""
    table = position_table(trace.model, POSITIONS)
    count, width = table.shape
    products = table @ table.T
    means = [float(np.diagonal(products, distance).mean()) for distance in range(count)]
    top, wide, high = top_of(None, more=True) + 26, 860.0, 320.0
    largest = float(np.abs(table).max()) or 1.0
    left, below = MARGIN + 34, top + high + 110
    parts: list[Part] = [
        Label(MARGIN, top - 16, f"Positions 0 to {count - 1}, and their {width} numbers", TEXT, weight=600),
        Box(left - 1, top - 1, wide + 2, high + 2, "line"),
        Grid(left, top, wide, high, shade(table, "diverging", largest)),
        *colour_bar(left, top + high + 20, "diverging", (-round(largest, 2), round(largest, 2)), "value"),
        Label(MARGIN, below - 18, "Inner product of two positions, by the distance between them", TEXT, weight=600),
        *plotted([Series("", range(count), means)], (left + 10, below, wide - 10, 180), "distance"),
    ]
    for row in range(0, count, 8):
        parts.append(Label(left - 8, top + (row + 0.5) * high / count, str(row), SMALL, "end", fill="soft"))
    kind = trace.config.positions
    scene = compose(None, f"Positions: {kind}", parts, (left + wide, below + 200), EQUATIONS[kind])
    first = min(8, width)
    title, head = f"The first {first} of {width} numbers", ["position", *map(str, range(first))]
    numbers: list[list[Cell]] = [
        [str(place), *(round(float(value), 4) for value in row[:first])] for place, row in enumerate(table)
    ]
    apart = [[distance, round(mean, 4)] for distance, mean in enumerate(means)]
    return View(scene, [
        Table(title, head, numbers, range(1, first + 1), "diverging", largest),
        Table("Inner products", ["distance", "mean inner product"], apart),
    ])  # fmt: skip


EQUATIONS = {
    "sinusoidal": "PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same; added to the embeddings",
    "learned": "a table that was learned, added to the embeddings",
    "rotary": "cos and sin of pos / base^(2i/d_head), by which queries and keys are turned",
}


def similarity(trace: Trace, wish: Wish) -> View:  # noqa: ARG001 -- views share one signature
    """The cosine between all pieces, as they enter the model and as they leave its first stack."""
    stack = trace.config.stacks[0]
    pieces = trace.source if stack == "encoder" else trace.target
    assert pieces is not None
    labels = (pieces.texts, pieces.texts)
    names = {"Embeddings": "embedding.token", f"After {depth(trace.config, stack)} layers": "output"}
    x, y, parts, tables = MARGIN, top_of(trace) + 22, list[Part](), []
    for name, array in names.items():
        units = unit(trace[f"{stack}.{array}"])
        cosine = np.clip(units @ units.T, -1, 1)
        panel = labelled_grid(cosine, labels, (x, y), min(36.0, max(16.0, 420 / len(pieces))), "diverging")
        parts += [Label(x, y - 10, name, TEXT, weight=600), *panel.parts]
        tables.append(matrix_table(name, cosine, labels, "diverging"))
        x = panel.right + 36
    note = "cosine: 1 is the same direction, 0 unrelated, −1 opposite"
    parts += colour_bar(MARGIN, panel.bottom + 28, "diverging", (-1, 1), note)
    return View(compose(trace, "How alike pieces are", parts, (x - 36, panel.bottom + 60)), tables)


def masks(traces: Sequence[Trace]) -> View:
    """The sentences as one batch: where each is filled up, and what may look at what."""
    sources = [trace.source.texts for trace in traces if trace.source is not None]
    targets = [trace.target.texts for trace in traces if trace.target is not None]
    if not sources or not targets:
        raise RequestError(f"masks: expected a model of two sides; got one of the kind {traces[0].config.kind!r}")
    long, wrote = max(map(len, sources)), max(map(len, targets))
    y = top_of(None, more=True) + 24
    parts: list[Part] = [Label(MARGIN, y - 14, "The source batch", TEXT, weight=600), *padded(sources, long, y)]
    y += 32 * len(sources) + 40
    side = min(18.0, max(5.0, 230 / max(long, wrote)))
    names = ("Encoder: all real pieces", "Decoder: itself and before", "Cross: all real source pieces")
    widths = [max(side * count, 190) + 36 for count in (long, wrote, long)]
    xs = [MARGIN + sum(widths[:number]) for number in range(3)]
    parts += [Label(x, y - 14, name, TEXT, weight=600) for x, name in zip(xs, names, strict=True)]
    rows: list[list[Cell]] = []
    for number, texts in enumerate(sources):
        parts.append(Label(MARGIN, y + 8, f"sentence {number}", SMALL, fill="soft"))
        matrices = look(len(texts), long, wrote)
        for x, matrix in zip(xs, matrices, strict=True):
            parts += ruled(matrix, x, y + 22, side)
        shares = [f"{matrix.mean():.0%}" for matrix in matrices]
        rows.append([number, len(texts), long - len(texts), len(targets[number]), *shares])
        y += side * max(long, wrote) + 40
    more = "Rows ask, columns are looked at. Padding is never seen; the decoder never sees ahead."
    right = max(MARGIN + long * cell_of(long), xs[2] + max(widths[2] - 36, 210))
    scene = compose(None, "Masks of a batch", parts, (right, y - 18), more)
    head = ["sentence", "pieces", "padding", "written", "encoder", "decoder", "cross"]
    return View(scene, [Table("Masks of a batch: which part may be looked at", head, rows)])


def cell_of(long: int) -> Length:
    return min(72.0, max(40.0, 1000 / long))


def padded(batch: Sequence[Sequence[str]], long: int, y: Length) -> Iterator[Part]:
    """A line for each sentence, filled up to the longest."""
    cell = cell_of(long)
    for row, texts in enumerate(batch):
        for column in range(long):
            x, top, is_real = MARGIN + column * cell, y + 32 * row, column < len(texts)
            text = clipped(texts[column] if is_real else "pad", SMALL, cell - 4)
            yield Box(x, top, cell - 3, 26, "accent" if is_real else "line", round=3)
            yield Label(x + cell / 2 - 1.5, top + 13, text, SMALL, "middle", fill="paper" if is_real else "soft")


def ruled(mask: Array, x: Length, y: Length, side: Length) -> Iterator[Part]:
    """A grid with white lines between its cells."""
    high, wide = mask.shape
    yield Grid(x, y, wide * side, high * side, shade(np.where(mask, MAY, NOT)))
    for row in range(1, high):
        yield Line([(x, y + row * side), (x + wide * side, y + row * side)], "paper")
    for column in range(1, wide):
        yield Line([(x + column * side, y), (x + column * side, y + high * side)], "paper")


def look(real: int, long: int, wrote: int) -> tuple[Array, Array, Array]:
    """What one sentence of a batch may look at: rows × columns of the encoder, the decoder and between them."""
    padding = np.arange(long) < real
    return np.tile(padding, (long, 1)), causal_mask(wrote)[0, 0], np.tile(padding, (wrote, 1))
