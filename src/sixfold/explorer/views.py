"""Pictures of a trace, by name, and as pages, files and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sixfold.configfile import did_you_mean
from sixfold.errors import RequestError
from sixfold.explorer import views_attention, views_decoding, views_model, views_walk
from sixfold.explorer.drawing import svg
from sixfold.explorer.layout import Table, View, Wish
from sixfold.explorer.trace import Trace
from sixfold.reports import page

# Of one sentence. Masks are of several, and the curves of a run of none.
VIEWS: dict[str, Callable[[Trace, Wish], View]] = {
    "attention": views_attention.attention,
    "heads": views_attention.heads,
    "token": views_attention.token,
    "alignment": views_attention.alignment,
    "positions": views_model.positions,
    "similarity": views_model.similarity,
    "steps": views_decoding.steps,
    "beam": views_decoding.beam,
    "walk": views_walk.walk,
}
NAMES = (*VIEWS, "masks", "training")


def check_name(name: str) -> None:
    if name not in NAMES:
        hint = did_you_mean(name, NAMES) or f"the views are {', '.join(NAMES)}"
        raise RequestError(f"--view: expected one of {', '.join(NAMES)}; got {name!r:.60}", hint)


def view(name: str, traces: Sequence[Trace], wish: Wish | None = None) -> View:
    """One view of a sentence, or of the batch that several make."""
    check_name(name)
    if name == "masks":
        return views_model.masks(traces)
    if name not in VIEWS or len(traces) != 1:
        raise RequestError(f"{name}: expected one sentence; got {len(traces)}", "only masks are of several")
    return VIEWS[name](traces[0], wish or Wish())


def html_page(seen: View) -> str:
    """A page that asks for nothing beyond itself: the picture, and its numbers as tables."""
    picture = page.Markup(f'<div class="wide" tabindex="0">{svg(seen.scene, themed=True)}</div>')
    tables = [page.folded(table.title or "numbers", _table(table)) for table in seen.tables]
    sections = [page.Section("Picture", [picture]), page.Section("Numbers", tables)]
    return page.render(seen.scene.title, seen.scene.description, sections)


def _table(table: Table) -> page.Markup:
    rows = [[f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in row] for row in table.rows]
    return page.table(table.head, rows, fold=60)


def notebook(trace: Trace) -> str:
    """What a notebook shows of it: how words of both sides are joined, and every head that joins them."""
    wish = Wish()
    names = ["alignment", "heads"] if "cross" in trace.kinds else ["heads"]
    return "".join(svg(VIEWS[name](trace, wish).scene) for name in names)
