"""Line charts as parts of a scene: the curves of training runs, and any other lines over an axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sixfold.errors import RequestError
from sixfold.explorer.drawing import Label, Length, Line, Part
from sixfold.explorer.views_layout import (
    MARGIN,
    SMALL,
    TEXT,
    Table,
    View,
    content_top,
    scene_with_heading,
)
from sixfold.reports.charts import COLOURS, DASHES, Axis, Series, axis_of, thin_out
from sixfold.reports.formatting import format_number

Bounds = tuple[Length, Length, Length, Length]  # x, y, width, height
PANELS_PER_ROW = 2
PANEL_WIDTH, PANEL_HEIGHT = 400.0, 200.0


def curves(title: str, plots: Mapping[str, Sequence[Series]], from_zero: Sequence[str] = ()) -> View:
    """Draw a panel for each plot; `from_zero` names the plots whose vertical axis begins at zero."""
    if not plots:
        raise RequestError("training: expected a run that has logged a step; this one has none yet", "try again later")
    top = content_top(None) + 26
    parts: list[Part] = []
    for index, (name, series) in enumerate(plots.items()):
        x = MARGIN + index % PANELS_PER_ROW * (PANEL_WIDTH + 48)
        y = top + index // PANELS_PER_ROW * (PANEL_HEIGHT + 84)
        parts.append(Label(x, y - 18, name, TEXT, weight=600))
        parts += line_chart(series, (x + 44, y, PANEL_WIDTH - 44, PANEL_HEIGHT), "step", name in from_zero)
    names = [line.name for line in next(iter(plots.values()))]
    right = MARGIN + min(PANELS_PER_ROW, len(plots)) * (PANEL_WIDTH + 48) - 48
    has_legend = len(names) > 1
    if has_legend:
        parts += legend(names, MARGIN, content_top(None) - 14)
    bottom = top + -(-len(plots) // PANELS_PER_ROW) * (PANEL_HEIGHT + 84) - 34
    all_series = [line for series in plots.values() for line in series]
    columns = [f"{plot}, {line.name}" if has_legend else plot for plot, series in plots.items() for line in series]
    scene = scene_with_heading(None, title, parts, (right, bottom))
    return View(scene, [Table(title, ["step", *columns], rows_by_step(all_series))])


def rows_by_step(series: Sequence[Series]) -> list[list[str | int | Length]]:
    """Return a row for each step that any series has: the step, and the value of each series or an empty text."""
    values = [dict(zip(line.x, line.y, strict=True)) for line in series]
    steps = sorted({x for line in values for x in line})
    return [[int(x), *("" if (y := line.get(x)) is None else float(f"{y:.6g}") for line in values)] for x in steps]


def legend(names: Sequence[str], x: Length, y: Length) -> list[Part]:
    """Draw a short line in the style of each series, followed by its name."""
    parts: list[Part] = []
    for index, name in enumerate(names):
        parts.append(Line([(x, y), (x + 24, y)], series_colour(index), 2.5, DASHES[index % COLOURS]))
        parts.append(Label(x + 32, y, name, SMALL, fill="soft"))
        x += 56 + 7 * len(name)
    return parts


def series_colour(index: int) -> str:
    return f"series-{index % COLOURS + 1}"


def line_chart(series: Sequence[Series], bounds: Bounds, x_label: str, from_zero: bool = False) -> list[Part]:
    """Draw several series over common axes with round numbers."""
    x, y, width, height = bounds
    drawn = [Series(line.name, *thin_out(line)) for line in series]
    xs = [value for line in drawn for value in line.x]
    ys = [value for line in drawn for value in line.y if value is not None]
    if not ys:
        return [Label(x, y + height / 2, "nothing to show yet", SMALL, fill="soft")]
    x_axis = Axis(min(xs), max(xs), x, x + width) if max(xs) > min(xs) else axis_of(xs, x, x + width)
    y_axis = axis_of(ys, y + height, y, from_zero)
    parts: list[Part] = []
    for value in y_axis.ticks():
        tick = y_axis.at(value)
        parts.append(Line([(x, tick), (x + width, tick)]))
        parts.append(Label(x - 8, tick, format_number(value, y_axis.high), SMALL, "end", fill="soft"))
    for value in x_axis.ticks():
        text = format_number(value, x_axis.high)
        parts.append(Label(x_axis.at(value), y + height + 15, text, SMALL, "middle", fill="soft"))
    parts.append(Label(x + width, y + height + 33, x_label, SMALL, "end", fill="soft"))
    for index, line in enumerate(drawn):
        dash = DASHES[index % COLOURS]
        parts += [Line(points, series_colour(index), 1.8, dash) for points in segments(line, x_axis, y_axis)]
    return parts


def segments(series: Series, x_axis: Axis, y_axis: Axis) -> list[list[tuple[Length, Length]]]:
    """Return the segments of a line between its gaps, as points; a segment of one point becomes a dot."""
    points: list[list[tuple[Length, Length]]] = [[]]
    for x, y in zip(series.x, series.y, strict=True):
        if y is None:
            points.append([])
        else:
            points[-1].append((x_axis.at(x), y_axis.at(y)))
    return [
        segment if len(segment) > 1 else [segment[0], (segment[0][0] + 0.1, segment[0][1])]
        for segment in points
        if segment
    ]
