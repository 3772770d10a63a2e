"""The page of an audit: what was found, the worst lines, and the shape of the corpus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sixfold.reports.charts import Series, histogram, lines
from sixfold.reports.page import Section, figures, folded, note, render, side_by_side, table

LISTED = 200  # lines of each kind that the page names; doctor.json has them all


def audit_page(facts: Mapping[str, Any]) -> str:
    """From what `Audit.to_dict` and the estimate of training say."""
    found = [fact for fact in facts["findings"] if fact["count"]]
    rows = [
        [fact["name"], f"{fact['count']:,}", f"{fact['share']:.2%}", fact["what"], fact["advice"]] for fact in found
    ]
    alignment = facts["alignment"]
    summary = figures(
        {
            "pairs": f"{facts['pairs']:,}",
            "better left out": f"{facts['condemned'] / max(facts['pairs'], 1):.1%}",
            "different words": f"{facts['words']:,}",
            "pairs told from unrelated": f"{alignment['area']:.1%}",
        }
    )
    told = note(
        f"Told from unrelated: how often a pair of this corpus scores better than texts put together at random, "
        f"learnt from {alignment['learnt_from']:,} pairs; {alignment['judged']:.1%} have enough known words for it."
    )
    sections = [
        Section("In short", [summary, told, *facts["remarks"]]),
        Section("Findings", [table(["kind", "pairs", "share", "what", "what to do"], rows, fold=len(rows))]),
        Section("The worst of each", [_worst(fact) for fact in found] or ["Nothing was found."]),
        Section("Its shape", [_shape(facts["histograms"])]),
        Section("Training on it", [facts["training"]["says"]]),
    ]
    title = f"{' and '.join(facts['corpus']['files'])}"
    return render(
        title, f"examined by sixfold doctor: {'→'.join(code or '?' for code in facts['languages'])}", sections
    )


def _worst(fact: Mapping[str, Any]) -> str:
    order = sorted(range(fact["count"]), key=lambda place: -fact["scores"][place])[:LISTED]
    notes = fact.get("notes", [""] * fact["count"])
    rows = [[fact["lines"][place], fact["scores"][place], notes[place]] for place in order]
    quoted = table([fact["name"]], [[example] for example in fact["examples"]])
    return type(quoted)(quoted + folded(f"lines, the worst first ({len(rows)})", table(["line", "score", ""], rows)))


def _shape(histograms: Mapping[str, Any]) -> str:
    plots = []
    for name, bars in histograms.items():
        if not name.startswith("alignment"):
            plots.append(histogram(name, bars["edges"], bars["counts"]))
    curves = []
    for name, bars in histograms.items():
        if name.startswith("alignment"):
            total = max(1, sum(bars["counts"]))
            curves.append(Series(name, bars["edges"][1:], [count / total for count in bars["counts"]]))
    return side_by_side(*plots, lines("alignment scores, share of pairs", curves, "score", from_zero=True))
