"""The views of a trace by name, and a view as a page or in a notebook. `views_*.py` draw the pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sixfold.configfile import did_you_mean
from sixfold.errors import RequestError
from sixfold.explorer import views_attention, views_decoding, views_inputs, views_lens, views_walk
from sixfold.explorer.drawing import svg
from sixfold.explorer.trace import Trace
from sixfold.explorer.views_layout import Table, View, ViewOptions
from sixfold.reports import page

# Views of one sentence. "masks" takes several; "induction" shows a test of a model, "training" the curves of a run.
VIEWS: dict[str, Callable[[Trace, ViewOptions], View]] = {
    "attention": views_attention.attention,
    "heads": views_attention.heads,
    "token": views_attention.token,
    "alignment": views_attention.alignment,
    "positions": views_inputs.positions,
    "similarity": views_inputs.similarity,
    "steps": views_decoding.steps,
    "beam": views_decoding.beam,
    "walk": views_walk.walk,
    "lens": views_lens.prediction,
}
SENTENCE_VIEWS = (*VIEWS, "masks")
VIEW_NAMES = (*SENTENCE_VIEWS, "induction", "training")


def check_view_name(name: str) -> None:
    """Raise a RequestError with a suggestion if there is no view of this name."""
    if name not in VIEW_NAMES:
        hint = did_you_mean(name, VIEW_NAMES) or f"the views are {', '.join(VIEW_NAMES)}"
        raise RequestError(f"--view: expected one of {', '.join(VIEW_NAMES)}; got {name!r:.60}", hint)


def view(name: str, traces: Sequence[Trace], options: ViewOptions | None = None) -> View:
    """Return one view of a sentence, or, of "masks", of several sentences as a batch."""
    check_view_name(name)
    if name == "masks":
        return views_inputs.masks(traces)
    if name not in VIEWS or len(traces) != 1:
        raise RequestError(f"{name}: expected one sentence; got {len(traces)}", "only the view masks takes several")
    return VIEWS[name](traces[0], options or ViewOptions())


def html_page(drawn: View) -> str:
    """Return a self-contained HTML page: the picture, and its numbers as tables."""
    picture = page.Markup(f'<div class="wide" tabindex="0">{svg(drawn.scene, themed=True)}</div>')
    tables = [page.collapsible(table.title or "numbers", _html_table(table)) for table in drawn.tables]
    sections = [page.Section("Picture", [picture]), page.Section("Numbers", tables)]
    return page.render(drawn.scene.title, drawn.scene.description, sections)


def _html_table(table: Table) -> page.Markup:
    rows = [[f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in row] for row in table.rows]
    return page.table(table.columns, rows, visible_rows=60)


def notebook(trace: Trace) -> str:
    """Return what a notebook shows of a trace: the alignment of words, and every head of the cross-attention."""
    options = ViewOptions()
    names = ["alignment", "heads"] if "cross" in trace.kinds else ["heads"]
    return "".join(svg(VIEWS[name](trace, options).scene) for name in names)
