"""Charts as SVG inside a page: lines, grouped bars, histograms and intervals, with ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sixfold.reports.formatting import format_number
from sixfold.reports.page import Markup, concatenate, element

WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 20, 10, 34  # margins for axes and their labels
MAX_POINTS = 400  # of one line; more are averaged
MAX_TOOLTIPS = 60  # points of a line that show their value under the pointer
COLOURS = 6
WIDE_CHARACTERS = "mwMW@%—"
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "10 4")


@dataclass(frozen=True)
class Series:
    """A named line: y over x. None and numbers that are not finite leave a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval."""

    name: str
    low: float
    value: float
    high: float


@dataclass(frozen=True)
class Axis:
    """A linear map from values (`low` to `high`) to coordinates (`start` to `end`)."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the coordinate of a value."""
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start), 1)

    def ticks(self, max_steps: int = 5) -> list[float]:
        """Return the round numbers on the axis."""
        return ticks(self.low, self.high, max_steps)


def axis_of(values: Sequence[float], start: float, end: float, from_zero: bool = False) -> Axis:
    """Return an axis that contains all values and ends at round numbers."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-9 * max(abs(high), abs(low), 1e-9):
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
        low = 0.0 if from_zero and low < 0 <= min(values, default=0.0) else low
    step = round_step(low, high, 5)
    return Axis(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, start, end)


def round_step(low: float, high: float, max_steps: int) -> float:
    """Return 1, 2 or 5 times a power of ten: the least that needs no more than `max_steps` steps."""
    rough = (high - low) / max_steps
    power = 10.0 ** math.floor(math.log10(rough))
    return power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))


def ticks(low: float, high: float, max_steps: int = 5) -> list[float]:
    """Return the multiples of a round step from `low` to `high`."""
    step = round_step(low, high, max_steps)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def colour(index: int) -> str:
    return f"var(--series-{index % COLOURS + 1})"


def lines(title: str, series: Sequence[Series], x_label: str = "", from_zero: bool = False) -> Markup:
    """Draw several lines over common axes; each has its own colour and dash."""
    drawn = [Series(line.name, *thin_out(line)) for line in series]
    xs = [x for line in drawn for x in line.x]
    ys = [y for line in drawn for y in line.y if y is not None]
    if not ys:
        return figure(title, element("p", "nothing to show yet", class_="note"))
    x_axis = axis_of(xs, LEFT, WIDTH - RIGHT)
    x_axis = Axis(min(xs), max(xs), LEFT, WIDTH - RIGHT) if max(xs) > min(xs) else x_axis
    y_axis = axis_of(ys, HEIGHT - BOTTOM, TOP, from_zero)
    marks = [
        element("g", path(line, x_axis, y_axis, index), *tooltips(line, x_axis, y_axis))
        for index, line in enumerate(drawn)
    ]
    names = [line.name for line in series] if len(series) > 1 else []
    return figure(title, chart(HEIGHT, *grid_y(y_axis), *labels_x(x_axis, x_label), *marks), legend(names, dashed=True))


def thin_out(series: Series) -> tuple[list[float], list[float | None]]:
    """Return x and y of at most MAX_POINTS points: means of equally long parts of the line, each at its last x."""
    size = -(-len(series.x) // MAX_POINTS) or 1
    xs: list[float] = []
    ys: list[float | None] = []
    for start in range(0, len(series.x), size):
        values = [y for y in series.y[start : start + size] if y is not None and math.isfinite(y)]
        xs.append(series.x[min(start + size, len(series.x)) - 1])
        ys.append(math.fsum(values) / len(values) if values else None)
    return xs, ys


def path(series: Series, x_axis: Axis, y_axis: Axis, index: int) -> Markup:
    """Return the line as an SVG path; M moves the pen over a gap, L draws."""
    command, commands = "M", []
    for x, y in zip(series.x, series.y, strict=True):
        if y is not None:
            commands.append(f"{command}{x_axis.at(x):g} {y_axis.at(y):g}")
        command = "M" if y is None else "L"
    if len(commands) == 1:
        commands.append("h0.1")  # a line of one point becomes a dot because of its round end
    d = "".join(commands)
    return element("path", d=d, class_="mark", stroke=colour(index), stroke_dasharray=DASHES[index % COLOURS] or "none")


def tooltips(series: Series, x_axis: Axis, y_axis: Axis) -> list[Markup]:
    """Return invisible circles on the line that show its values under the pointer."""
    points = [(x, y) for x, y in zip(series.x, series.y, strict=True) if y is not None]
    return [
        element(
            "circle", element("title", f"{series.name}: {format_number(y)} at {format_number(x)}"),
            cx=x_axis.at(x), cy=y_axis.at(y), r=5, class_="hit",
        )
        for x, y in points[:: -(-len(points) // MAX_TOOLTIPS) or 1]
    ]  # fmt: skip


def bars(title: str, groups: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]]) -> Markup:
    """Draw horizontal bars: one block for each group, and in it one bar for each series. None: no bar."""
    known_values = [value for _, values in series for value in values if value is not None]
    if not known_values:
        return figure(title, element("p", "nothing to show", class_="note"))
    thickness = 16 if len(series) == 1 else 12
    block = thickness * len(series) + 10
    left = min(200, 14 + max(width_of(group) for group in groups))
    height = TOP + block * len(groups) + 24
    x_axis = axis_of(known_values, left, WIDTH - 44, from_zero=True)
    marks = []
    for row, group in enumerate(groups):
        top = TOP + row * block
        marks.append(label(left - 8, top + (block - 10) / 2, clip_text(group, left - 13)))
        for index, (name, values) in enumerate(series):
            if (value := values[row]) is not None:
                tip = f"{group}, {name}: {format_number(value)}" if name else f"{group}: {format_number(value)}"
                marks.append(bar(x_axis, top + index * thickness, thickness - 2, value, colour(index), tip))
    names = [name for name, _ in series] if len(series) > 1 else []
    return figure(title, chart(height, *grid_x(x_axis, height - 24), *marks), legend(names))


def bar(x_axis: Axis, top: float, thickness: float, value: float, fill: str, tip: str) -> Markup:
    """Return a bar from zero to the value, with its number at the right end; `tip` is shown under the pointer."""
    zero, end = x_axis.at(0), x_axis.at(value)
    rect = element(
        "rect", element("title", tip), x=min(zero, end), y=top, width=max(abs(end - zero), 0.8), height=thickness,
        fill=fill, rx=1.5,
    )  # fmt: skip
    text = element(
        "text", format_number(round(value, 1)), x=max(zero, end) + 4, y=top + thickness / 2 + 4, class_="value"
    )
    return concatenate(rect, text)


def histogram(title: str, edges: Sequence[float], counts: Sequence[int], x_label: str = "") -> Markup:
    """Draw vertical bars between edges; there is one edge more than counts."""
    assert len(edges) == len(counts) + 1 >= 2
    x_axis = Axis(edges[0], edges[-1], LEFT, WIDTH - RIGHT)
    y_axis = axis_of([0, *counts], HEIGHT - BOTTOM, TOP, from_zero=True)
    marks = [
        element(
            "rect", element("title", f"{format_number(low)} to {format_number(high)}: {count:,}"),
            x=x_axis.at(low) + 0.5, y=y_axis.at(count), width=max(x_axis.at(high) - x_axis.at(low) - 1, 0.5),
            fill=colour(0), height=round(y_axis.at(0) - y_axis.at(count), 1),
        )
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]  # fmt: skip
    return figure(title, chart(HEIGHT, *grid_y(y_axis), *labels_x(x_axis, x_label), *marks))


def intervals(title: str, rows: Sequence[Interval]) -> Markup:
    """Draw a dot for each estimate and a line over its confidence interval."""
    left = min(200, 14 + max(width_of(row.name) for row in rows))
    height = TOP + 30 * len(rows) + 24
    x_axis = axis_of([value for row in rows for value in (row.low, row.high)], left + 6, WIDTH - 52)
    marks = []
    for index, row in enumerate(rows):
        y = TOP + 30 * index + 15
        tip = f"{row.name}: {row.value:.2f}, 95% interval {row.low:.2f} to {row.high:.2f}"
        ends = {"x1": x_axis.at(row.low), "x2": x_axis.at(row.high), "y1": y, "y2": y}
        marks += [
            label(left - 8, y, clip_text(row.name, left - 13)),
            element("line", **ends, stroke=colour(index), stroke_width=3, stroke_opacity=0.45, stroke_linecap="round"),
            element("circle", element("title", tip), cx=x_axis.at(row.value), cy=y, r=5, fill=colour(index)),
            element("text", f"{row.value:.1f}", x=x_axis.at(row.high) + 8, y=y + 4, class_="value"),
        ]
    return figure(title, chart(height, *grid_x(x_axis, height - 24), *marks))


def figure(title: str, *parts: object) -> Markup:
    """Return parts with a caption."""
    return element("figure", element("figcaption", title), *parts)


def chart(height: float, *parts: object) -> Markup:
    """Return an SVG element of this height and the usual width."""
    return element("svg", *parts, viewBox=f"0 0 {WIDTH} {height:g}", class_="chart", role="img")


def legend(names: Sequence[str], dashed: bool = False) -> Markup:
    """Return the names of series, each beside a sample of its colour; `dashed` for lines."""
    if not names:
        return Markup("")
    items = []
    for index, name in enumerate(names):
        dash = DASHES[index % COLOURS] if dashed else ""
        width = 2.5 if dashed else 10
        line = element(
            "line", x1=2, x2=24, y1=5, y2=5, stroke=colour(index), stroke_width=width, stroke_dasharray=dash or "none"
        )
        items.append(element("li", element("svg", line, viewBox="0 0 26 10"), name))
    return element("ul", *items, class_="legend")


def grid_y(y_axis: Axis) -> list[Markup]:
    """Return horizontal lines at the ticks, with their numbers at the left."""
    parts = []
    for value in y_axis.ticks():
        y = y_axis.at(value)
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="rule"))
        parts.append(label(LEFT - 6, y, format_number(value, y_axis.high)))
    return parts


def grid_x(x_axis: Axis, bottom: float) -> list[Markup]:
    """Return vertical lines at the ticks, with their numbers below."""
    parts = []
    for value in x_axis.ticks():
        x = x_axis.at(value)
        parts.append(element("line", x1=x, x2=x, y1=TOP - 4, y2=bottom, class_="rule"))
        parts.append(element("text", format_number(value, x_axis.high), x=x, y=bottom + 16, text_anchor="middle"))
    return parts


def labels_x(x_axis: Axis, name: str) -> list[Markup]:
    """Return the horizontal axis: the numbers of its ticks and, at the right, its name."""
    bottom = HEIGHT - BOTTOM
    parts = [element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=bottom, y2=bottom, class_="axis")]
    for value in x_axis.ticks():
        text = format_number(value, x_axis.high)
        parts.append(element("text", text, x=x_axis.at(value), y=bottom + 15, text_anchor="middle"))
    return [*parts, element("text", name, x=WIDTH - RIGHT, y=bottom + 30, text_anchor="end")]


def label(x: float, y: float, text: str) -> Markup:
    """Return a text that ends at x."""
    return element("text", text, x=x, y=y + 4, text_anchor="end")


def width_of(text: str) -> float:
    """Return an estimate of the width of a label; East Asian characters are about twice as wide as others."""
    return sum(12.2 if ord(char) >= 0x2E80 or char in WIDE_CHARACTERS else 7.2 for char in text)


def clip_text(text: str, width: float) -> str:
    """Return as much of a text as fits into `width`, with an ellipsis where it is cut."""
    if width_of(text) <= width:
        return text
    while text and width_of(text) + 8 > width:
        text = text[:-1]
    return f"{text}…"
