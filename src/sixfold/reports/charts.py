"""Plots as SVG inside a page: lines, grouped bars, histograms and intervals, with axes that tick at round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sixfold.reports.page import Markup, element, joined

WIDTH, HEIGHT = 440, 250
LEFT, RIGHT, TOP, BOTTOM = 46, 20, 10, 34  # what axes and their labels take
MOST_POINTS = 400  # of one line; more are averaged, as no screen shows them
HITS = 60  # places of a line that say their value under the pointer
COLOURS = 6
WIDE = "mwMW@%—"
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "10 4")


@dataclass(frozen=True)
class Series:
    """A named line: y over x. None and what is not finite leave a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]


@dataclass(frozen=True)
class Interval:
    """An estimate and the range that it may be off by."""

    name: str
    low: float
    value: float
    high: float


@dataclass(frozen=True)
class Axis:
    """Maps values to places on the page, and knows the round numbers among them."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start), 1)

    def ticks(self, most: int = 5) -> list[float]:
        return ticks(self.low, self.high, most)


def axis_of(values: Sequence[float], start: float, end: float, from_zero: bool = False) -> Axis:
    """An axis that holds all values and ends at round numbers."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= 1e-9 * max(abs(high), abs(low), 1e-9):
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
        low = 0.0 if from_zero and low < 0 <= min(values, default=0.0) else low
    step = round_step(low, high, 5)
    return Axis(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, start, end)


def round_step(low: float, high: float, most: int) -> float:
    """1, 2 or 5 times a power of ten: the least that needs no more than `most` steps."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    return power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    step = round_step(low, high, most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def number(value: float, largest: float = 0.0) -> str:
    """As short as can be: 0.05, 1,200, 3M. On an axis, in the unit of its largest number."""
    if value and max(abs(value), largest) < 1e-2:
        return f"{value:.1e}".replace(".0e", "e").replace("e-0", "e-")
    for size, unit, least in ((1e9, "G", 1e9), (1e6, "M", 1e6), (1e3, "k", 1e4)):
        if value and max(abs(value), largest) >= least:
            return f"{value / size:.4g}{unit}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def colour(index: int) -> str:
    return f"var(--series-{index % COLOURS + 1})"


def lines(title: str, series: Sequence[Series], x_label: str = "", from_zero: bool = False) -> Markup:
    """Several lines over one axis; each has a colour and a dash of its own."""
    drawn = [Series(each.name, *thinned(each)) for each in series]
    xs = [x for each in drawn for x in each.x]
    ys = [y for each in drawn for y in each.y if y is not None]
    if not ys:
        return figure(title, element("p", "nothing to show yet", class_="note"))
    across = axis_of(xs, LEFT, WIDTH - RIGHT)
    across = Axis(min(xs), max(xs), LEFT, WIDTH - RIGHT) if max(xs) > min(xs) else across
    up = axis_of(ys, HEIGHT - BOTTOM, TOP, from_zero)
    marks = [element("g", path(each, across, up, index), *hits(each, across, up)) for index, each in enumerate(drawn)]
    names = [each.name for each in series] if len(series) > 1 else []
    return figure(title, chart(HEIGHT, *grid_y(up), *labels_x(across, x_label), *marks), legend(names, dashed=True))


def thinned(series: Series) -> tuple[list[float], list[float | None]]:
    """At most MOST_POINTS of a line: means of equal stretches."""
    stretch = -(-len(series.x) // MOST_POINTS) or 1
    xs: list[float] = []
    ys: list[float | None] = []
    for start in range(0, len(series.x), stretch):
        known = [y for y in series.y[start : start + stretch] if y is not None and math.isfinite(y)]
        xs.append(series.x[min(start + stretch, len(series.x)) - 1])
        ys.append(math.fsum(known) / len(known) if known else None)
    return xs, ys


def path(series: Series, across: Axis, up: Axis, index: int) -> Markup:
    pen, words = "M", []
    for x, y in zip(series.x, series.y, strict=True):
        if y is not None:
            words.append(f"{pen}{across.at(x):g} {up.at(y):g}")
        pen = "M" if y is None else "L"
    if len(words) == 1:
        words.append("h0.1")  # a line of one point is a dot, thanks to its round end
    d = "".join(words)
    return element("path", d=d, class_="mark", stroke=colour(index), stroke_dasharray=DASHES[index % COLOURS] or "none")


def hits(series: Series, across: Axis, up: Axis) -> list[Markup]:
    """Places that tell their values under the pointer."""
    known = [(x, y) for x, y in zip(series.x, series.y, strict=True) if y is not None]
    return [
        element(
            "circle", element("title", f"{series.name}: {number(y)} at {number(x)}"),
            cx=across.at(x), cy=up.at(y), r=5, class_="hit",
        )
        for x, y in known[:: -(-len(known) // HITS) or 1]
    ]  # fmt: skip


def bars(title: str, groups: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]]) -> Markup:
    """Bars from left to right: one block for each group, one bar in it for each series. None: no bar."""
    known = [value for _, values in series for value in values if value is not None]
    if not known:
        return figure(title, element("p", "nothing to show", class_="note"))
    thick = 16 if len(series) == 1 else 12
    block = thick * len(series) + 10
    left = min(200, 14 + max(width_of(group) for group in groups))
    height = TOP + block * len(groups) + 24
    across = axis_of(known, left, WIDTH - 44, from_zero=True)
    marks = []
    for row, group in enumerate(groups):
        top = TOP + row * block
        marks.append(label(left - 8, top + (block - 10) / 2, clipped(group, left - 13)))
        for index, (name, values) in enumerate(series):
            if (value := values[row]) is not None:
                tip = f"{group}, {name}: {number(value)}" if name else f"{group}: {number(value)}"
                marks.append(bar(across, top + index * thick, thick - 2, value, colour(index), tip))
    names = [name for name, _ in series] if len(series) > 1 else []
    return figure(title, chart(height, *grid_x(across, height - 24), *marks), legend(names))


def bar(across: Axis, top: float, thick: float, value: float, fill: str, tip: str) -> Markup:
    zero, end = across.at(0), across.at(value)
    rect = element(
        "rect", element("title", tip), x=min(zero, end), y=top, width=max(abs(end - zero), 0.8), height=thick,
        fill=fill, rx=1.5,
    )  # fmt: skip
    text = element("text", number(round(value, 1)), x=max(zero, end) + 4, y=top + thick / 2 + 4, class_="value")
    return joined(rect, text)


def histogram(title: str, edges: Sequence[float], counts: Sequence[int], x_label: str = "") -> Markup:
    """Upright bars between edges; there is one edge more than counts."""
    assert len(edges) == len(counts) + 1 >= 2
    across = Axis(edges[0], edges[-1], LEFT, WIDTH - RIGHT)
    up = axis_of([0, *counts], HEIGHT - BOTTOM, TOP, from_zero=True)
    marks = [
        element(
            "rect", element("title", f"{number(low)} to {number(high)}: {count:,}"), x=across.at(low) + 0.5,
            y=up.at(count), width=max(across.at(high) - across.at(low) - 1, 0.5), fill=colour(0),
            height=round(up.at(0) - up.at(count), 1),
        )
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]  # fmt: skip
    return figure(title, chart(HEIGHT, *grid_y(up), *labels_x(across, x_label), *marks))


def intervals(title: str, rows: Sequence[Interval]) -> Markup:
    """A dot for each estimate and a line over the range it may be off by."""
    left = min(200, 14 + max(width_of(row.name) for row in rows))
    height = TOP + 30 * len(rows) + 24
    across = axis_of([value for row in rows for value in (row.low, row.high)], left + 6, WIDTH - 52)
    marks = []
    for index, row in enumerate(rows):
        y = TOP + 30 * index + 15
        tip = f"{row.name}: {row.value:.2f}, 95% interval {row.low:.2f} to {row.high:.2f}"
        ends = {"x1": across.at(row.low), "x2": across.at(row.high), "y1": y, "y2": y}
        marks += [
            label(left - 8, y, clipped(row.name, left - 13)),
            element("line", **ends, stroke=colour(index), stroke_width=3, stroke_opacity=0.45, stroke_linecap="round"),
            element("circle", element("title", tip), cx=across.at(row.value), cy=y, r=5, fill=colour(index)),
            element("text", f"{row.value:.1f}", x=across.at(row.high) + 8, y=y + 4, class_="value"),
        ]
    return figure(title, chart(height, *grid_x(across, height - 24), *marks))


def figure(title: str, *parts: object) -> Markup:
    return element("figure", element("figcaption", title), *parts)


def chart(height: float, *parts: object) -> Markup:
    return element("svg", *parts, viewBox=f"0 0 {WIDTH} {height:g}", class_="chart", role="img")


def legend(names: Sequence[str], dashed: bool = False) -> Markup:
    if not names:
        return Markup("")
    entries = []
    for index, name in enumerate(names):
        dash = DASHES[index % COLOURS] if dashed else ""
        width = 2.5 if dashed else 10
        line = element(
            "line", x1=2, x2=24, y1=5, y2=5, stroke=colour(index), stroke_width=width, stroke_dasharray=dash or "none"
        )
        entries.append(element("li", element("svg", line, viewBox="0 0 26 10"), name))
    return element("ul", *entries, class_="legend")


def grid_y(up: Axis) -> list[Markup]:
    parts = []
    for value in up.ticks():
        y = up.at(value)
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="rule"))
        parts.append(label(LEFT - 6, y, number(value, up.high)))
    return parts


def grid_x(across: Axis, bottom: float) -> list[Markup]:
    parts = []
    for value in across.ticks():
        x = across.at(value)
        parts.append(element("line", x1=x, x2=x, y1=TOP - 4, y2=bottom, class_="rule"))
        parts.append(element("text", number(value, across.high), x=x, y=bottom + 16, text_anchor="middle"))
    return parts


def labels_x(across: Axis, name: str) -> list[Markup]:
    """Ticks under the plot and, at its right, what they count."""
    bottom = HEIGHT - BOTTOM
    parts = [element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=bottom, y2=bottom, class_="axis")]
    for value in across.ticks():
        text = number(value, across.high)
        parts.append(element("text", text, x=across.at(value), y=bottom + 15, text_anchor="middle"))
    return [*parts, element("text", name, x=WIDTH - RIGHT, y=bottom + 30, text_anchor="end")]


def label(x: float, y: float, text: str) -> Markup:
    return element("text", text, x=x, y=y + 4, text_anchor="end")


def width_of(text: str) -> float:
    """About what a text takes at the size of labels; characters of East Asia are twice as wide."""
    return sum(12.2 if ord(char) >= 0x2E80 or char in WIDE else 7.2 for char in text)


def clipped(text: str, room: float) -> str:
    if width_of(text) <= room:
        return text
    while text and width_of(text) + 8 > room:
        text = text[:-1]
    return f"{text}…"
