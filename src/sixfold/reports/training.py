"""The story of one run, or of several side by side, as a page: curves, scores, samples, data, settings and cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sixfold.evaluation.comparison import Comparison, compare
from sixfold.evaluation.measures import measures
from sixfold.reports import charts
from sixfold.reports.comparison import bucket_sections, score_parts, sentence_sections
from sixfold.reports.page import (
    Markup,
    Section,
    code,
    entries,
    figures,
    folded,
    note,
    paragraph,
    render,
    side_by_side,
    table,
)
from sixfold.reports.run_record import Record, ScoredSet, duration

CURVES = {
    "loss": "Loss in training",
    "dev_loss": "Loss on dev",
    "dev_bleu": "BLEU on dev",
    "dev_chrf": "chrF on dev",
    "learning_rate": "Learning rate",
    "gradient_norm": "Gradient norm",
    "tokens_per_s": "Target tokens a second",
    "memory": "Memory at most, GB",
}
FROM_ZERO = ("learning_rate", "tokens_per_s", "memory")
SAMPLED_STEPS = 8  # of all at which samples were taken, evenly


def report_page(records: Sequence[Record]) -> str:
    """The whole of it as HTML."""
    if len(records) > 1:
        return comparison_of_runs(records)
    record = records[0]
    source, target = record.languages
    arrow = "↔" if record.config.get("data.both_ways") else "→"
    pairs = f" · {record.card['pairs']:,} pairs" if isinstance(record.card.get("pairs"), int) else ""
    sections = [
        Section(state(record), [figures(key_figures(record))]),
        Section("Curves", [curves(records)]),
        *before_and_after(record),
        *set_sections(records),
        *sample_sections(record),
        *data_sections(record),
        Section("Settings", settings(record)),
    ]
    return render(f"Run {record.name}", f"{source or '?'} {arrow} {target or '?'}{pairs}", sections)


def comparison_of_runs(records: Sequence[Record]) -> str:
    sections = [
        Section("Runs", [table(["run", "", *key_names(records)], overview(records), fold=50)]),
        Section("Curves", [curves(records)]),
        *set_sections(records),
        Section("Settings that differ", [table(["setting", *(each.name for each in records)], differing(records), 50)]),
    ]
    return render(f"{len(records)} runs", " · ".join(record.name for record in records), sections)


def state(record: Record) -> str:
    """Whether it has ended; nobody can tell from outside whether it is still going or was killed."""
    if record.finished:
        return f"Ended at step {record.step:,}"
    return f"Not ended: at step {record.step:,} of {record.steps:,}"


def key_figures(record: Record) -> dict[str, str]:
    """Scores, then cost."""
    scores = record.known.get("scores") or {}
    found = {
        f"{label}, {name}": f"{values[key]:.1f}"
        for name, values in scores.items()
        for key, label in (("bleu", "BLEU"), ("chrf", "chrF"))
    }
    latest = [row for row in record.metrics if "dev_bleu" in row]
    if not scores and latest:
        found = {"best BLEU on dev so far": f"{max(row['dev_bleu'] or 0.0 for row in latest):.1f}"}
    cost = record.cost
    found |= {"training time": duration(cost["hours"] * 3600)} if "hours" in cost else {}
    found |= {"target tokens seen": charts.number(cost["tokens"])} if "tokens" in cost else {}
    found |= {"tokens a second": charts.number(record.speed)} if record.speed else {}
    found |= {"device": str(cost["device"])} if "device" in cost else {}
    return found


def key_names(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in key_figures(record)))


def overview(records: Sequence[Record]) -> list[list[str]]:
    names = key_names(records)
    return [[record.name, state(record), *(key_figures(record).get(name, "–") for name in names)] for record in records]


def logged_curves(records: Sequence[Record]) -> dict[str, str]:
    """Metrics that have been logged, and their titles; where there are several dev sets, BLEU on each of them too."""
    names = dict.fromkeys(name for record in records for row in record.metrics for name in row)
    sets = {name: f"BLEU on {found[1]}" for name in names if (found := re.fullmatch("dev_(.+)_bleu", name))}
    return {name: title for name, title in (CURVES | sets).items() if name in names}


def curves(records: Sequence[Record]) -> Markup:
    plots = [
        charts.lines(title, [record.series(metric) for record in records], "step", from_zero=metric in FROM_ZERO)
        for metric, title in logged_curves(records).items()
    ]
    return side_by_side(*plots) if plots else note("no step has been logged yet")


def before_and_after(record: Record) -> list[Section]:
    """What fine-tuning has gained, and what it has cost."""
    before, after = record.card.get("scores_before") or {}, record.known.get("scores") or {}
    rows = [
        [name, *(f"{scores[name][key]:.2f}" for key in ("bleu", "chrf") for scores in (before, after))]
        for name in before
        if name in after
    ]
    head = ["set", "BLEU before", "after", "chrF before", "after"]
    return [Section("Before and after fine-tuning", [table(head, rows)])] if rows else []


def set_sections(records: Sequence[Record]) -> list[Section]:
    """Scores, buckets and sentences of every set whose texts are there; for the others, why they are not shown."""
    sections = []
    for name, (comparison, missing) in compared(records).items():
        if comparison is not None:
            sections.append(Section(f"Scores on {name}", score_parts(comparison)))
            found = [*bucket_sections(comparison), *sentence_sections(comparison)]
            sections += [Section(f"{name}: {each.title}", each.parts) for each in found]
        for reason in missing:
            sections.append(Section(f"Scores on {name}", [note(f"Sentences cannot be shown: {reason}.")]))
    return sections


def compared(records: Sequence[Record]) -> dict[str, tuple[Comparison | None, list[str]]]:
    """Each set with all runs that translated the same sentences."""
    found: dict[str, tuple[Comparison | None, list[str]]] = {}
    for name in dict.fromkeys(each.name for record in records for each in record.sets):
        mine = {record.name: each for record in records for each in record.sets if each.name == name}
        whole = {run: each for run, each in mine.items() if each.texts is not None}
        missing = [f"{run}: {each.missing}" for run, each in mine.items() if each.texts is None]
        first = next(iter(whole.values()), None)
        same = {run: each for run, each in whole.items() if first and is_same(first, each)}
        missing += [f"{run}: other sentences than {next(iter(same))}" for run in whole if run not in same]
        found[name] = (compare_set(same), missing)
    return found


def is_same(first: ScoredSet, second: ScoredSet) -> bool:
    assert first.texts is not None
    assert second.texts is not None
    return list(first.texts.references) == list(second.texts.references)


def compare_set(sets: Mapping[str, ScoredSet]) -> Comparison | None:
    if not sets:
        return None
    texts = next(iter(sets.values())).texts
    assert texts is not None
    chosen = measures(texts.references, texts.language)
    chosen.pop("TER", None)  # a run is scored by BLEU and chrF; TER takes seconds
    return compare(texts, {run: each.translations for run, each in sets.items()}, chosen, next(iter(sets)))


def sample_sections(record: Record) -> list[Section]:
    """The same sentences as the run learned to translate them."""
    if not record.samples:
        return []
    every = -(-len(record.samples) // SAMPLED_STEPS)
    chosen = record.samples[::-1][::every][::-1]  # the last one always
    parts = []
    for number, first in enumerate(chosen[-1]["samples"]):
        lines: list[tuple[str, object]] = [("source", first.get("source", ""))]
        lines += [("reference", first["reference"])] if first.get("reference") else []
        for row in chosen:
            if number < len(row["samples"]):
                lines.append((f"step {row.get('step', 0):,}", row["samples"][number].get("translation", "")))
        parts.append(entries(lines))
    return [Section("Samples over time", parts)]


def data_sections(record: Record) -> list[Section]:
    """What the cleaning dropped, and what the doctor found."""
    parts: list[Markup] = []
    if record.cleaning is not None:
        cleaning = record.cleaning
        rows = [
            [name, f"{number:,}", f"{number / max(cleaning.read, 1):.1%}", ", ".join(cleaning.examples.get(name, []))]
            for name, number in cleaning.dropped.items()
            if number
        ]
        parts += [paragraph(line) for line in cleaning.lines() if not line.startswith(" ")]
        parts += [table(["filter", "dropped", "share", "for example"], rows)] if rows else []
    if record.findings:
        columns = [
            key for key in ("name", "what", "count", "share", "advice") if any(key in row for row in record.findings)
        ]
        parts.append(paragraph("What the doctor found:"))
        parts.append(table(columns, [[shown(row.get(key, "")) for key in columns] for row in record.findings]))
    return [Section("Data", parts)] if parts else []


def settings(record: Record) -> list[Markup]:
    """What differs from the preset, and on a click all of it."""
    rows = [[name, shown(usual), shown(value)] for name, (usual, value) in record.changes.items()]
    config = record.folder / "config.toml"
    whole = config.read_text(encoding="utf-8") if config.is_file() else ""
    return [
        table(["setting", f"preset {record.preset}", "this run"], rows, fold=50),
        *([folded("all settings", code(whole))] if whole else []),
    ]


def differing(records: Sequence[Record]) -> list[list[str]]:
    configs = [record.config for record in records]
    names = dict.fromkeys(name for config in configs for name in config)
    return [
        [name, *(shown(config.get(name, "–")) for config in configs)]
        for name in names
        if any(config.get(name) != configs[0].get(name) for config in configs)
    ]


def shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def report_dict(records: Sequence[Record]) -> dict[str, Any]:
    """The same for programs."""
    runs = [
        {
            "name": record.name, "folder": str(record.folder), "finished": record.finished, "step": record.step,
            "steps": record.steps, "scores": record.known.get("scores") or {}, "cost": record.cost,
            "tokens_per_s": record.speed, "preset": record.preset,
            "changes": {name: list(change) for name, change in record.changes.items()},
            "cleaning": record.cleaning.to_dict() if record.cleaning else None, "findings": list(record.findings),
        }
        for record in records
    ]  # fmt: skip
    sets = {name: found.to_dict() for name, (found, _) in compared(records).items() if found is not None}
    return {"runs": runs, "sets": sets, "differing": {row[0]: row[1:] for row in differing(records)}}
