"""Views of decoding: every step with its likeliest pieces, and the tree of a beam search."""

from __future__ import annotations

from collections import defaultdict

from sixfold.explorer.beam import Node, search_tree
from sixfold.explorer.drawing import Box, Curve, Label, Length, Part, clip_text, text_width
from sixfold.explorer.trace import Step, Trace
from sixfold.explorer.views_layout import (
    MARGIN,
    SMALL,
    TEXT,
    Cell,
    Table,
    View,
    ViewOptions,
    content_top,
    scene_with_heading,
)

CARD_WIDTH, BAR_HEIGHT, CARD_GAP = 216.0, 19.0, 18.0  # one card shows one decoding step
CARDS_PER_ROW = 4
NODE_WIDTH, COLUMN_STEP, ROW_STEP = 100.0, 122.0, 42.0  # of the search tree


def steps(trace: Trace, options: ViewOptions) -> View:
    """Draw a card for each step: the likeliest pieces as bars, the one that was written in colour."""
    decoding_steps = trace.steps(options.top)
    assert trace.predicted is not None
    count = len(decoding_steps)
    per_row, height, top = min(count, CARDS_PER_ROW), 64 + BAR_HEIGHT * options.top, content_top(trace)
    parts: list[Part] = []
    rows: list[list[Cell]] = []
    for number, step in enumerate(decoding_steps):
        x = MARGIN + number % per_row * (CARD_WIDTH + CARD_GAP)
        y = top + number // per_row * (height + CARD_GAP)
        name = clip_text(f"{number}  {step.wrote}", TEXT, CARD_WIDTH - 84)
        parts.append(Box(x, y, CARD_WIDTH, height, "card", round=6))
        parts.append(Label(x + 14, y + 20, name, TEXT, weight=600))
        parts += card_content(step, trace.predicted.ids[number], x, y)
        rows += [
            [number, step.read, choice.text, round(choice.probability, 4), round(choice.logit, 3)]
            for choice in step.choices
        ]
    bottom = top + -(-count // per_row) * (height + CARD_GAP) - CARD_GAP
    what = "Decoding, step by step" if trace.source is not None else "Next pieces, position by position"
    title = f"{what}: the {options.top} likeliest pieces"
    scene = scene_with_heading(trace, title, parts, (MARGIN + per_row * (CARD_WIDTH + CARD_GAP) - CARD_GAP, bottom))
    return View(scene, [Table(title, ["step", "after", "piece", "probability", "logit"], rows, (3,))])


def card_content(step: Step, written: int, x: Length, y: Length) -> list[Part]:
    """Draw the entropy of a step, the piece that was read, and a bar for each choice; `written` is a token id.

    If no choice was written, the card has the probability and the rank, from 1, of the piece that was.
    """
    standing = f"{step.probability:.1%}, rank {step.rank + 1}" if step.rank >= len(step.choices) else ""
    read = clip_text(
        f"after {step.read}", SMALL, CARD_WIDTH - 28 - (text_width(standing, SMALL) + 8 if standing else 0)
    )
    parts: list[Part] = [
        Label(x + CARD_WIDTH - 14, y + 20, f"{step.entropy:.1f} bits", SMALL, "end", fill="soft"),
        Label(x + 14, y + 40, read, SMALL, fill="soft"),
        *([Label(x + CARD_WIDTH - 14, y + 40, standing, SMALL, "end", fill="soft")] if standing else []),
    ]
    for rank, choice in enumerate(step.choices):
        middle, is_written = y + 62 + rank * BAR_HEIGHT, choice.id == written
        parts += [
            Label(x + 14, middle, clip_text(choice.text, SMALL, 74), SMALL, weight=600 if is_written else 400),
            Box(x + 92, middle - 5, max(1.0, 60 * choice.probability), 10, "accent" if is_written else "series-5"),
            Label(x + CARD_WIDTH - 14, middle, f"{choice.probability:.1%}", SMALL, "end", fill="soft"),
        ]
    return parts


def beam(trace: Trace, options: ViewOptions) -> View:
    """Draw the tree of a beam search, a column for each step: nodes that were kept, pruned, and the best path."""

    nodes = list(search_tree(trace, beam=options.beam).nodes)
    columns = defaultdict(list)
    for node in sorted(nodes, key=lambda node: -node.total):
        columns[node.step].append(node)
    top = content_top(trace) + 28
    positions = {
        node.id: (MARGIN + step * COLUMN_STEP, top + rank * ROW_STEP)
        for step, column in columns.items()
        for rank, node in enumerate(column)
    }
    parts: list[Part] = [
        Label(MARGIN + step * COLUMN_STEP, top - 16, f"step {step}", SMALL, fill="soft")
        for step in sorted(columns)
        if step
    ]
    for node in sorted(nodes, key=lambda node: node.is_best):
        if node.parent in positions:
            parts.append(edge_curve(positions[node.parent], positions[node.id], node.is_best))
    for node in nodes:
        parts += node_box(node, *positions[node.id])
    right, bottom = (max(ends) for ends in zip(*positions.values(), strict=True))
    title = f"Beam search, {options.beam} hypotheses at once"
    note = "Likeliest first in each column; below each piece its sum of log-probabilities; the best path is filled."
    parts.append(Label(MARGIN, bottom + ROW_STEP + 14, note, SMALL, fill="soft"))
    rows: list[list[Cell]] = [
        [node.step, node.text, *(round(value, 4) for value in (node.logprob, node.total, node.score)), node.fate,
         "best" if node.is_best else ""]
        for node in nodes
    ]  # fmt: skip
    scene = scene_with_heading(trace, title, parts, (right + NODE_WIDTH, bottom + ROW_STEP + 20))
    return View(scene, [Table(title, ["step", "piece", "log p", "sum", "score", "fate", ""], rows)])


def edge_curve(parent: tuple[Length, Length], child: tuple[Length, Length], is_best: bool) -> Curve:
    start, end = (parent[0] + NODE_WIDTH, parent[1] + 16), (child[0], child[1] + 16)
    points = (start, (start[0] + 12, start[1]), (end[0] - 12, end[1]), end)
    return Curve(points, *(("accent", 2.6, 1.0) if is_best else ("series-5", 1.0, 0.5)))


def node_box(node: Node, x: Length, y: Length) -> list[Part]:
    """Draw a node: its piece and its sum of log-probabilities. A pruned node has no border."""
    is_kept = node.fate != "pruned"
    fill, text_colour = ("accent", "paper") if node.is_best else ("card", "ink" if is_kept else "soft")
    tip = f"{node.text}: log p {node.logprob:.3f}, sum {node.total:.3f}, score {node.score:.3f}, {node.fate}"
    total = f"{node.total:.2f}".replace("-", "−") + (" ended" if node.fate == "ended" else "")
    return [
        Box(x, y, NODE_WIDTH, 34, fill, tip, edge="line" if is_kept else "", round=5),
        Label(
            x + 8, y + 11, clip_text(node.text, SMALL, NODE_WIDTH - 14), SMALL, weight=600 if node.is_best else 400,
            fill=text_colour,
        ),
        Label(x + 8, y + 25, total, SMALL, fill=text_colour),
    ]  # fmt: skip
