"""Views of attention: one head as a matrix, all heads at once, one token in all heads, and the alignment of words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sixfold.alignment_heads import AligningHeads, word_weights
from sixfold.explorer.drawing import Box, Curve, Grid, Label, Length, Part, clip_text, colormap, text_width
from sixfold.explorer.heads import Head, Kind
from sixfold.explorer.pieces import Pieces
from sixfold.explorer.trace import Trace
from sixfold.explorer.views_layout import (
    MARGIN,
    MIN_WIDTH,
    SLANT,
    SMALL,
    TEXT,
    Cell,
    Table,
    View,
    ViewOptions,
    attention_weights,
    colour_bar,
    content_top,
    kind_title,
    labelled_grid,
    matrix_table,
    scene_with_heading,
    token_index,
)

Array = np.ndarray
MIN_LINK_WEIGHT = 0.03  # weaker links are not drawn


def attention(trace: Trace, options: ViewOptions) -> View:
    """Draw the weights of one head, or the mean of a layer's heads, as a matrix."""
    kind, layer, head = options.resolve(trace)
    values, labels = attention_weights(trace, kind, layer, head), trace.labels(kind)
    if options.words:
        values, row_words, column_words = trace.by_word(kind, values)
        labels = (row_words, column_words)
    which = "mean of all heads" if head is None else f"head {head}"
    title = f"{kind_title(trace, kind)}, layer {layer}, {which}"
    panel = labelled_grid(values, labels, (MARGIN, content_top(trace)))
    bar = colour_bar(MARGIN, panel.bottom + 28, "sequential", (0, 1), "weight: how much a row looks at a column")
    scene = scene_with_heading(trace, title, [*panel.parts, *bar], (panel.right, panel.bottom + 60))
    return View(scene, [matrix_table(title, values, labels)])


def heads(trace: Trace, options: ViewOptions) -> View:
    """Draw every head of a kind as a small matrix, with a row of matrices for each layer."""
    kind, _, _ = options.resolve(trace)
    weights = trace.attention(kind)
    layers, count, rows, columns = weights.shape
    size = min(200.0, max(76.0, 900 / count - 14))
    cell = size / max(rows, columns)
    width, height = cell * columns, cell * rows
    left, top = MARGIN + 56, content_top(trace) + 18
    column_step, row_step = width + 16, height + 32
    parts: list[Part] = [
        Label(left + head * column_step + width / 2, top - 12, f"head {head}", SMALL, "middle", fill="soft")
        for head in range(count)
    ]
    table: list[list[Cell]] = []
    for layer in range(layers):
        parts.append(Label(MARGIN, top + layer * row_step + height / 2, f"layer {layer}", SMALL, fill="soft"))
        for head in range(count):
            x, y, matrix = left + head * column_step, top + layer * row_step, weights[layer, head]
            summary = _head_summary(trace, kind, matrix)
            table.append([str(Head(kind, layer, head)), *summary])
            parts += [
                Box(x - 1, y - 1, width + 2, height + 2, "line"),
                Grid(x, y, width, height, colormap(matrix)),
                Label(x + width / 2, y + height + 12, f"{summary[0]:.1f} bits", SMALL, "middle", fill="soft"),
            ]
    bottom = top + layers * row_step + 4
    note = "weight; below each head its mean entropy, 0 bits if it looks at one piece only"
    bar = colour_bar(MARGIN, bottom + 10, "sequential", (0, 1), note)
    title = f"{kind_title(trace, kind)}, all {layers} × {count} heads"
    scene = scene_with_heading(trace, title, [*parts, *bar], (left + count * column_step - 16, bottom + 42))
    return View(scene, [Table(title, ["head", "entropy, bits", "row", "looks most at", "weight"], table, (4,))])


def _head_summary(trace: Trace, kind: Kind, matrix: Array) -> tuple[float, str, str, float]:
    """Return the mean entropy of the rows in bits, and row, column and weight of the strongest cell."""
    bits = float(-(matrix * np.log2(np.maximum(matrix, 1e-30))).sum(axis=1).mean())
    row, column = np.unravel_index(int(matrix.argmax()), matrix.shape)
    row_labels, column_labels = trace.labels(kind)
    return round(max(bits, 0.0), 3), row_labels[row], column_labels[column], round(float(matrix[row, column]), 4)


def token(trace: Trace, options: ViewOptions) -> View:
    """Draw one row of every head of a kind: where this token looks, layer by layer."""
    kind, _, _ = options.resolve(trace)
    index = token_index(options.token, trace, kind)
    weights = trace.attention(kind)[:, :, index]  # layers × heads × columns
    layers, count, columns = weights.shape
    row_labels, column_labels = trace.labels(kind)
    cell, row_height = min(64.0, max(26.0, 900 / columns)), min(16.0, max(7.0, 560 / (layers * count)))
    left, top, width = MARGIN + 64, content_top(trace), cell * columns
    middles = [left + (column + 0.5) * cell for column in range(columns)]
    start = middles[index] if kind != "cross" else left + width / 2
    half = text_width(row_labels[index], TEXT) / 2
    parts: list[Part] = [
        Label(max(start, MARGIN + half), top + 14, row_labels[index], TEXT, "middle", 0.0, 600, "accent")
    ]
    means = weights.mean(axis=(0, 1))
    for column in np.argsort(means):
        share, tip = float(means[column] / means.max()), f"{column_labels[column]}: {means[column]:.3f}"
        parts.append(_vertical_link((start, top + 28), (middles[column], top + 150), share, tip))
    label_length = min(120.0, max(text_width(text, SMALL) for text in column_labels))
    is_slanted = label_length > cell - 6
    y = top + 150 + (label_length * math.sin(math.radians(SLANT)) + 18 if is_slanted else 26)
    for column, (x, text) in enumerate(zip(middles, column_labels, strict=True)):
        weight = 600 if kind != "cross" and column == index else 400
        anchor, turn, above = ("start", SLANT, 10.0) if is_slanted else ("middle", 0.0, 13.0)
        parts.append(Label(x, y - above, clip_text(text, SMALL, 120), SMALL, anchor, turn, weight))
    for layer in range(layers):
        names = [Head(kind, layer, head) for head in range(count)]
        parts += _layer_rows(weights[layer], names, column_labels, (left, y, width, row_height))
        y += row_height * count + 8
    note = f"weight; each layer has {count} rows, one per head; curves: their mean"
    parts += colour_bar(MARGIN, y + 16, "sequential", (0, 1), note)
    title = f"{kind_title(trace, kind)}: where “{row_labels[index]}” looks"
    right = left + width + (label_length / 2 - 13 if is_slanted else 0)
    scene = scene_with_heading(trace, title, parts, (right, y + 48))
    rows: list[list[Cell]] = [
        [str(Head(kind, layer, head)), *(round(float(weight), 4) for weight in weights[layer, head])]
        for layer, head in np.ndindex(layers, count)
    ]
    return View(scene, [Table(title, ["head", *column_labels], rows, range(1, columns + 1))])


def _layer_rows(
    weights: Array, names: Sequence[Head], columns: Sequence[str], bounds: tuple[Length, Length, Length, Length]
) -> list[Part]:
    """Draw a row of cells for each head of a layer; `bounds` are x, y, width, and the height of one row."""
    x, y, width, row_height = bounds
    titles = [
        [f"{name} · {text}: {weight:.3f}" for text, weight in zip(columns, row, strict=True)]
        for name, row in zip(names, weights, strict=True)
    ]
    height = row_height * len(names)
    return [
        Label(MARGIN, y + height / 2, f"layer {names[0].layer}", SMALL, fill="soft"),
        Box(x - 1, y - 1, width + 2, height + 2, "line"),
        Grid(x, y, width, height, colormap(weights), titles),
    ]


def _vertical_link(start: tuple[Length, Length], end: tuple[Length, Length], weight: Length, title: str) -> Curve:
    """Return a curve from a point to one below it, wider and darker for a larger weight."""
    half = (start[1] + end[1]) / 2
    points = (start, (start[0], half), (end[0], half), end)
    return Curve(points, "accent", 0.6 + 10 * weight, 0.1 + 0.8 * weight, title)


def alignment(trace: Trace, options: ViewOptions) -> View:
    """Draw the words of both sides, linked by the heads that align, or by those of the chosen layer and head."""
    heads, which = linking_heads(trace, options)
    weights, target, source = trace.alignment(heads)
    links = word_weights(weights, target.words, source.words)
    target_words, source_words = target.word_texts, source.word_texts
    top = content_top(trace)
    height = 30.0 * max(len(target_words), len(source_words))
    left_width, right_width = (
        min(220.0, max(text_width(text, TEXT) for text in words)) for words in (source_words, target_words)
    )
    left = MARGIN + left_width + 12
    right = max(left + 260, MIN_WIDTH - MARGIN - right_width - 10)
    source_ys, target_ys = (
        [top + (row + 0.5) * height / len(words) for row in range(len(words))] for words in (source_words, target_words)
    )
    parts: list[Part] = []
    for row, column in sorted(np.ndindex(*links.shape), key=lambda cell: links[cell]):
        weight, bend = float(links[row, column]), 0.42 * (right - left)
        if weight >= MIN_LINK_WEIGHT:
            start, end = (left, source_ys[column]), (right, target_ys[row])
            points = (start, (left + bend, start[1]), (right - bend, end[1]), end)
            colour = "accent" if column == links[row].argmax() else "series-5"
            tip = f"{source_words[column]} → {target_words[row]}: {weight:.3f}"
            parts.append(Curve(points, colour, 0.8 + 9 * weight, min(1.0, 0.12 + weight), tip))
    parts += _word_labels(source, source_ys, left - 10, "end")
    parts += _word_labels(target, target_ys, right + 10, "start")
    title = f"Alignment: cross-attention, {which}"
    scene = scene_with_heading(trace, title, parts, (right + 10 + right_width, top + height))
    best = zip(target_words, links.argmax(axis=1), links.max(axis=1), strict=True)
    rows: list[list[Cell]] = [[word, source_words[column], round(float(weight), 4)] for word, column, weight in best]
    strongest = Table("Strongest link of each word", ["word", "from", "weight"], rows, (2,))
    return View(scene, [strongest, matrix_table(title, links, (target_words, source_words))])


def linking_heads(trace: Trace, options: ViewOptions) -> tuple[AligningHeads, str]:
    """Return the heads by which words are linked, and their description for a title."""
    heads = trace.aligning
    if options.layer is not None or options.head is not None:
        _, layer, head = ViewOptions("cross", options.layer, options.head).resolve(trace)
        heads = AligningHeads(layer, tuple(range(trace.config.heads)) if head is None else (head,), False)
    numbers = " and ".join(map(str, heads.heads))
    which = "mean of all heads" if len(heads.heads) == trace.config.heads else f"head {numbers}"
    return heads, f"layer {heads.layer}, {which}{' when a piece is read' if heads.reads_token else ''}"


def _word_labels(pieces: Pieces, ys: Sequence[Length], x: Length, anchor: str) -> list[Part]:
    words = zip(ys, pieces.word_texts, strict=True)
    return [Label(x, y, clip_text(text, TEXT, 220), TEXT, anchor) for y, text in words]
