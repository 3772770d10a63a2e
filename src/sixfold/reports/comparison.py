"""A comparison as a page: scores as intervals, buckets as bars, sentences side by side."""

from __future__ import annotations

from collections.abc import Sequence

from sixfold.evaluation.comparison import Bucket, Comparison, Sentence
from sixfold.evaluation.significance import Estimate
from sixfold.reports import charts
from sixfold.reports.charts import Interval
from sixfold.reports.page import Markup, Section, entries, figures, folded, note, paragraph, render, side_by_side, table

SIGNIFICANT = 0.05
LONGEST = 2000  # characters of a sentence that are shown
KINDS = {
    "length": "by length of the source in words",
    "script": "by script of the source",
    "corpus": "by corpus",
}


def comparison_page(title: str, found: Comparison) -> str:
    """The whole of it as HTML."""
    systems = f"{len(found.systems)} systems" if len(found.systems) > 1 else found.systems[0]
    subtitle = f"{systems} · {found.sentences:,} sentences · target language {found.language or 'not known'}"
    sections = [Section("Scores", score_parts(found)), *bucket_sections(found), *sentence_sections(found)]
    return render(title, subtitle, sections)


def score_parts(found: Comparison) -> list[Markup]:
    """Figures for one system; intervals and a table for several."""
    several = len(found.systems) > 1
    parts: list[Markup] = []
    if not several:
        only = found.scores[found.systems[0]]
        parts.append(figures({name: f"{estimate.value:.1f}" for name, estimate in only.items()}))
    plots = []
    for name in found.signatures:
        rows = [Interval(system, at[name].low, at[name].value, at[name].high) for system, at in found.scores.items()]
        plots.append(charts.intervals(f"{name}, with 95% intervals", rows))
    parts += [side_by_side(*plots), score_table(found)]
    if several:
        parts.append(
            paragraph(
                f"Differences are from {found.baseline}. p: how often a difference as large comes from the choice of "
                f"sentences alone (paired bootstrap, {found.samples:,} resamples); bold where below {SIGNIFICANT}."
            )
        )
    return [*parts, *(note(f"{name}: {signature}") for name, signature in found.signatures.items())]


def score_table(found: Comparison) -> Markup:
    names = list(found.signatures)
    head = ["system", *(word for name in names for word in (name, "95%", *_comparing(found, "Δ", "p")))]
    rows = []
    for system in found.systems:
        row: list[object] = [system]
        for name in names:
            row += _cells(found, found.scores[system][name])
        rows.append(row)
    return table(head, rows, fold=50)


def _comparing(found: Comparison, *words: str) -> Sequence[str]:
    return words if len(found.systems) > 1 else ()


def _cells(found: Comparison, at: Estimate) -> list[object]:
    cells: list[object] = [f"{at.value:.2f}", f"{at.low:.1f}–{at.high:.1f}"]
    if len(found.systems) > 1:
        p = "–" if at.p is None else f"{at.p:.3f}"
        bold = at.p is not None and at.p < SIGNIFICANT
        cells += ["–" if at.difference is None else f"{at.difference:+.2f}", Markup(f"<b>{p}</b>") if bold else p]
    return cells


def bucket_sections(found: Comparison) -> list[Section]:
    if not found.buckets:
        return []
    names = [name for name in found.signatures if name != "COMET"][:2]
    plots = [
        bucket_chart(f"{name} {KINDS[kind]}", some, found.systems, name)
        for kind, some in found.buckets.items()
        for name in names
    ]
    small = "A bucket of few sentences says little: the number in brackets is how many it has."
    return [
        Section(
            "Where they stand" if len(found.systems) > 1 else "Where it stands", [side_by_side(*plots), note(small)]
        )
    ]


def bucket_chart(title: str, buckets: Sequence[Bucket], systems: Sequence[str], measure: str) -> Markup:
    groups = [f"{bucket.name} ({bucket.sentences:,})" for bucket in buckets]
    series = [(system, [bucket.scores[system][measure] for bucket in buckets]) for system in systems]
    return charts.bars(title, groups, series)


def sentence_sections(found: Comparison) -> list[Section]:
    """What got better, what got worse, and what is worst, by chrF of the sentence."""
    sections = []
    for system in found.improved:
        parts: list[Markup] = []
        for title, some in (("Most improved", found.improved[system]), ("Most harmed", found.harmed[system])):
            shown = (system, found.baseline)
            parts += [paragraph(Markup(f"<b>{title}</b>")), *sentence_parts(some, shown)]
        sections.append(Section(f"{system} against {found.baseline}", parts))
    for system in found.systems:
        sections.append(Section(f"Worst sentences of {system}", sentence_parts(found.worst[system], found.systems)))
    return sections


def sentence_parts(sentences: Sequence[Sentence], systems: Sequence[str]) -> list[Markup]:
    """Three to be seen, the rest on a click."""
    blocks = [sentence_block(sentence, systems) for sentence in sentences]
    if not blocks:
        return [note("none")]
    return [*blocks[:3], *([folded(f"{len(blocks) - 3} more", *blocks[3:])] if blocks[3:] else [])]


def sentence_block(sentence: Sentence, systems: Sequence[str]) -> Markup:
    said: list[tuple[str, object]] = [
        (f"{system} · chrF {sentence.chrf[system]:.1f}", seen(sentence.translations[system])) for system in systems
    ]
    return entries([(f"line {sentence.line}", seen(sentence.source)), ("reference", seen(sentence.reference)), *said])


def seen(text: str) -> str:
    """A sentence as a person can look at it."""
    if len(text) > LONGEST:
        return f"{text[:LONGEST]} … ({len(text):,} characters)"
    return text or Markup("<i>nothing</i>")
