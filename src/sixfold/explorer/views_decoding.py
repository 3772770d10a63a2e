"""Views of how a translation was found: every step with what else might have come, and the tree of a beam search."""

from __future__ import annotations

from collections import defaultdict

from sixfold.explorer.beam import Node, search_tree
from sixfold.explorer.drawing import Box, Curve, Label, Length, Part, clipped
from sixfold.explorer.layout import MARGIN, SMALL, TEXT, Cell, Table, View, Wish, compose, top_of
from sixfold.explorer.trace import Step, Trace

WIDE, BAR, GAP = 216.0, 19.0, 18.0  # of a card, of a bar in it, and between cards
ACROSS = 4  # cards
NODE, NEXT, DOWN = 100.0, 122.0, 42.0  # how wide a node of the tree is, and how far it is to the next


def steps(trace: Trace, wish: Wish) -> View:
    """A card for each step: the likeliest pieces as bars, the one that was written in colour."""
    found = trace.steps(wish.top)
    assert trace.predicted is not None
    across, high, top = min(len(found), ACROSS), 64 + BAR * wish.top, top_of(trace)
    parts: list[Part] = []
    rows: list[list[Cell]] = []
    for number, step in enumerate(found):
        x, y = MARGIN + number % across * (WIDE + GAP), top + number // across * (high + GAP)
        parts.append(Box(x, y, WIDE, high, "card", round=6))
        parts.append(Label(x + 14, y + 20, clipped(f"{number}  {step.wrote}", TEXT, WIDE - 84), TEXT, weight=600))
        parts += card(step, trace.predicted.ids[number], x, y)
        rows += [
            [number, step.read, each.text, round(each.probability, 4), round(each.logit, 3)] for each in step.choices
        ]
    bottom = top + -(-len(found) // across) * (high + GAP) - GAP
    title = f"Decoding, step by step: the {wish.top} likeliest pieces"
    scene = compose(trace, title, parts, (MARGIN + across * (WIDE + GAP) - GAP, bottom))
    return View(scene, [Table(title, ["step", "after", "piece", "probability", "logit"], rows, (3,))])


def card(step: Step, wrote: int, x: Length, y: Length) -> list[Part]:
    """What was read, how undecided the model is, and a bar for each choice."""
    parts: list[Part] = [
        Label(x + WIDE - 14, y + 20, f"{step.entropy:.1f} bits", SMALL, "end", fill="soft"),
        Label(x + 14, y + 40, clipped(f"after {step.read}", SMALL, WIDE - 28), SMALL, fill="soft"),
    ]
    for rank, choice in enumerate(step.choices):
        middle, is_chosen = y + 62 + rank * BAR, choice.id == wrote
        parts += [
            Label(x + 14, middle, clipped(choice.text, SMALL, 74), SMALL, weight=600 if is_chosen else 400),
            Box(x + 92, middle - 5, max(1.0, 68 * choice.probability), 10, "accent" if is_chosen else "series-5"),
            Label(x + WIDE - 14, middle, f"{choice.probability:.1%}", SMALL, "end", fill="soft"),
        ]
    return parts


def beam(trace: Trace, wish: Wish) -> View:
    """The hypotheses that were followed, those that were dropped, and the one that won; a column for each step."""

    nodes = list(search_tree(trace, beam=wish.beam).nodes)
    columns = defaultdict(list)
    for node in sorted(nodes, key=lambda node: -node.total):
        columns[node.step].append(node)
    top = top_of(trace) + 28
    spots = {
        node.id: (MARGIN + step * NEXT, top + rank * DOWN)
        for step, found in columns.items()
        for rank, node in enumerate(found)
    }
    parts: list[Part] = [
        Label(MARGIN + step * NEXT, top - 16, f"step {step}", SMALL, fill="soft") for step in sorted(columns) if step
    ]
    for node in sorted(nodes, key=lambda node: node.is_best):
        if node.parent in spots:
            parts.append(branch(spots[node.parent], spots[node.id], node.is_best))
    for node in nodes:
        parts += leaf(node, *spots[node.id])
    right, bottom = (max(ends) for ends in zip(*spots.values(), strict=True))
    title = f"Beam search, {wish.beam} hypotheses at once"
    more = "In a column the likeliest first; under each piece the sum of log-probabilities; the winner is filled."
    parts.append(Label(MARGIN, bottom + DOWN + 14, more, SMALL, fill="soft"))
    rows: list[list[Cell]] = [
        [node.step, node.text, *(round(each, 4) for each in (node.logprob, node.total, node.score)), node.fate,
         "best" if node.is_best else ""]
        for node in nodes
    ]  # fmt: skip
    scene = compose(trace, title, parts, (right + NODE, bottom + DOWN + 20))
    return View(scene, [Table(title, ["step", "piece", "log p", "sum", "score", "fate", ""], rows)])


def branch(parent: tuple[Length, Length], child: tuple[Length, Length], is_best: bool) -> Curve:
    start, end = (parent[0] + NODE, parent[1] + 16), (child[0], child[1] + 16)
    points = (start, (start[0] + 12, start[1]), (end[0] - 12, end[1]), end)
    return Curve(points, *(("accent", 2.6, 1.0) if is_best else ("series-5", 1.0, 0.5)))


def leaf(node: Node, x: Length, y: Length) -> list[Part]:
    """A piece with its sum; what was pruned has no edge."""
    is_kept = node.fate != "pruned"
    fill, ink = ("accent", "paper") if node.is_best else ("card", "ink" if is_kept else "soft")
    tip = f"{node.text}: log p {node.logprob:.3f}, sum {node.total:.3f}, score {node.score:.3f}, {node.fate}"
    told = f"{node.total:.2f}".replace("-", "−") + (" ended" if node.fate == "ended" else "")
    return [
        Box(x, y, NODE, 34, fill, tip, edge="line" if is_kept else "", round=5),
        Label(
            x + 8, y + 11, clipped(node.text, SMALL, NODE - 14), SMALL, weight=600 if node.is_best else 400, fill=ink
        ),
        Label(x + 8, y + 25, told, SMALL, fill=ink),
    ]
