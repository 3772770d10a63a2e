"""A scene as a PNG file, drawn by matplotlib with fonts that have its characters."""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

from sixfold.errors import RequestError
from sixfold.explorer.drawing import ROLE_COLOURS, Box, Curve, Grid, Label, Line, Scene
from sixfold.text.languages import DENSE, letters

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
        style: dict[str, Any] = {"facecolor": _colour(part.fill), "edgecolor": _colour(part.edge or "none")}
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
            xs, ys, color=_colour(part.stroke), linewidth=part.width * line_width, zorder=order,
            solid_capstyle="round", linestyle=(0, dashes) if dashes else "-",
        )  # fmt: skip
    elif isinstance(part, Curve):
        path = Path(list(part.points), [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        axes.add_patch(
            PathPatch(
                path, facecolor="none", edgecolor=_colour(part.stroke), linewidth=part.width * line_width,
                alpha=part.opacity, zorder=order, capstyle="round",
            )
        )  # fmt: skip
    elif isinstance(part, Label):
        baseline, turn = 0.35 * part.size, math.radians(part.turn)  # below the middle, as in the SVG
        axes.text(
            part.x + baseline * math.sin(turn), part.y + baseline * math.cos(turn), part.text,
            fontsize=part.size * POINTS, color=_colour(part.fill), zorder=order, ha=ANCHORS[part.anchor],
            va="baseline", rotation=part.turn, rotation_mode="anchor", fontfamily=fonts[part.mono], parse_math=False,
            fontweight="bold" if part.weight > 500 else "normal",
        )  # fmt: skip
    elif isinstance(part, Grid):
        extent = (part.x, part.x + part.w, part.y + part.h, part.y)
        axes.imshow(part.colours, extent=extent, interpolation="nearest", aspect="auto", zorder=order)


def _colour(name: str) -> str:
    return ROLE_COLOURS.get(name, name)
