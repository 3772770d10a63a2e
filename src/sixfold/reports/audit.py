"""The page of an audit: what was found, the worst lines of each kind, and the shape of the corpus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sixfold.reports.charts import Series, histogram, lines
from sixfold.reports.page import Section, collapsible, key_values, note, render, side_by_side, table

MAX_LINES = 200  # of each kind that the page lists; doctor.json has all of them


def audit_page(facts: Mapping[str, Any]) -> str:
    """Return the page of `sixfold doctor`; `facts` is `Audit.to_dict` with the estimate of training added."""
    findings = [finding for finding in facts["findings"] if finding["count"]]
    rows = [
        [finding["name"], f"{finding['count']:,}", f"{finding['share']:.2%}", finding["what"], finding["advice"]]
        for finding in findings
    ]
    alignment = facts["alignment"]
    summary = key_values(
        {
            "pairs": f"{facts['pairs']:,}",
            "better left out": f"{facts['condemned'] / max(facts['pairs'], 1):.1%}",
            "different words": f"{facts['words']:,}",
            "pairs told from unrelated": f"{alignment['area']:.1%}",
        }
    )
    explanation = note(
        f"Told from unrelated: how often a pair of this corpus scores better than two texts paired at random, "
        f"learnt from {alignment['learnt_from']:,} pairs; {alignment['judged']:.1%} have enough known words for it."
    )
    sections = [
        Section("In short", [summary, explanation, *facts["remarks"]]),
        Section("Findings", [table(["kind", "pairs", "share", "what", "what to do"], rows, visible_rows=len(rows))]),
        Section("The worst of each", [_worst_lines(finding) for finding in findings] or ["Nothing was found."]),
        Section("Shape of the corpus", [_histograms(facts["histograms"])]),
        Section("Training on it", [facts["training"]["says"]]),
    ]
    title = f"{' and '.join(facts['corpus']['files'])}"
    return render(
        title, f"examined by sixfold doctor: {'→'.join(code or '?' for code in facts['languages'])}", sections
    )


def _worst_lines(finding: Mapping[str, Any]) -> str:
    """Return examples of a finding, and a collapsible table of its lines, the highest scores first."""
    order = sorted(range(finding["count"]), key=lambda index: -finding["scores"][index])[:MAX_LINES]
    notes = finding.get("notes", [""] * finding["count"])
    rows = [[finding["lines"][index], finding["scores"][index], notes[index]] for index in order]
    examples = table([finding["name"]], [[example] for example in finding["examples"]])
    listing = collapsible(f"lines, the worst first ({len(rows)})", table(["line", "score", ""], rows))
    return type(examples)(examples + listing)


def _histograms(histograms: Mapping[str, Any]) -> str:
    """Return a histogram of each quantity; those of alignment scores share one line chart."""
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
