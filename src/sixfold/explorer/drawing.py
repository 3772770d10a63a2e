"""Pictures: shapes that form a scene, colour scales, and the scene as SVG or, by matplotlib, as PNG."""

from __future__ import annotations

import base64
import io
import math
import struct
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sixfold.errors import RequestError
from sixfold.reports.page import Markup, element
from sixfold.text.languages import DENSE, letters

Array = np.ndarray
Length = int | float  # tests check types at run time and do not accept 1 for a float

# Colours by role, as in the style sheet of pages; any other colour is written as #rrggbb.
ROLE_COLOURS = {
    "paper": "#ffffff", "card": "#f6f7fa", "ink": "#1c2024", "soft": "#5d666e", "line": "#dfe2e8", "accent": "#2d3f9e",
    "series-1": "#2d3f9e", "series-2": "#c8553d", "series-3": "#2a9d8f", "series-4": "#b97d12", "series-5": "#7d8791",
    "series-6": "#8e3b7c",
}  # fmt: skip
FONTS = 'system-ui,-apple-system,"Segoe UI","Noto Sans","Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif'
MONO = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Noto Sans Mono CJK SC",monospace'
# Widths of characters that differ from the usual 0.56, relative to the font size.
CHARACTER_WIDTHS = (
    dict.fromkeys("iljI.,:;'|!·()[] ", 0.3) | dict.fromkeys('tfr-"“”', 0.38) | dict.fromkeys("mwMW@%—→…", 0.92)
)
MAX_CELLS_WITH_TITLES = 1024  # a larger grid shows no numbers under the pointer
# The colours of grids are made for a white page; on a black page lightness is inverted and the hue stays.
DARK_STYLE = "@media (prefers-color-scheme:dark){.grid-image{filter:invert(1) hue-rotate(180deg)}}"


@dataclass(frozen=True)
class Box:
    """A rectangle; `title` is shown under the pointer."""

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
    """Straight line segments through all points."""

    points: Sequence[tuple[Length, Length]]
    stroke: str = "line"
    width: Length = 1.0
    dash: str = ""


@dataclass(frozen=True)
class Curve:
    """A cubic Bézier curve from the first point to the last; the two between are its control points."""

    points: tuple[tuple[Length, Length], tuple[Length, Length], tuple[Length, Length], tuple[Length, Length]]
    stroke: str = "accent"
    width: Length = 1.0
    opacity: Length = 1.0
    title: str = ""


@dataclass(frozen=True)
class Label:
    """A line of text; `y` is the middle of its height, `turn` a rotation in degrees, counterclockwise."""

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
    """A matrix of colours, rows × columns × 3; `titles` are the texts of its cells under the pointer."""

    x: Length
    y: Length
    w: Length
    h: Length
    colours: Array
    titles: Sequence[Sequence[str]] = ()


Part = Box | Line | Curve | Label | Grid


@dataclass(frozen=True)
class Scene:
    """A picture: its parts in the order of drawing, and a title and description for screen readers.

    A page has a heading of its own, so it shows only the part of the scene below `heading_end`.
    """

    width: Length
    height: Length
    parts: Sequence[Part]
    title: str
    description: str = ""
    heading: Sequence[Part] = ()
    heading_end: Length = 0.0


def text_width(text: str, size: Length) -> Length:
    """Return an estimate of the width of a text. Fonts differ, so it is rather too wide than too narrow."""
    return size * sum(
        1.02 if ord(char) >= 0x2E80 else CHARACTER_WIDTHS.get(char, 0.72 if char.isupper() else 0.56) for char in text
    )


def clip_text(text: str, size: Length, width: Length) -> str:
    """Return as much of a text as fits into `width`, with an ellipsis where it is cut."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text, size) + 0.9 * size > width:
        text = text[:-1]
    return f"{text}…"


def svg(scene: Scene, themed: bool = False) -> str:
    """Return a scene as an SVG file, or, with `themed`, as an element of a page whose style sheet sets the colours."""
    top = scene.heading_end if themed else 0
    view = f"0 {_n(top)} {_n(scene.width)} {_n(scene.height - top)}"
    background = [] if themed else [element("rect", width="100%", height="100%", fill=ROLE_COLOURS["paper"])]
    body = [mark for part in (*([] if themed else scene.heading), *scene.parts) for mark in _elements(part, themed)]
    size = {"width": _n(scene.width), "height": _n(scene.height)}
    file_attributes = {} if themed else {"xmlns": "http://www.w3.org/2000/svg", **size}  # HTML needs no namespace
    return element(
        "svg", element("title", scene.title), element("desc", scene.description),
        *([element("style", Markup(DARK_STYLE))] if themed else []), *background, *body,
        viewBox=view, role="img", font_family=FONTS, **file_attributes,
        style=f"max-width:{scene.width:g}px;width:100%;height:auto" if themed else "background:#fff",
    )  # fmt: skip


def _elements(part: Part, themed: bool) -> Iterator[Markup]:
    if isinstance(part, Box):
        edge = {"stroke": _colour(part.edge, themed)} if part.edge else {}
        bounds = {"x": _n(part.x), "y": _n(part.y), "width": _n(part.w), "height": _n(part.h)}
        yield element(
            "rect", *_title(part.title), **bounds, rx=_n(part.round), fill=_colour(part.fill, themed), **edge
        )  # fmt: skip
    elif isinstance(part, Line):
        points = " ".join(f"{_n(x)},{_n(y)}" for x, y in part.points)
        dash = {"stroke_dasharray": part.dash} if part.dash else {}
        yield element(
            "polyline", points=points, fill="none", stroke=_colour(part.stroke, themed), stroke_width=_n(part.width),
            stroke_linejoin="round", stroke_linecap="round", **dash,
        )  # fmt: skip
    elif isinstance(part, Curve):
        start, *others = (f"{_n(x)} {_n(y)}" for x, y in part.points)
        yield element(
            "path", *_title(part.title), d=f"M{start}C{' '.join(others)}", fill="none", stroke_linecap="round",
            stroke=_colour(part.stroke, themed), stroke_width=_n(part.width), stroke_opacity=_n(part.opacity),
        )  # fmt: skip
    elif isinstance(part, Label):
        turn = {"transform": f"rotate({_n(-part.turn)} {_n(part.x)} {_n(part.y)})"} if part.turn else {}
        mono = {"font_family": MONO} if part.mono else {}
        # Not `dominant-baseline`, which every program interprets in its own way.
        yield element(
            "text", part.text, x=_n(part.x), y=_n(part.y), dy=_n(part.size * 0.35), font_size=_n(part.size),
            text_anchor=part.anchor, font_weight=part.weight, fill=_colour(part.fill, themed), style="white-space:pre",
            **turn, **mono,
        )  # fmt: skip
    else:
        yield from _grid_elements(part)


def _grid_elements(grid: Grid) -> Iterator[Markup]:
    bounds = {"x": _n(grid.x), "y": _n(grid.y), "width": _n(grid.w), "height": _n(grid.h)}
    data = base64.b64encode(encode_png(grid.colours)).decode()
    yield element(
        "image", **bounds, preserveAspectRatio="none", href=f"data:image/png;base64,{data}",
        style="image-rendering:pixelated", class_="grid-image",
    )  # fmt: skip
    rows, columns, _ = grid.colours.shape
    if grid.titles and rows * columns <= MAX_CELLS_WITH_TITLES:
        cell_width, cell_height = grid.w / columns, grid.h / rows
        for row, titles in enumerate(grid.titles):
            for column, title in enumerate(titles):
                yield element(
                    "rect", element("title", title), x=_n(grid.x + column * cell_width),
                    y=_n(grid.y + row * cell_height), width=_n(cell_width), height=_n(cell_height), fill="transparent",
                )  # fmt: skip


def encode_png(colours: Array) -> bytes:
    """Return a PNG file with one pixel for each colour."""
    height, width, _ = colours.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(colours, np.uint8))
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    encoded = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(encoded)


def _title(text: str) -> list[Markup]:
    return [element("title", text)] if text else []


def _colour(name: str, themed: bool) -> str:
    """Return the colour of a role: a variable of the page's style sheet, or its value."""
    if name not in ROLE_COLOURS:
        return name
    return f"var(--{name})" if themed else ROLE_COLOURS[name]


def _n(number: Length) -> str:
    """Return a number as SVG takes it, with at most two decimals."""
    assert math.isfinite(number)
    return f"{round(number, 2):g}"


# --- Colour scales: one for weights, one for signed numbers; both can be read in grey and by the colour-blind ---------

# Positions and colours; all other colours are interpolated linearly in sRGB. The page draws with the same table.
# In "sequential" lightness only falls; in "diverging" it falls to both sides, and everyone can tell orange from blue.
COLOUR_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "sequential": (
        (0.0, "#f7f8fc"),
        (0.1, "#d6dff3"),
        (0.25, "#a6bbe6"),
        (0.5, "#6480cb"),
        (0.75, "#37489f"),
        (1.0, "#1a1a52"),
    ),
    "diverging": (
        (-1.0, "#173a7d"),
        (-0.5, "#5b8bd0"),
        (-0.15, "#c3d6ef"),
        (0.0, "#f8f7f4"),
        (0.15, "#f6d9b8"),
        (0.5, "#e18b3c"),
        (1.0, "#8a3d06"),
    ),
}


def colormap(values: Array | Length, scale: str = "sequential", largest: Length = 1) -> Array:
    """Return red, green and blue (0 to 255) of each number, on a new last axis.

    Numbers beyond `largest`, and infinite ones, have the colour of the end of the scale.
    """
    positions, colours = zip(*COLOUR_SCALES[scale], strict=True)
    scaled = np.asarray(values, np.float64) / largest
    finite = np.nan_to_num(scaled, nan=0.0, posinf=positions[-1], neginf=positions[0])
    anchors = np.array([from_hex(colour) for colour in colours])
    channels = [np.interp(finite, positions, anchors[:, channel]) for channel in range(3)]
    return np.rint(np.stack(channels, axis=-1)).astype(np.uint8)


def from_hex(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of "#rrggbb"."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return red, green, blue


def to_hex(colour: Array) -> str:
    """Return "#rrggbb" of red, green and blue."""
    return "#" + "".join(f"{int(channel):02x}" for channel in colour)


def lightness(colour: Array) -> Array:
    """Return the perceived lightness of colours, from 0 to 1: CIE L* of the relative luminance."""
    channels = np.asarray(colour) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    return np.where(luminance > 0.008856, 1.16 * np.cbrt(luminance) - 0.16, 9.033 * luminance)


SCALE = 2  # pixels of the file for each unit of the scene, in both directions
POINTS = 0.72  # typographic points for each unit of the scene, at 100 units to the inch
# Fonts with Chinese characters; the first that is installed is used.
CHINESE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "PingFang SC", "Hiragino Sans GB",
    "Heiti SC", "STHeiti", "Microsoft YaHei", "SimHei", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Noto Sans CJK JP",
    "Droid Sans Fallback", "Arial Unicode MS", "Noto Serif CJK SC", "SimSun", "Songti SC",
)  # fmt: skip
LATIN_FONTS = ("Helvetica Neue", "Segoe UI", "Noto Sans", "Liberation Sans", "Arial", "DejaVu Sans")
MONOSPACE_FONTS = ("SF Mono", "Menlo", "Consolas", "DejaVu Sans Mono", "Liberation Mono")
ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def png(scene: Scene) -> bytes:
    """Return a scene as a PNG file, with SCALE pixels for each of its units."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise RequestError(
            "a .png needs matplotlib, which is not installed", "pip install 'sixfold[plots]', or write .svg"
        ) from None
    fonts = font_families(scene)
    # No pyplot: it keeps every figure and asks for a display.
    figure = Figure(figsize=(scene.width / 100, scene.height / 100), dpi=100 * SCALE, facecolor=ROLE_COLOURS["paper"])
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, scene.width), ylim=(scene.height, 0))
    axes.set_axis_off()
    for order, part in enumerate((*scene.heading, *scene.parts)):
        _draw(axes, part, order, fonts)
    axes.set(xlim=(0, scene.width), ylim=(scene.height, 0), aspect="auto")
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # it is drawn as an empty box
        FigureCanvasAgg(figure).print_png(out)
    return out.getvalue()


def font_families(scene: Scene) -> dict[bool, list[str]]:
    """Return the fonts to try for each character, in this order; True: monospaced, False: proportional."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    chinese = [name for name in CHINESE_FONTS if name in installed][:1]
    pattern = letters(*DENSE)
    if not chinese and any(
        isinstance(part, Label) and pattern.search(part.text) for part in (*scene.heading, *scene.parts)
    ):
        raise RequestError(
            "a .png of this text needs a font that has its characters; found none",
            "install one, such as Noto Sans CJK (Debian: fonts-noto-cjk), or write .svg or .html",
        )
    latin, mono = ([name for name in names if name in installed] for names in (LATIN_FONTS, MONOSPACE_FONTS))
    # DejaVu has arrows and symbols that most text fonts lack.
    return {False: [*latin[:1], *chinese, "DejaVu Sans"], True: [*mono[:1], *chinese, "DejaVu Sans Mono"]}


def _draw(axes: Any, part: object, order: int, fonts: dict[bool, list[str]]) -> None:
    from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
    from matplotlib.path import Path

    line_width = POINTS  # of a line that is one unit wide
    if isinstance(part, Box):
        style: dict[str, Any] = {"facecolor": _png_colour(part.fill), "edgecolor": _png_colour(part.edge or "none")}
        style |= {"linewidth": line_width, "zorder": order}
        if part.round and min(part.w, part.h) > 2 * part.round:
            boxstyle = f"round,pad=0,rounding_size={part.round}"
            axes.add_patch(
                FancyBboxPatch((part.x, part.y), part.w, part.h, boxstyle=boxstyle, mutation_aspect=1, **style)
            )
        else:
            axes.add_patch(Rectangle((part.x, part.y), part.w, part.h, **style))
    elif isinstance(part, Line):
        xs, ys = zip(*part.points, strict=True)
        dashes = tuple(float(length) / part.width for length in part.dash.split()) if part.dash else ()
        axes.plot(
            xs, ys, color=_png_colour(part.stroke), linewidth=part.width * line_width, zorder=order,
            solid_capstyle="round", linestyle=(0, dashes) if dashes else "-",
        )  # fmt: skip
    elif isinstance(part, Curve):
        path = Path(list(part.points), [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        axes.add_patch(
            PathPatch(
                path, facecolor="none", edgecolor=_png_colour(part.stroke), linewidth=part.width * line_width,
                alpha=part.opacity, zorder=order, capstyle="round",
            )
        )  # fmt: skip
    elif isinstance(part, Label):
        baseline, turn = 0.35 * part.size, math.radians(part.turn)  # below the middle, as in the SVG
        axes.text(
            part.x + baseline * math.sin(turn), part.y + baseline * math.cos(turn), part.text,
            fontsize=part.size * POINTS, color=_png_colour(part.fill), zorder=order, ha=ANCHORS[part.anchor],
            va="baseline", rotation=part.turn, rotation_mode="anchor", fontfamily=fonts[part.mono], parse_math=False,
            fontweight="bold" if part.weight > 500 else "normal",
        )  # fmt: skip
    elif isinstance(part, Grid):
        extent = (part.x, part.x + part.w, part.y + part.h, part.y)
        axes.imshow(part.colours, extent=extent, interpolation="nearest", aspect="auto", zorder=order)


def _png_colour(name: str) -> str:
    return ROLE_COLOURS.get(name, name)
