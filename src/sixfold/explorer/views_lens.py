"""The view of the logit lens: layers × positions, each cell with the likeliest next piece at that point."""

from __future__ import annotations

from sixfold.explorer.drawing import Box, Grid, Label, Length, Part, clip_text, colormap, lightness, text_width
from sixfold.explorer.lens import Lens, lens
from sixfold.explorer.trace import Trace
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
    matrix_table,
    scene_with_heading,
)

CELL_WIDTH, CELL_HEIGHT, BAND_GAP = 92.0, 38.0, 30.0
COLUMNS_PER_BAND = 10  # a longer text goes on below
NAME_WIDTH = 78.0  # of the names of layers
LEGEND = "probability of the likeliest piece, bold if that is what follows; #: rank of what follows, from 1"


def prediction(trace: Trace, options: ViewOptions) -> View:  # noqa: ARG001 -- views share one signature
    """Draw the likeliest next piece after each layer and at each position, in bands of some positions each."""
    found = lens(trace)
    count = found.ranks.shape[1]
    per_band = min(count, COLUMNS_PER_BAND)
    height = CELL_HEIGHT * (len(found.layers) + 2)  # with a row for what is read and one for what follows
    top = content_top(trace, has_note=True)
    parts: list[Part] = []
    for number, start in enumerate(range(0, count, per_band)):
        columns = range(start, min(start + per_band, count))
        parts += band(trace, found, columns, top + number * (height + BAND_GAP))
    bottom = top + -(-count // per_band) * (height + BAND_GAP)
    bar = colour_bar(MARGIN, bottom - 8, "sequential", (0, 1), LEGEND)
    widths = [NAME_WIDTH + per_band * CELL_WIDTH, text_width(found.note, TEXT), 192 + text_width(LEGEND, SMALL)]
    size = (MARGIN + max(widths), bottom + 22)
    title = "Logit lens: the next piece after each layer"
    return View(scene_with_heading(trace, title, [*parts, *bar], size, found.note), tables(trace, found))


def band(trace: Trace, found: Lens, columns: range, y: Length) -> list[Part]:
    """Draw some positions: what is read, a row of cells for each layer, and the piece that follows."""
    assert trace.target is not None
    assert trace.predicted is not None
    left, cells_top, layers = MARGIN + NAME_WIDTH, y + CELL_HEIGHT, len(found.layers)
    last = cells_top + layers * CELL_HEIGHT + CELL_HEIGHT / 2
    shares = found.probabilities[:, columns.start : columns.stop]
    colours = colormap(shares)
    tips = [[tip(trace, found, layer, column) for column in columns] for layer in range(layers)]
    width = len(columns) * CELL_WIDTH
    parts: list[Part] = [
        Label(MARGIN, y + CELL_HEIGHT / 2, "reads", SMALL, fill="soft"),
        Box(left - 1, cells_top - 1, width + 2, layers * CELL_HEIGHT + 2, "line"),
        Grid(left, cells_top, width, layers * CELL_HEIGHT, colours, tips),
        Label(MARGIN, last, "follows", SMALL, fill="soft"),
    ]
    for layer, name in enumerate(found.layers):
        parts.append(Label(MARGIN, cells_top + (layer + 0.5) * CELL_HEIGHT, name, SMALL, fill="soft"))
    for number, column in enumerate(columns):
        x = left + number * CELL_WIDTH
        texts = (pieces.texts[column] for pieces in (trace.target, trace.predicted))
        read, follows = (clip_text(text, SMALL, CELL_WIDTH - 8) for text in texts)
        parts.append(Label(x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2, read, SMALL, "middle", weight=600))
        parts.append(Label(x + CELL_WIDTH / 2, last, follows, SMALL, "middle", weight=600, fill="accent"))
        for layer in range(layers):
            ink = "ink" if lightness(colours[layer, number]) > 0.55 else "paper"
            parts += cell(found, layer, column, (x, cells_top + layer * CELL_HEIGHT), ink)
    return parts


def cell(found: Lens, layer: int, column: int, corner: tuple[Length, Length], ink: str) -> list[Part]:
    """Write the likeliest piece and its probability; where another piece follows, also the rank of that piece."""
    x, y = corner
    rank = int(found.ranks[layer, column])
    text = clip_text(found.texts[layer][column], SMALL, CELL_WIDTH - 10)
    share = Label(x + 6, y + 27, f"{found.probabilities[layer, column]:.0%}", SMALL, fill=ink)
    parts: list[Part] = [Label(x + 6, y + 12, text, SMALL, weight=400 if rank else 600, fill=ink), share]
    if rank:
        parts.append(Label(x + CELL_WIDTH - 6, y + 27, f"#{rank + 1}", SMALL, "end", fill=ink))
    return parts


def tip(trace: Trace, found: Lens, layer: int, column: int) -> str:
    """Return the text that a cell shows under the pointer."""
    assert trace.predicted is not None
    likeliest = f"{found.texts[layer][column]} {found.probabilities[layer, column]:.1%}"
    follows = f"{trace.predicted.texts[column]} {found.following[layer, column]:.1%}"
    return f"{found.layers[layer]}: {likeliest}; follows: {follows}, rank {found.ranks[layer, column] + 1}"


def tables(trace: Trace, found: Lens) -> list[Table]:
    """Return the numbers as tables with a row for each layer and a column for each position; ranks count from 1."""
    columns = trace.labels("decoder")[0]
    pieces: list[list[Cell]] = [[name, *texts] for name, texts in zip(found.layers, found.texts, strict=True)]
    ranks: list[list[Cell]] = [
        [name, *(int(rank) + 1 for rank in row)] for name, row in zip(found.layers, found.ranks, strict=True)
    ]
    return [
        Table("The likeliest next piece", ["after", *columns], pieces),
        matrix_table("Its probability", found.probabilities, (found.layers, columns)),
        Table("The rank of the piece that follows, from 1", ["after", *columns], ranks),
        matrix_table("The probability of the piece that follows", found.following, (found.layers, columns)),
    ]
