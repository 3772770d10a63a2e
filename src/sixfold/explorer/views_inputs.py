"""Views of a model's inputs: the table of positions, the similarity of pieces, and the masks of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sixfold.explorer.drawing import Box, Grid, Label, Length, Line, Part, clip_text, colormap
from sixfold.explorer.forward import causal_mask, normalise_vectors, position_table
from sixfold.explorer.heads import Kind
from sixfold.explorer.trace import Trace
from sixfold.explorer.views_curves import line_chart
from sixfold.explorer.views_layout import (
    MARGIN,
    SMALL,
    TEXT,
    Cell,
    Table,
    View,
    ViewOptions,
    colour_bar,
    content_top,
    labelled_grid,
    matrix_table,
    scene_with_heading,
)
from sixfold.reports.charts import Series
from sixfold.weights import depth

Array = np.ndarray
POSITIONS = 64
ALLOWED, MASKED = 0.55, 0.04  # on the colour scale: cells that may be looked at, and cells that may not


def positions(trace: Trace, options: ViewOptions) -> View:  # noqa: ARG001 -- views share one signature
    """Draw the table of positions as a heat map, and the inner product of two positions by their distance."""
    table = position_table(trace.model, POSITIONS)
    count, width = table.shape
    products = table @ table.T
    means = [float(np.diagonal(products, distance).mean()) for distance in range(count)]
    top, grid_width, grid_height = content_top(None, has_note=True) + 26, 860.0, 320.0
    largest = float(np.abs(table).max()) or 1.0
    left, chart_top = MARGIN + 34, top + grid_height + 110
    parts: list[Part] = [
        Label(MARGIN, top - 16, f"Positions 0 to {count - 1}, and their {width} numbers", TEXT, weight=600),
        Box(left - 1, top - 1, grid_width + 2, grid_height + 2, "line"),
        Grid(left, top, grid_width, grid_height, colormap(table, "diverging", largest)),
        *colour_bar(left, top + grid_height + 20, "diverging", (-round(largest, 2), round(largest, 2)), "value"),
        Label(MARGIN, chart_top - 18, "Inner product of two positions, by the distance between them", TEXT, weight=600),
        *line_chart([Series("", range(count), means)], (left + 10, chart_top, grid_width - 10, 180), "distance"),
    ]
    for row in range(0, count, 8):
        parts.append(Label(left - 8, top + (row + 0.5) * grid_height / count, str(row), SMALL, "end", fill="soft"))
    kind = trace.config.positions
    size = (left + grid_width, chart_top + 200)
    scene = scene_with_heading(None, f"Positions: {kind}", parts, size, EQUATIONS[kind])
    first = min(8, width)
    title, columns = f"The first {first} of {width} numbers", ["position", *map(str, range(first))]
    numbers: list[list[Cell]] = [
        [str(position), *(round(float(value), 4) for value in row[:first])] for position, row in enumerate(table)
    ]
    products_by_distance = [[distance, round(mean, 4)] for distance, mean in enumerate(means)]
    return View(scene, [
        Table(title, columns, numbers, range(1, first + 1), "diverging", largest),
        Table("Inner products", ["distance", "mean inner product"], products_by_distance),
    ])  # fmt: skip


EQUATIONS = {
    "sinusoidal": "PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same; added to the embeddings",
    "learned": "a learned table, added to the embeddings",
    "rotary": "cos and sin of pos / base^(2i/d_head), the angles by which queries and keys are rotated",
}


def similarity(trace: Trace, options: ViewOptions) -> View:  # noqa: ARG001 -- views share one signature
    """Draw the cosine between all pieces, of their embeddings and of the output of the first stack."""
    stack = trace.config.stacks[0]
    pieces = trace.source if stack == "encoder" else trace.target
    assert pieces is not None
    labels = (pieces.texts, pieces.texts)
    names = {"Embeddings": "embedding.token", f"After {depth(trace.config, stack)} layers": "output"}
    x, y, parts, tables = MARGIN, content_top(trace) + 22, list[Part](), []
    for name, array in names.items():
        vectors = normalise_vectors(trace[f"{stack}.{array}"])
        cosine = np.clip(vectors @ vectors.T, -1, 1)
        panel = labelled_grid(cosine, labels, (x, y), min(36.0, max(16.0, 420 / len(pieces))), "diverging")
        parts += [Label(x, y - 10, name, TEXT, weight=600), *panel.parts]
        tables.append(matrix_table(name, cosine, labels, "diverging"))
        x = panel.right + 36
    note = "cosine: 1 = same direction, 0 = unrelated, −1 = opposite"
    parts += colour_bar(MARGIN, panel.bottom + 28, "diverging", (-1, 1), note)
    return View(scene_with_heading(trace, "Similarity of pieces", parts, (x - 36, panel.bottom + 60)), tables)


MASK_TITLES: dict[Kind, str] = {
    "encoder": "Encoder: all real pieces",
    "decoder": "Decoder: itself and before",
    "cross": "Cross: all real source pieces",
}
MASK_NOTES = {
    "encoder-decoder": "Nothing looks at padding; the decoder never looks ahead.",
    "encoder": "Nothing looks at padding.",
    "decoder": "Nothing looks ahead, and padding comes last, so that no real piece looks at it.",
}


def masks(traces: Sequence[Trace]) -> View:
    """Draw several sentences as one batch: its padding, and what each position may look at."""
    kinds = [kind for kind in MASK_TITLES if kind in traces[0].kinds]
    batch = [pieces.texts for trace in traces if (pieces := trace.source or trace.target) is not None]
    length, is_translation = max(map(len, batch)), "cross" in kinds
    written = [len(trace.target) for trace in traces if trace.target is not None and is_translation]
    target_length = max(written, default=length)
    y = content_top(None, has_note=True) + 24
    batch_title = "The source batch" if is_translation else "The batch"
    parts: list[Part] = [Label(MARGIN, y - 14, batch_title, TEXT, weight=600), *padded_batch(batch, length, y)]
    y += 32 * len(batch) + 40
    side = min(18.0, max(5.0, 230 / max(length, target_length)))
    widths = [max(side * (target_length if kind == "decoder" else length), 190) + 36 for kind in kinds]
    xs = [MARGIN + sum(widths[:number]) for number in range(len(kinds))]
    parts += [Label(x, y - 14, MASK_TITLES[kind], TEXT, weight=600) for x, kind in zip(xs, kinds, strict=True)]
    rows: list[list[Cell]] = []
    for number, texts in enumerate(batch):
        parts.append(Label(MARGIN, y + 8, f"sentence {number}", SMALL, fill="soft"))
        of_kinds = sentence_masks(len(texts), length, target_length)
        for x, kind in zip(xs, kinds, strict=True):
            parts += mask_grid(of_kinds[kind], x, y + 22, side)
        shares = [f"{of_kinds[kind].mean():.0%}" for kind in kinds]
        rows.append([number, len(texts), length - len(texts), *written[number : number + 1], *shares])
        y += side * max(length, target_length) + 40
    note = f"Rows look at columns. {MASK_NOTES[traces[0].config.kind]}"
    right = max(MARGIN + length * batch_cell_width(length), xs[-1] + max(widths[-1] - 36, 210))
    scene = scene_with_heading(None, "Masks of a batch", parts, (right, y - 18), note)
    columns = ["sentence", "pieces", "padding", *["written"][: len(written)], *kinds]
    return View(scene, [Table("Masks of a batch: which part may be looked at", columns, rows)])


def batch_cell_width(length: int) -> Length:
    """Return the width of a piece in the drawing of a batch of this length."""
    return min(72.0, max(40.0, 1000 / length))


def padded_batch(batch: Sequence[Sequence[str]], length: int, y: Length) -> Iterator[Part]:
    """Draw a line of pieces for each sentence, padded to `length`."""
    cell = batch_cell_width(length)
    for row, texts in enumerate(batch):
        for column in range(length):
            x, top, is_real = MARGIN + column * cell, y + 32 * row, column < len(texts)
            text = clip_text(texts[column] if is_real else "pad", SMALL, cell - 4)
            yield Box(x, top, cell - 3, 26, "accent" if is_real else "line", round=3)
            yield Label(x + cell / 2 - 1.5, top + 13, text, SMALL, "middle", fill="paper" if is_real else "soft")


def mask_grid(mask: Array, x: Length, y: Length, side: Length) -> Iterator[Part]:
    """Draw a mask as a grid with white lines between its cells."""
    rows, columns = mask.shape
    yield Grid(x, y, columns * side, rows * side, colormap(np.where(mask, ALLOWED, MASKED)))
    for row in range(1, rows):
        yield Line([(x, y + row * side), (x + columns * side, y + row * side)], "paper")
    for column in range(1, columns):
        yield Line([(x + column * side, y), (x + column * side, y + rows * side)], "paper")


def sentence_masks(real: int, source_length: int, target_length: int) -> dict[Kind, Array]:
    """Return the mask (rows × columns) of each kind of attention, of one sentence in a batch.

    `real` is the number of source pieces that are not padding.
    """
    padding = np.arange(source_length) < real
    return {
        "encoder": np.tile(padding, (source_length, 1)),
        "decoder": causal_mask(target_length)[0, 0],
        "cross": np.tile(padding, (target_length, 1)),
    }
