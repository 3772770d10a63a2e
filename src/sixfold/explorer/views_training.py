"""Curves as a part of a scene: those of a run, and any other line over an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sixfold.errors import RequestError
from sixfold.explorer.drawing import Label, Length, Line, Part
from sixfold.explorer.layout import MARGIN, SMALL, TEXT, Table, View, compose, top_of
from sixfold.reports.charts import COLOURS, DASHES, Axis, Series, axis_of, number, thinned

Place = tuple[Length, Length, Length, Length]  # x, y, width, height
ACROSS = 2
PANEL = (400.0, 200.0)


def curves(title: str, plots: Mapping[str, Sequence[Series]], from_zero: Sequence[str] = ()) -> View:
    """A panel for each plot; `from_zero` names those whose axis begins there."""
    if not plots:
        raise RequestError("training: expected a run that has logged a step; this one has none yet", "try again later")
    top = top_of(None) + 26
    parts: list[Part] = []
    for index, (name, series) in enumerate(plots.items()):
        x = MARGIN + index % ACROSS * (PANEL[0] + 48)
        y = top + index // ACROSS * (PANEL[1] + 84)
        parts.append(Label(x, y - 18, name, TEXT, weight=600))
        parts += plotted(series, (x + 44, y, PANEL[0] - 44, PANEL[1]), "step", name in from_zero)
    names = [each.name for each in next(iter(plots.values()))]
    wide = MARGIN + min(ACROSS, len(plots)) * (PANEL[0] + 48) - 48
    if len(names) > 1:
        parts += legend(names, MARGIN, top_of(None) - 14)
    bottom = top + -(-len(plots) // ACROSS) * (PANEL[1] + 84) - 34
    every = [each for series in plots.values() for each in series]
    several = len(names) > 1
    heads = [f"{plot}, {each.name}" if several else plot for plot, series in plots.items() for each in series]
    return View(compose(None, title, parts, (wide, bottom)), [Table(title, ["step", *heads], joined(every))])


def joined(series: Sequence[Series]) -> list[list[str | int | Length]]:
    """A row for each step that any of them has."""
    known = [dict(zip(each.x, each.y, strict=True)) for each in series]
    steps = sorted({x for each in known for x in each})
    return [[int(x), *("" if (y := each.get(x)) is None else float(f"{y:.6g}") for each in known)] for x in steps]


def legend(names: Sequence[str], x: Length, y: Length) -> list[Part]:
    parts: list[Part] = []
    for index, name in enumerate(names):
        parts.append(Line([(x, y), (x + 24, y)], ink(index), 2.5, DASHES[index % COLOURS]))
        parts.append(Label(x + 32, y, name, SMALL, fill="soft"))
        x += 56 + 7 * len(name)
    return parts


def ink(index: int) -> str:
    return f"series-{index % COLOURS + 1}"


def plotted(series: Sequence[Series], place: Place, x_label: str, from_zero: bool = False) -> list[Part]:
    """Lines over one axis, with round numbers beside them."""
    x, y, wide, high = place
    drawn = [Series(each.name, *thinned(each)) for each in series]
    xs = [value for each in drawn for value in each.x]
    ys = [value for each in drawn for value in each.y if value is not None]
    if not ys:
        return [Label(x, y + high / 2, "nothing to show yet", SMALL, fill="soft")]
    across = Axis(min(xs), max(xs), x, x + wide) if max(xs) > min(xs) else axis_of(xs, x, x + wide)
    up = axis_of(ys, y + high, y, from_zero)
    parts: list[Part] = []
    for value in up.ticks():
        parts.append(Line([(x, up.at(value)), (x + wide, up.at(value))]))
        parts.append(Label(x - 8, up.at(value), number(value, up.high), SMALL, "end", fill="soft"))
    for value in across.ticks():
        parts.append(Label(across.at(value), y + high + 15, number(value, across.high), SMALL, "middle", fill="soft"))
    parts.append(Label(x + wide, y + high + 33, x_label, SMALL, "end", fill="soft"))
    for index, each in enumerate(drawn):
        parts += [Line(run, ink(index), 1.8, DASHES[index % COLOURS]) for run in runs(each, across, up)]
    return parts


def runs(series: Series, across: Axis, up: Axis) -> list[list[tuple[Length, Length]]]:
    """The stretches of a line between its gaps; one point is a dot."""
    found: list[list[tuple[Length, Length]]] = [[]]
    for x, y in zip(series.x, series.y, strict=True):
        if y is None:
            found.append([])
        else:
            found[-1].append((across.at(x), up.at(y)))
    return [run if len(run) > 1 else [run[0], (run[0][0] + 0.1, run[0][1])] for run in found if run]
