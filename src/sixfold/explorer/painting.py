"""A scene as a PNG file, painted by matplotlib with a font that has its characters."""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

from sixfold.errors import RequestError
from sixfold.explorer.drawing import INKS, Box, Curve, Grid, Label, Line, Scene
from sixfold.text.languages import DENSE, letters

SCALE = 2  # pixels of the file for each of the scene
POINTS = 0.72  # of a font, for each pixel of the scene, at 100 to the inch
# Fonts with Chinese characters, as systems call them; the first that is installed is taken.
CHINESE = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "PingFang SC", "Hiragino Sans GB",
    "Heiti SC", "STHeiti", "Microsoft YaHei", "SimHei", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Noto Sans CJK JP",
    "Droid Sans Fallback", "Arial Unicode MS", "Noto Serif CJK SC", "SimSun", "Songti SC",
)  # fmt: skip
LATIN = ("Helvetica Neue", "Segoe UI", "Noto Sans", "Liberation Sans", "Arial", "DejaVu Sans")
MONO = ("SF Mono", "Menlo", "Consolas", "DejaVu Sans Mono", "Liberation Mono")
ANCHORS = {"start": "left", "middle": "center", "end": "right"}


def png(scene: Scene) -> bytes:
    """Two pixels each way for every one of the scene."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise RequestError(
            "a .png needs matplotlib, which is not installed", "pip install 'sixfold[plots]', or write .svg"
        ) from None
    fonts = families(scene)
    # No pyplot: it keeps every figure and asks for a display.
    figure = Figure(figsize=(scene.width / 100, scene.height / 100), dpi=100 * SCALE, facecolor=INKS["paper"])
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, scene.width), ylim=(scene.height, 0))
    axes.set_axis_off()
    for order, part in enumerate((*scene.heading, *scene.parts)):
        _paint(axes, part, order, fonts)
    axes.set(xlim=(0, scene.width), ylim=(scene.height, 0), aspect="auto")
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # it shows as a box, as everywhere
        FigureCanvasAgg(figure).print_png(out)
    return out.getvalue()


def families(scene: Scene) -> dict[bool, list[str]]:
    """Fonts to try for each character, in this order; True: all characters of one width."""
    from matplotlib import font_manager

    known = {font.name for font in font_manager.fontManager.ttflist}
    chinese = [name for name in CHINESE if name in known][:1]
    pattern = letters(*DENSE)
    if not chinese and any(
        isinstance(part, Label) and pattern.search(part.text) for part in (*scene.heading, *scene.parts)
    ):
        raise RequestError(
            "a .png of this needs a font that has its characters; found none",
            "install one, such as Noto Sans CJK (Debian: fonts-noto-cjk), or write .svg or .html",
        )
    latin, mono = ([name for name in names if name in known] for names in (LATIN, MONO))
    # DejaVu has arrows and signs that fonts of text lack.
    return {False: [*latin[:1], *chinese, "DejaVu Sans"], True: [*mono[:1], *chinese, "DejaVu Sans Mono"]}


def _paint(axes: Any, part: object, order: int, fonts: dict[bool, list[str]]) -> None:
    from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
    from matplotlib.path import Path

    thin = POINTS  # of a line one pixel wide
    if isinstance(part, Box):
        look: dict[str, Any] = {"facecolor": _ink(part.fill), "edgecolor": _ink(part.edge or "none")}
        look |= {"linewidth": thin, "zorder": order}
        if part.round and min(part.w, part.h) > 2 * part.round:
            style = f"round,pad=0,rounding_size={part.round}"
            axes.add_patch(FancyBboxPatch((part.x, part.y), part.w, part.h, boxstyle=style, mutation_aspect=1, **look))
        else:
            axes.add_patch(Rectangle((part.x, part.y), part.w, part.h, **look))
    elif isinstance(part, Line):
        xs, ys = zip(*part.points, strict=True)
        dashes = tuple(float(each) / part.width for each in part.dash.split()) if part.dash else ()
        axes.plot(
            xs, ys, color=_ink(part.stroke), linewidth=part.width * thin, zorder=order, solid_capstyle="round",
            linestyle=(0, dashes) if dashes else "-",
        )  # fmt: skip
    elif isinstance(part, Curve):
        path = Path(list(part.points), [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        axes.add_patch(
            PathPatch(
                path, facecolor="none", edgecolor=_ink(part.stroke), linewidth=part.width * thin, alpha=part.opacity,
                zorder=order, capstyle="round",
            )
        )  # fmt: skip
    elif isinstance(part, Label):
        drop, turn = 0.35 * part.size, math.radians(part.turn)  # to the baseline, as in the SVG
        axes.text(
            part.x + drop * math.sin(turn), part.y + drop * math.cos(turn), part.text, fontsize=part.size * POINTS,
            color=_ink(part.fill), zorder=order, ha=ANCHORS[part.anchor], va="baseline", rotation=part.turn,
            rotation_mode="anchor", fontfamily=fonts[part.mono], parse_math=False,
            fontweight="bold" if part.weight > 500 else "normal",
        )  # fmt: skip
    elif isinstance(part, Grid):
        extent = (part.x, part.x + part.w, part.y + part.h, part.y)
        axes.imshow(part.colours, extent=extent, interpolation="nearest", aspect="auto", zorder=order)


def _ink(name: str) -> str:
    return INKS.get(name, name)
