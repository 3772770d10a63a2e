"""The page of one training run, or of several side by side: curves, scores, samples, data, settings and cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sixfold.errors import RequestError
from sixfold.evaluation.comparison import Comparison, compare
from sixfold.evaluation.metrics import metrics_for
from sixfold.reports import charts
from sixfold.reports.comparison import bucket_sections, score_parts, sentence_sections
from sixfold.reports.formatting import format_duration, format_number, format_setting
from sixfold.reports.page import (
    Markup,
    Section,
    code,
    collapsible,
    definition_list,
    key_values,
    note,
    paragraph,
    render,
    side_by_side,
    table,
)
from sixfold.reports.run_record import RunRecord, TranslatedSet

CURVES = {
    "loss": "Loss in training",
    "dev_loss": "Loss on dev",
    "dev_bleu": "BLEU on dev",
    "dev_chrf": "chrF on dev",
    "learning_rate": "Learning rate",
    "gradient_norm": "Gradient norm",
    "tokens_per_s": "Target tokens a second",
    "memory": "Peak memory, GB",
}
# Of a decoder-only model, besides those.
TEXT_CURVES = {
    "dev_bits_per_byte": "Bits per byte on dev",
    "dev_perplexity": "Perplexity on dev",
    "tokens_per_s": "Tokens a second",
}
FROM_ZERO = ("learning_rate", "tokens_per_s", "memory")
# The scores of a set, with their names and formats: of a model that translates, and of a decoder-only model.
SCORES = {"bleu": ("BLEU", ".1f"), "chrf": ("chrF", ".1f"), "bits_per_byte": ("bits per byte", ".4f"),
          "perplexity": ("perplexity", ".2f")}  # fmt: skip
MAX_SAMPLED_STEPS = 8  # of all steps at which samples were taken, evenly spaced


def training_page(records: Sequence[RunRecord]) -> str:
    """Return the complete page as HTML."""
    if len(records) > 1:
        return comparison_of_runs(records)
    record = records[0]
    sections = [
        Section(state(record), [key_values(key_figures(record))]),
        Section("Curves", [curves(records)]),
        *fine_tuning_sections(record),
        *set_sections(records),
        *sample_sections(record),
        *data_sections(record),
        Section("Settings", settings_parts(record)),
    ]
    return render(f"Run {record.name}", subtitle(record), sections)


def subtitle(record: RunRecord) -> str:
    """Return what a run learns, and from how many records."""
    source, target = record.languages
    arrow = "↔" if record.config.get("data.both_ways") else "→"
    subject = "language model" if record.is_language_model else f"{source or '?'} {arrow} {target or '?'}"
    counts = {unit: record.card[unit] for unit in ("pairs", "documents", "answers") if unit in record.card}
    return " · ".join([subject, *(f"{count:,} {unit}" for unit, count in counts.items() if isinstance(count, int))])


def comparison_of_runs(records: Sequence[RunRecord]) -> str:
    """Return the page of several runs as HTML."""
    differences = table(["setting", *(record.name for record in records)], differing(records), 50)
    sections = [
        Section("Runs", [table(["run", "", *key_names(records)], overview(records), visible_rows=50)]),
        Section("Curves", [curves(records)]),
        *set_sections(records),
        Section("Settings that differ", [differences]),
    ]
    return render(f"{len(records)} runs", " · ".join(record.name for record in records), sections)


def state(record: RunRecord) -> str:
    """Return how far a run is. Its files do not tell whether an unfinished run is still running or was killed."""
    if record.finished:
        return f"Ended at step {record.step:,}"
    return f"Not ended: at step {record.step:,} of {record.steps:,}"


def key_figures(record: RunRecord) -> dict[str, str]:
    """Return scores, then cost, as texts by their names."""
    scores = record.run.get("scores") or {}
    figures = {
        f"{label}, {name}": format(values[key], form)
        for name, values in scores.items()
        for key, (label, form) in SCORES.items()
        if key in values
    }
    bleu, bits = ([row[name] for row in record.metrics if row.get(name)] for name in ("dev_bleu", "dev_bits_per_byte"))
    if not scores and any("dev_bleu" in row for row in record.metrics):
        figures = {"best BLEU on dev so far": f"{max(bleu, default=0.0):.1f}"}
    if not scores and bits:
        figures = {"best bits per byte on dev so far": f"{min(bits):.4f}"}
    cost = record.cost
    figures |= {"training time": format_duration(cost["hours"] * 3600)} if "hours" in cost else {}
    seen = "tokens seen" if record.is_language_model else "target tokens seen"
    figures |= {seen: format_number(cost["tokens"])} if "tokens" in cost else {}
    figures |= {"tokens a second": format_number(record.speed)} if record.speed else {}
    figures |= {"device": str(cost["device"])} if "device" in cost else {}
    return figures


def key_names(records: Sequence[RunRecord]) -> list[str]:
    """Return the names of all key figures that any run has."""
    return list(dict.fromkeys(name for record in records for name in key_figures(record)))


def overview(records: Sequence[RunRecord]) -> list[list[str]]:
    """Return a row for each run: its name, its state and its key figures."""
    names = key_names(records)
    return [[record.name, state(record), *(key_figures(record).get(name, "–") for name in names)] for record in records]


def logged_curves(records: Sequence[RunRecord]) -> dict[str, str]:
    """Return the metrics that have been logged, and their titles; with several dev sets, also BLEU on each of them."""
    names = dict.fromkeys(name for record in records for row in record.metrics for name in row)
    sets = {
        name: f"{SCORES[match[2]][0]} on {match[1]}"
        for name in names
        if (match := re.fullmatch("dev_(.+)_(bleu|bits_per_byte)", name))
    }
    curves = CURVES | (TEXT_CURVES if records[0].is_language_model else {})
    return {name: title for name, title in (curves | sets).items() if name in names}


def curves(records: Sequence[RunRecord]) -> Markup:
    """Return a chart of each logged metric, with a line for each run."""
    plots = [
        charts.lines(title, [record.series(metric) for record in records], "step", from_zero=metric in FROM_ZERO)
        for metric, title in logged_curves(records).items()
    ]
    return side_by_side(*plots) if plots else note("no step has been logged yet")


def fine_tuning_sections(record: RunRecord) -> list[Section]:
    """Return the scores of a fine-tuned model beside those it started from; nothing for a run from scratch."""
    before, after = record.card.get("scores_before") or {}, record.run.get("scores") or {}
    keys = ("bits_per_byte", "perplexity") if record.is_language_model else ("bleu", "chrf")
    rows = [
        [name, *(f"{scores[name][key]:.2f}" for key in keys for scores in (before, after))]
        for name in before
        if name in after
    ]
    head = ["set", *(word for key in keys for word in (f"{SCORES[key][0]} before", "after"))]
    return [Section("Before and after fine-tuning", [table(head, rows)])] if rows else []


def set_sections(records: Sequence[RunRecord]) -> list[Section]:
    """Return scores, buckets and sentences of every set whose texts exist; for others, why they are not shown."""
    sections = []
    for name, (comparison, problems) in compare_sets(records).items():
        if comparison is not None:
            sections.append(Section(f"Scores on {name}", score_parts(comparison)))
            details = [*bucket_sections(comparison), *sentence_sections(comparison)]
            sections += [Section(f"{name}: {section.title}", section.parts) for section in details]
        for problem in problems:
            sections.append(Section(f"Scores on {name}", [note(f"Sentences cannot be shown: {problem}.")]))
    return sections


def compare_sets(records: Sequence[RunRecord]) -> dict[str, tuple[Comparison | None, list[str]]]:
    """Return for each set a comparison of the runs that translated the same sentences, and why others are left out."""
    comparisons: dict[str, tuple[Comparison | None, list[str]]] = {}
    for name in dict.fromkeys(translated.name for record in records for translated in record.sets):
        by_run = {
            record.name: translated for record in records for translated in record.sets if translated.name == name
        }
        complete = {run: translated for run, translated in by_run.items() if translated.texts is not None}
        problems = [f"{run}: {translated.problem}" for run, translated in by_run.items() if translated.texts is None]
        first = next(iter(complete.values()), None)
        same = {run: translated for run, translated in complete.items() if first and is_same(first, translated)}
        problems += [f"{run}: other sentences than {next(iter(same))}" for run in complete if run not in same]
        comparisons[name] = (compare_set(same), problems)
    return comparisons


def is_same(first: TranslatedSet, second: TranslatedSet) -> bool:
    """Return whether two sets have the same references."""
    assert first.texts is not None
    assert second.texts is not None
    return list(first.texts.references) == list(second.texts.references)


def compare_set(sets: Mapping[str, TranslatedSet]) -> Comparison | None:
    """Return the comparison of runs on one set, with the first run as the baseline; None without a run."""
    if not sets:
        return None
    texts = next(iter(sets.values())).texts
    assert texts is not None
    chosen = metrics_for(texts.references, texts.language)
    chosen.pop("TER", None)  # a run is scored by BLEU and chrF; TER takes seconds
    translations = {run: translated.translations for run, translated in sets.items()}
    return compare(texts, translations, chosen, next(iter(sets)))


def sample_sections(record: RunRecord) -> list[Section]:
    """Return the translations of the sample sentences at several steps."""
    if not record.samples:
        return []
    every = -(-len(record.samples) // MAX_SAMPLED_STEPS)
    chosen = record.samples[::-1][::every][::-1]  # always with the last
    parts = []
    for number, first in enumerate(chosen[-1]["samples"]):
        given = "beginning" if record.is_language_model else "source"
        lines: list[tuple[str, object]] = [(given, first.get("source", ""))]
        lines += [("reference", first["reference"])] if first.get("reference") else []
        for row in chosen:
            if number < len(row["samples"]):
                lines.append((f"step {row.get('step', 0):,}", row["samples"][number].get("translation", "")))
        parts.append(definition_list(lines))
    return [Section("Samples over time", parts)]


def data_sections(record: RunRecord) -> list[Section]:
    """Return what cleaning dropped and what `sixfold doctor` found, where they have run."""
    parts: list[Markup] = []
    if record.cleaning is not None:
        cleaning = record.cleaning
        rows = [
            [name, f"{number:,}", f"{number / max(cleaning.read, 1):.1%}", ", ".join(cleaning.examples.get(name, []))]
            for name, number in cleaning.dropped.items()
            if number
        ]
        unit = next((unit for unit in ("documents", "answers") if unit in record.card), "pairs")
        parts += [paragraph(line) for line in cleaning.lines(unit) if not line.startswith(" ")]
        parts += [table(["filter", "dropped", "share", "for example"], rows)] if rows else []
    if record.findings:
        columns = [
            key for key in ("name", "what", "count", "share", "advice") if any(key in row for row in record.findings)
        ]
        parts.append(paragraph("What sixfold doctor found:"))
        parts.append(table(columns, [[format_setting(row.get(key, "")) for key in columns] for row in record.findings]))
    return [Section("Data", parts)] if parts else []


def settings_parts(record: RunRecord) -> list[Markup]:
    """Return the settings that differ from the preset, and all settings in a collapsible part."""
    changes = record.changes.items()
    rows = [[name, format_setting(default), format_setting(value)] for name, (default, value) in changes]
    path = record.folder / "config.toml"
    config = path.read_text(encoding="utf-8") if path.is_file() else ""
    return [
        table(["setting", f"preset {record.preset}", "this run"], rows, visible_rows=50),
        *([collapsible("all settings", code(config))] if config else []),
    ]


def differing(records: Sequence[RunRecord]) -> list[list[str]]:
    """Return a row for each setting that is not the same in all runs: its name, and its value in each run."""
    configs = [record.config for record in records]
    names = dict.fromkeys(name for config in configs for name in config)
    return [
        [name, *(format_setting(config.get(name, "–")) for config in configs)]
        for name in names
        if any(config.get(name) != configs[0].get(name) for config in configs)
    ]


def training_dict(records: Sequence[RunRecord]) -> dict[str, Any]:
    """Return what `sixfold report --json` prints: the contents of the page for programs."""
    runs = [
        {
            "name": record.name, "folder": str(record.folder), "finished": record.finished, "step": record.step,
            "steps": record.steps, "scores": record.run.get("scores") or {}, "cost": record.cost,
            "tokens_per_s": record.speed, "preset": record.preset,
            "changes": {name: list(change) for name, change in record.changes.items()},
            "cleaning": record.cleaning.to_dict() if record.cleaning else None, "findings": list(record.findings),
        }
        for record in records
    ]  # fmt: skip
    compared = compare_sets(records).items()
    sets = {name: comparison.to_dict() for name, (comparison, _) in compared if comparison is not None}
    return {"runs": runs, "sets": sets, "differing": {row[0]: row[1:] for row in differing(records)}}


def write_plots(records: Sequence[RunRecord], folder: Path) -> list[Path]:
    """Write each logged curve as a PNG file, for slides and papers, and return the paths."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise RequestError("--png needs matplotlib, which is not installed", "pip install 'sixfold[plots]'") from None
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for metric, title in logged_curves(records).items():
        # Not pyplot, which keeps every figure and needs a display.
        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.add_subplot(title=title, xlabel="step")
        for record in records:
            series = record.series(metric)
            values = [float("nan") if value is None else value for value in series.y]
            axes.plot(list(series.x), values, label=series.name)
        axes.grid(alpha=0.3)
        if len(records) > 1:
            axes.legend()
        paths.append(folder / f"{metric}.png")
        figure.savefig(paths[-1], dpi=150)
    return paths
