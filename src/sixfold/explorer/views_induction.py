"""The view of induction heads: the scores of every head, and what the repeated half costs without the best of them."""

from __future__ import annotations

import numpy as np

from sixfold.explorer.drawing import Box, Label, Length, Line, Part, text_width
from sixfold.explorer.heads import Head
from sixfold.explorer.induction import MIN_EXCESS, HeadScore, InductionTest
from sixfold.explorer.views_layout import (
    MARGIN,
    SMALL,
    TEXT,
    Cell,
    Table,
    View,
    colour_bar,
    content_top,
    labelled_grid,
    scene_with_heading,
)

Array = np.ndarray
PANELS = {
    "To what followed before": "score",
    "The same, nothing repeated": "control",
    "To the token before": "previous",
}
BAR_WIDTH, BAR_STEP, NAME_WIDTH = 420.0, 26.0, 250.0
MAX_NAMES = 6  # heads that a title lists


def induction(test: InductionTest) -> View:
    """Draw the scores of all heads as grids of layers × heads, and the losses as bars."""
    top, x = content_top(None, has_note=True) + 24, MARGIN
    parts: list[Part] = []
    right = bottom = x
    for title, field in PANELS.items():
        values = grid_of(test, field)
        labels = (
            [f"layer {layer}" for layer in range(len(values))],
            [f"head {head}" for head in range(values.shape[1])],
        )
        side = min(44.0, max(16.0, 300 / max(values.shape)))
        panel = labelled_grid(values, labels, (x, top), side)
        parts += [Label(x, top - 10, title, TEXT, weight=600), *panel.parts]
        corner = (panel.bottom - side * len(values), panel.bottom)
        left = panel_left(panel.parts)
        if field == "score":
            parts += [outline(each.head, (left, corner[0]), side) for each in test.induction_heads]
        right, bottom, x = panel.right, panel.bottom, max(panel.right, x + 215) + 30
    parts += colour_bar(MARGIN, bottom + 24, "sequential", (0, 1), "mean attention; outlined: an induction head")
    y = bottom + 88
    parts.append(Label(MARGIN, y, "Loss, in nats a token", TEXT, weight=600))
    rows = losses(test)
    largest = max(loss for _, _, loss in rows)
    for number, (tokens, heads, loss) in enumerate(rows):
        parts += bar(f"{tokens}, {heads}", loss / largest, f"{loss:.2f}", y + 26 + number * BAR_STEP)
    ends = [right, MARGIN + NAME_WIDTH + BAR_WIDTH + 60, MARGIN + text_width(note(test), TEXT)]
    size = (max(ends), y + 26 + len(rows) * BAR_STEP)
    scene = scene_with_heading(None, heading(test), parts, size, note(test))
    return View(scene, tables(test))


def grid_of(test: InductionTest, field: str) -> Array:
    """Return a number of every head: layers × heads."""
    heads = {each.head: float(getattr(each, field)) for each in test.heads}
    layers, count = 1 + max(head.layer for head in heads), 1 + max(head.head for head in heads)
    return np.array([[heads[Head("decoder", layer, head)] for head in range(count)] for layer in range(layers)])


def panel_left(parts: list[Part]) -> Length:
    """Return the left end of the cells of a labelled grid, which begins with the box around them."""
    box = parts[0]
    assert isinstance(box, Box)
    return box.x + 1


def outline(head: Head, corner: tuple[Length, Length], side: Length) -> Line:
    """Draw a line around the cell of a head; `corner` is the left and top end of the grid."""
    x, y = corner[0] + head.head * side, corner[1] + head.layer * side
    return Line([(x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y)], "series-2", 2.5)


def bar(name: str, share: Length, number: str, y: Length) -> list[Part]:
    left = MARGIN + NAME_WIDTH
    return [
        Label(MARGIN, y, name, SMALL, fill="soft"),
        Box(left, y - 7, max(1.0, share * BAR_WIDTH), 14, "accent"),
        Label(left + max(1.0, share * BAR_WIDTH) + 8, y, number, SMALL),
    ]


def heading(test: InductionTest) -> str:
    """Return the title: the heads that are named, best first, or that there are none."""
    names = [str(each.head) for each in test.induction_heads]
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"Induction heads: {', '.join(names[:MAX_NAMES])}{more}" if names else "Induction heads: none"


def note(test: InductionTest) -> str:
    """Return the rule by which heads are named, and what came of it."""
    rule = f"gives {MIN_EXCESS:g} more of its attention to what followed a token before than in the control"
    what = f"{test.rows} sequences of {test.half} random tokens, each twice."
    if not test.induction_heads:
        return f"{what} No head {rule}; the highest is {test.heads[0].excess:.2f}."
    return f"{what} A head is named if it {rule}."


def losses(test: InductionTest) -> list[tuple[str, str, float]]:
    """Return the losses: of which tokens, with which heads, and how much."""
    rows = [("first half", "all heads", test.first_loss), ("second half", "all heads", test.second_loss)]
    if test.ablation is None:
        return rows
    count = len(test.ablation.heads)
    heads = "head" if count == 1 else "heads"
    rows.append(("second half", f"without {count} induction {heads}", test.second_loss + test.ablation.second))
    if test.ablation.others:
        rise = sum(second for _, second in test.ablation.others) / len(test.ablation.others)
        rows.append(("second half", f"without {test.ablation.others_count} other {heads}", test.second_loss + rise))
    return rows


def tables(test: InductionTest) -> list[Table]:
    """Return the scores of all heads, best first, and the losses."""
    columns = ["head", "score", "control", "beyond it", "token before", "is a"]
    scores: list[list[Cell]] = [[*numbers(each), name_of(each)] for each in test.heads]
    costs: list[list[Cell]] = [[tokens, heads, round(loss, 4)] for tokens, heads, loss in losses(test)]
    return [
        Table("Mean attention of each head", columns, scores, (1, 2, 3, 4)),
        Table("Loss, in nats a token", ["tokens", "heads", "loss"], costs),
    ]


def name_of(each: HeadScore) -> str:
    """Return what a head is called, or nothing if it is below both thresholds."""
    if each.is_induction:
        return "induction head"
    return "previous-token head" if each.is_previous_token else ""


def numbers(each: HeadScore) -> list[Cell]:
    values = (each.score, each.control, each.excess, each.previous)
    return [str(each.head), *(round(value, 4) for value in values)]
