"""A picture as a list of boxes, lines, curves, words and coloured grids, and that list as SVG or in a page."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sixfold.reports.page import Markup, element

Array = np.ndarray
Length = int | float  # tests check types as they run, and take no 1 for a float

# What a colour is for, as the style of pages calls it; any other colour is written as #rrggbb.
INKS = {
    "paper": "#ffffff", "card": "#f6f7fa", "ink": "#1c2024", "soft": "#5d666e", "line": "#dfe2e8", "accent": "#2d3f9e",
    "series-1": "#2d3f9e", "series-2": "#c8553d", "series-3": "#2a9d8f", "series-4": "#b97d12", "series-5": "#7d8791",
    "series-6": "#8e3b7c",
}  # fmt: skip
FONTS = 'system-ui,-apple-system,"Segoe UI","Noto Sans","Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif'
MONO = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Noto Sans Mono CJK SC",monospace'
# Widths of characters that differ from most, in the size of the font.
NARROW = dict.fromkeys("iljI.,:;'|!·()[] ", 0.3) | dict.fromkeys('tfr-"“”', 0.38) | dict.fromkeys("mwMW@%—→…", 0.92)
CELLS = 1024  # of a grid that say their numbers under the pointer
# Grids are pictures for white paper; on black, light and dark change places and the hue stays.
DARK = "@media (prefers-color-scheme:dark){.grid-image{filter:invert(1) hue-rotate(180deg)}}"


@dataclass(frozen=True)
class Box:
    """A rectangle; `title` is said under the pointer."""

    x: Length
    y: Length
    w: Length
    h: Length
    fill: str = "line"
    title: str = ""
    edge: str = ""
    round: Length = 0.0


@dataclass(frozen=True)
class Line:
    """From point to point, straight, through as many as there are."""

    points: Sequence[tuple[Length, Length]]
    stroke: str = "line"
    width: Length = 1.0
    dash: str = ""


@dataclass(frozen=True)
class Curve:
    """A cubic from the first point to the last, drawn towards the two between them."""

    points: tuple[tuple[Length, Length], tuple[Length, Length], tuple[Length, Length], tuple[Length, Length]]
    stroke: str = "accent"
    width: Length = 1.0
    opacity: Length = 1.0
    title: str = ""


@dataclass(frozen=True)
class Label:
    """Words on a line; `y` is the middle of their height, `turn` in degrees, against the clock."""

    x: Length
    y: Length
    text: str
    size: Length = 12.0
    anchor: str = "start"  # or middle, or end
    turn: Length = 0.0
    weight: int = 400
    fill: str = "ink"
    mono: bool = False


@dataclass(frozen=True)
class Grid:
    """A matrix of colours, rows × columns × 3; `titles` has a row for each of its rows."""

    x: Length
    y: Length
    w: Length
    h: Length
    colours: Array
    titles: Sequence[Sequence[str]] = ()


Part = Box | Line | Curve | Label | Grid


@dataclass(frozen=True)
class Scene:
    """What is to be seen, in the order in which it is drawn, and how it is told to those who cannot see it.

    A page has a heading of its own, and shows of the scene what lies under `heading_end`.
    """

    width: Length
    height: Length
    parts: Sequence[Part]
    title: str
    description: str = ""
    heading: Sequence[Part] = ()
    heading_end: Length = 0.0


def text_width(text: str, size: Length) -> Length:
    """About; fonts differ, so rather too much than too little."""
    return size * sum(
        1.02 if ord(each) >= 0x2E80 else NARROW.get(each, 0.72 if each.isupper() else 0.56) for each in text
    )


def clipped(text: str, size: Length, room: Length) -> str:
    """As much of a text as there is room for."""
    if text_width(text, size) <= room:
        return text
    while text and text_width(text, size) + 0.9 * size > room:
        text = text[:-1]
    return f"{text}…"


def svg(scene: Scene, themed: bool = False) -> str:
    """A file of its own, or, `themed`, a part of a page that gives the colours."""
    top = scene.heading_end if themed else 0
    view = f"0 {_n(top)} {_n(scene.width)} {_n(scene.height - top)}"
    ground = [] if themed else [element("rect", width="100%", height="100%", fill=INKS["paper"])]
    body = [mark for part in (*([] if themed else scene.heading), *scene.parts) for mark in _marks(part, themed)]
    size = {"width": _n(scene.width), "height": _n(scene.height)}
    alone = {} if themed else {"xmlns": "http://www.w3.org/2000/svg", **size}  # HTML knows what an SVG is
    return element(
        "svg", element("title", scene.title), element("desc", scene.description),
        *([element("style", Markup(DARK))] if themed else []), *ground, *body,
        viewBox=view, role="img", font_family=FONTS, **alone,
        style=f"max-width:{scene.width:g}px;width:100%;height:auto" if themed else "background:#fff",
    )  # fmt: skip


def _marks(part: Part, themed: bool) -> Iterator[Markup]:
    if isinstance(part, Box):
        edge = {"stroke": _ink(part.edge, themed)} if part.edge else {}
        place = {"x": _n(part.x), "y": _n(part.y), "width": _n(part.w), "height": _n(part.h)}
        yield element(
            "rect", *_title(part.title), **place, rx=_n(part.round), fill=_ink(part.fill, themed), **edge
        )  # fmt: skip
    elif isinstance(part, Line):
        points = " ".join(f"{_n(x)},{_n(y)}" for x, y in part.points)
        dash = {"stroke_dasharray": part.dash} if part.dash else {}
        yield element(
            "polyline", points=points, fill="none", stroke=_ink(part.stroke, themed), stroke_width=_n(part.width),
            stroke_linejoin="round", stroke_linecap="round", **dash,
        )  # fmt: skip
    elif isinstance(part, Curve):
        start, *others = (f"{_n(x)} {_n(y)}" for x, y in part.points)
        yield element(
            "path", *_title(part.title), d=f"M{start}C{' '.join(others)}", fill="none", stroke_linecap="round",
            stroke=_ink(part.stroke, themed), stroke_width=_n(part.width), stroke_opacity=_n(part.opacity),
        )  # fmt: skip
    elif isinstance(part, Label):
        turn = {"transform": f"rotate({_n(-part.turn)} {_n(part.x)} {_n(part.y)})"} if part.turn else {}
        mono = {"font_family": MONO} if part.mono else {}
        # Not `dominant-baseline`, of which every program has its own idea.
        yield element(
            "text", part.text, x=_n(part.x), y=_n(part.y), dy=_n(part.size * 0.35), font_size=_n(part.size),
            text_anchor=part.anchor, font_weight=part.weight, fill=_ink(part.fill, themed), style="white-space:pre",
            **turn, **mono,
        )  # fmt: skip
    else:
        yield from _grid(part)


def _grid(grid: Grid) -> Iterator[Markup]:
    place = {"x": _n(grid.x), "y": _n(grid.y), "width": _n(grid.w), "height": _n(grid.h)}
    data = base64.b64encode(encode_png(grid.colours)).decode()
    yield element(
        "image", **place, preserveAspectRatio="none", href=f"data:image/png;base64,{data}",
        style="image-rendering:pixelated", class_="grid-image",
    )  # fmt: skip
    rows, columns, _ = grid.colours.shape
    if grid.titles and rows * columns <= CELLS:
        wide, high = grid.w / columns, grid.h / rows
        for row, titles in enumerate(grid.titles):
            for column, title in enumerate(titles):
                yield element(
                    "rect", element("title", title), x=_n(grid.x + column * wide), y=_n(grid.y + row * high),
                    width=_n(wide), height=_n(high), fill="transparent",
                )  # fmt: skip


def encode_png(colours: Array) -> bytes:
    """A picture with a pixel for each colour."""
    high, wide, _ = colours.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(colours, np.uint8))
    header = struct.pack(">2I5B", wide, high, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    packed = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def _title(text: str) -> list[Markup]:
    return [element("title", text)] if text else []


def _ink(name: str, themed: bool) -> str:
    if name not in INKS:
        return name
    return f"var(--{name})" if themed else INKS[name]


def _n(number: Length) -> str:
    assert math.isfinite(number)
    return f"{round(number, 2):g}"
