"""Views of attention: one head as a matrix, all heads at once, one token through all of them, words joined by it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sixfold.alignment_heads import AligningHeads, word_weights
from sixfold.explorer.colours import shade
from sixfold.explorer.drawing import Box, Curve, Grid, Label, Length, Part, clipped, text_width
from sixfold.explorer.heads import Head, Kind
from sixfold.explorer.layout import (
    KINDS,
    MARGIN,
    NARROWEST,
    SLANT,
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
    place_of,
    top_of,
    weights_of,
)  # fmt: skip
from sixfold.explorer.pieces import Pieces
from sixfold.explorer.trace import Trace

Array = np.ndarray
FAINT = 0.03  # a link that is weaker is not drawn


def attention(trace: Trace, wish: Wish) -> View:
    """The matrix of one head, or the mean of a layer's."""
    kind, layer, head = wish.settled(trace)
    values, labels = weights_of(trace, kind, layer, head), trace.labels(kind)
    if wish.words:
        values, *named = trace.by_word(kind, values)
        labels = (named[0], named[1])
    which = "mean of all heads" if head is None else f"head {head}"
    title = f"{KINDS[kind]}, layer {layer}, {which}"
    panel = labelled_grid(values, labels, (MARGIN, top_of(trace)))
    bar = colour_bar(MARGIN, panel.bottom + 28, "sequential", (0, 1), "weight: how much of a row looks at a column")
    scene = compose(trace, title, [*panel.parts, *bar], (panel.right, panel.bottom + 60))
    return View(scene, [matrix_table(title, values, labels)])


def heads(trace: Trace, wish: Wish) -> View:
    """Every head of a kind as a small matrix: a row for each layer."""
    kind, _, _ = wish.settled(trace)
    weights = trace.attention(kind)
    layers, count, rows, columns = weights.shape
    room = min(200.0, max(76.0, 900 / count - 14))
    cell = room / max(rows, columns)
    wide, high = cell * columns, cell * rows
    left, top = MARGIN + 56, top_of(trace) + 18
    across, down = wide + 16, high + 32
    parts: list[Part] = [
        Label(left + head * across + wide / 2, top - 12, f"head {head}", SMALL, "middle", fill="soft")
        for head in range(count)
    ]
    table: list[list[Cell]] = []
    for layer in range(layers):
        parts.append(Label(MARGIN, top + layer * down + high / 2, f"layer {layer}", SMALL, fill="soft"))
        for head in range(count):
            x, y, matrix = left + head * across, top + layer * down, weights[layer, head]
            fact = _fact(trace, kind, matrix)
            table.append([str(Head(kind, layer, head)), *fact])
            parts += [
                Box(x - 1, y - 1, wide + 2, high + 2, "line"),
                Grid(x, y, wide, high, shade(matrix)),
                Label(x + wide / 2, y + high + 12, f"{fact[0]:.1f} bits", SMALL, "middle", fill="soft"),
            ]
    bottom = top + layers * down + 4
    note = "weight; under each head its mean entropy: 0 bits look at one piece, more bits at many"
    bar = colour_bar(MARGIN, bottom + 10, "sequential", (0, 1), note)
    title = f"{KINDS[kind]}, all {layers} × {count} heads"
    scene = compose(trace, title, [*parts, *bar], (left + count * across - 16, bottom + 42))
    return View(scene, [Table(title, ["head", "entropy, bits", "row", "looks most at", "weight"], table, (4,))])


def _fact(trace: Trace, kind: Kind, matrix: Array) -> tuple[float, str, str, float]:
    """The mean entropy of its rows in bits, and its strongest link between pieces that stand for text."""
    bits = float(-(matrix * np.log2(np.maximum(matrix, 1e-30))).sum(axis=1).mean())
    row, column = np.unravel_index(int(matrix.argmax()), matrix.shape)
    asks, looked = trace.labels(kind)
    return round(max(bits, 0.0), 3), asks[row], looked[column], round(float(matrix[row, column]), 4)


def token(trace: Trace, wish: Wish) -> View:
    """One row of every head of a kind: where this token looks, layer after layer."""
    kind, _, _ = wish.settled(trace)
    place = place_of(wish.token, trace, kind)
    weights = trace.attention(kind)[:, :, place]  # layers × heads × columns
    layers, count, columns = weights.shape
    asks, looked = trace.labels(kind)
    cell, high = min(64.0, max(26.0, 900 / columns)), min(16.0, max(7.0, 560 / (layers * count)))
    left, top, wide = MARGIN + 64, top_of(trace), cell * columns
    middles = [left + (column + 0.5) * cell for column in range(columns)]
    start = middles[place] if kind != "cross" else left + wide / 2
    half = text_width(asks[place], TEXT) / 2
    parts: list[Part] = [Label(max(start, MARGIN + half), top + 14, asks[place], TEXT, "middle", 0.0, 600, "accent")]
    means = weights.mean(axis=(0, 1))
    for column in np.argsort(means):
        share, tip = float(means[column] / means.max()), f"{looked[column]}: {means[column]:.3f}"
        parts.append(_link((start, top + 28), (middles[column], top + 150), share, tip))
    names = min(120.0, max(text_width(text, SMALL) for text in looked))
    is_turned = names > cell - 6
    y = top + 150 + (names * math.sin(math.radians(SLANT)) + 18 if is_turned else 26)
    for column, (x, text) in enumerate(zip(middles, looked, strict=True)):
        heavy = 600 if kind != "cross" and column == place else 400
        anchor, turn, above = ("start", SLANT, 10.0) if is_turned else ("middle", 0.0, 13.0)
        parts.append(Label(x, y - above, clipped(text, SMALL, 120), SMALL, anchor, turn, heavy))
    for layer in range(layers):
        parts += _strip(
            weights[layer], [Head(kind, layer, each) for each in range(count)], looked, (left, y, wide, high)
        )
        y += high * count + 8
    note = f"weight; each layer has {count} rows, one a head; curves: their mean"
    parts += colour_bar(MARGIN, y + 16, "sequential", (0, 1), note)
    title = f"{KINDS[kind]}: where “{asks[place]}” looks"
    scene = compose(trace, title, parts, (left + wide + (names / 2 - 13 if is_turned else 0), y + 48))
    rows: list[list[Cell]] = [
        [str(Head(kind, layer, head)), *(round(float(weight), 4) for weight in weights[layer, head])]
        for layer, head in np.ndindex(layers, count)
    ]
    return View(scene, [Table(title, ["head", *looked], rows, range(1, columns + 1))])


def _strip(
    weights: Array, names: Sequence[Head], looked: Sequence[str], place: tuple[Length, Length, Length, Length]
) -> list[Part]:
    """A row for each head of a layer."""
    x, y, wide, high = place
    titles = [
        [f"{name} · {text}: {weight:.3f}" for text, weight in zip(looked, row, strict=True)]
        for name, row in zip(names, weights, strict=True)
    ]
    tall = high * len(names)
    return [
        Label(MARGIN, y + tall / 2, f"layer {names[0].layer}", SMALL, fill="soft"),
        Box(x - 1, y - 1, wide + 2, tall + 2, "line"),
        Grid(x, y, wide, tall, shade(weights), titles),
    ]


def _link(start: tuple[Length, Length], end: tuple[Length, Length], weight: Length, title: str) -> Curve:
    half = (start[1] + end[1]) / 2
    points = (start, (start[0], half), (end[0], half), end)
    return Curve(points, "accent", 0.6 + 10 * weight, 0.1 + 0.8 * weight, title)


def alignment(trace: Trace, wish: Wish) -> View:
    """Words of both sides joined by the heads that align, or by those of the layer and head that are named."""
    heads, which = joining(trace, wish)
    weights, written, read = trace.alignment(heads)
    links, targets, sources = word_weights(weights, written.words, read.words), written.word_texts, read.word_texts
    top = top_of(trace)
    high = 30.0 * max(len(targets), len(sources))
    lefts, rights = (min(220.0, max(text_width(text, TEXT) for text in side)) for side in (sources, targets))
    x0 = MARGIN + lefts + 12
    x1 = max(x0 + 260, NARROWEST - MARGIN - rights - 10)
    here, there = ([top + (row + 0.5) * high / len(side) for row in range(len(side))] for side in (sources, targets))
    parts: list[Part] = []
    for target, source in sorted(np.ndindex(*links.shape), key=lambda pair: links[pair]):
        weight, reach = float(links[target, source]), 0.42 * (x1 - x0)
        if weight >= FAINT:
            start, end = (x0, here[source]), (x1, there[target])
            points = (start, (x0 + reach, start[1]), (x1 - reach, end[1]), end)
            colour = "accent" if source == links[target].argmax() else "series-5"
            tip = f"{sources[source]} → {targets[target]}: {weight:.3f}"
            parts.append(Curve(points, colour, 0.8 + 9 * weight, min(1.0, 0.12 + weight), tip))
    parts += _words(read, here, x0 - 10, "end")
    parts += _words(written, there, x1 + 10, "start")
    title = f"Alignment: cross-attention, {which}"
    scene = compose(trace, title, parts, (x1 + 10 + rights, top + high))
    best = zip(targets, links.argmax(axis=1), links.max(axis=1), strict=True)
    rows: list[list[Cell]] = [[target, sources[most], round(float(weight), 4)] for target, most, weight in best]
    strongest = Table("Strongest link of each word", ["word", "from", "weight"], rows, (2,))
    return View(scene, [strongest, matrix_table(title, links, (targets, sources))])


def joining(trace: Trace, wish: Wish) -> tuple[AligningHeads, str]:
    """The heads by which words are joined, and their names for a title."""
    heads = trace.aligning
    if wish.layer is not None or wish.head is not None:
        _, layer, head = Wish("cross", wish.layer, wish.head).settled(trace)
        heads = AligningHeads(layer, tuple(range(trace.config.heads)) if head is None else (head,), False)
    numbers = " and ".join(map(str, heads.heads))
    which = "mean of all heads" if len(heads.heads) == trace.config.heads else f"head {numbers}"
    return heads, f"layer {heads.layer}, {which}{' when a piece is read' if heads.reads_token else ''}"


def _words(pieces: Pieces, ys: Sequence[Length], x: Length, anchor: str) -> list[Part]:
    return [Label(x, y, clipped(text, TEXT, 220), TEXT, anchor) for y, text in zip(ys, pieces.word_texts, strict=True)]
