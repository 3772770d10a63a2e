"""The page of a comparison of systems: scores as intervals, buckets as bars, sentences side by side."""

from __future__ import annotations

from collections.abc import Sequence

from sixfold.evaluation.comparison import Bucket, Comparison, SentenceComparison
from sixfold.evaluation.significance import Estimate
from sixfold.reports import charts
from sixfold.reports.charts import Interval
from sixfold.reports.page import (
    Markup,
    Section,
    collapsible,
    definition_list,
    key_values,
    note,
    paragraph,
    render,
    side_by_side,
    table,
)

SIGNIFICANT = 0.05
MAX_CHARACTERS = 2000  # of a sentence that are shown
BUCKET_TITLES = {
    "length": "by length of the source in words",
    "script": "by script of the source",
    "corpus": "by corpus",
}


def comparison_page(title: str, comparison: Comparison) -> str:
    """Return the complete page as HTML."""
    systems = comparison.systems[0] if len(comparison.systems) == 1 else f"{len(comparison.systems)} systems"
    language = comparison.language or "not known"
    subtitle = f"{systems} · {comparison.sentences:,} sentences · target language {language}"
    sections = [
        Section("Scores", score_parts(comparison)),
        *bucket_sections(comparison),
        *sentence_sections(comparison),
    ]
    return render(title, subtitle, sections)


def score_parts(comparison: Comparison) -> list[Markup]:
    """Return the scores: large figures for a single system, then intervals, a table and signatures."""
    is_single = len(comparison.systems) == 1
    parts: list[Markup] = []
    if is_single:
        scores = comparison.scores[comparison.systems[0]]
        parts.append(key_values({name: f"{estimate.value:.1f}" for name, estimate in scores.items()}))
    plots = []
    for name in comparison.signatures:
        rows = [
            Interval(system, scores[name].low, scores[name].value, scores[name].high)
            for system, scores in comparison.scores.items()
        ]
        plots.append(charts.intervals(f"{name}, with 95% intervals", rows))
    parts += [side_by_side(*plots), score_table(comparison)]
    if not is_single:
        parts.append(
            paragraph(
                f"Differences are from {comparison.baseline}. p: how often a difference as large comes from the choice "
                f"of sentences alone (paired bootstrap, {comparison.samples:,} resamples); bold where below "
                f"{SIGNIFICANT}."
            )
        )
    return [*parts, *(note(f"{name}: {signature}") for name, signature in comparison.signatures.items())]


def score_table(comparison: Comparison) -> Markup:
    """Return a row for each system with its score, interval, difference and p-value by each metric."""
    names = list(comparison.signatures)
    is_single = len(comparison.systems) == 1
    head = ["system", *(word for name in names for word in (name, "95%", *(() if is_single else ("Δ", "p"))))]
    rows = []
    for system in comparison.systems:
        row: list[object] = [system]
        for name in names:
            row += _score_cells(comparison.scores[system][name], is_single)
        rows.append(row)
    return table(head, rows, visible_rows=50)


def _score_cells(estimate: Estimate, is_single: bool) -> list[object]:
    cells: list[object] = [f"{estimate.value:.2f}", f"{estimate.low:.1f}–{estimate.high:.1f}"]
    if not is_single:
        p = "–" if estimate.p is None else f"{estimate.p:.3f}"
        is_significant = estimate.p is not None and estimate.p < SIGNIFICANT
        difference = "–" if estimate.difference is None else f"{estimate.difference:+.2f}"
        cells += [difference, Markup(f"<b>{p}</b>") if is_significant else p]
    return cells


def bucket_sections(comparison: Comparison) -> list[Section]:
    """Return a section with a chart for each kind of bucket and each of the first two metrics, or nothing."""
    if not comparison.buckets:
        return []
    names = [name for name in comparison.signatures if name != "COMET"][:2]
    plots = [
        bucket_chart(f"{name} {BUCKET_TITLES[kind]}", buckets, comparison.systems, name)
        for kind, buckets in comparison.buckets.items()
        for name in names
    ]
    warning = "The number in brackets is how many sentences a bucket has; a score of few sentences means little."
    return [Section("Scores by kind of sentence", [side_by_side(*plots), note(warning)])]


def bucket_chart(title: str, buckets: Sequence[Bucket], systems: Sequence[str], metric: str) -> Markup:
    """Return a bar for each bucket and system."""
    groups = [f"{bucket.name} ({bucket.sentences:,})" for bucket in buckets]
    series = [(system, [bucket.scores[system][metric] for bucket in buckets]) for system in systems]
    return charts.bars(title, groups, series)


def sentence_sections(comparison: Comparison) -> list[Section]:
    """Return the sentences that improved or got worse most against the baseline, and the worst, by sentence chrF."""
    sections = []
    for system in comparison.improved:
        parts: list[Markup] = []
        for title, sentences in (
            ("Most improved", comparison.improved[system]),
            ("Most harmed", comparison.harmed[system]),
        ):
            systems = (system, comparison.baseline)
            parts += [paragraph(Markup(f"<b>{title}</b>")), *sentence_parts(sentences, systems)]
        sections.append(Section(f"{system} against {comparison.baseline}", parts))
    for system in comparison.systems:
        parts = sentence_parts(comparison.worst[system], comparison.systems)
        sections.append(Section(f"Worst sentences of {system}", parts))
    return sections


def sentence_parts(sentences: Sequence[SentenceComparison], systems: Sequence[str]) -> list[Markup]:
    """Return three sentences that are visible and the others in a collapsible part."""
    blocks = [sentence_block(sentence, systems) for sentence in sentences]
    if not blocks:
        return [note("none")]
    return [*blocks[:3], *([collapsible(f"{len(blocks) - 3} more", *blocks[3:])] if blocks[3:] else [])]


def sentence_block(sentence: SentenceComparison, systems: Sequence[str]) -> Markup:
    """Return source, reference and translations of one sentence."""
    translations: list[tuple[str, object]] = [
        (f"{system} · chrF {sentence.chrf[system]:.1f}", shorten(sentence.translations[system])) for system in systems
    ]
    source, reference = shorten(sentence.source), shorten(sentence.reference)
    return definition_list([(f"line {sentence.line}", source), ("reference", reference), *translations])


def shorten(text: str) -> str:
    """Return a sentence cut to MAX_CHARACTERS; an empty one becomes "nothing" in italics."""
    if len(text) > MAX_CHARACTERS:
        return f"{text[:MAX_CHARACTERS]} … ({len(text):,} characters)"
    return text or Markup("<i>nothing</i>")
