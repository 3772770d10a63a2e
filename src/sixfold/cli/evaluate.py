"""`sixfold evaluate`: translates a test set with each model, scores the results, and tests the differences."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sixfold.cli.options import Command, JsonOption
from sixfold.config import Compute
from sixfold.data import corpus
from sixfold.errors import ConfigError
from sixfold.evaluation import systems
from sixfold.evaluation.systems import MODEL_SUFFIX, DecodingOptions, TestSet
from sixfold.modelfile import ModelFile
from sixfold.reports import page
from sixfold.translation.loading import find_model

if TYPE_CHECKING:  # these need sacreBLEU
    from sixfold.evaluation.comparison import Comparison
    from sixfold.evaluation.metrics import Metric

PAIR_SUFFIXES = (".tsv", ".jsonl", ".json")


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(evaluate)


def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SYSTEM... SOURCE REFERENCE | SYSTEM... PAIRS.tsv",
            help=f"Models ({MODEL_SUFFIX}) or text files with translations, then the test set: source and reference.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write a page, the scores and the translations to this folder."),
    ] = None,
    baseline: Annotated[Path | None, typer.Option(help="Compare with this system. Default: the first.")] = None,
    beam: Annotated[int, typer.Option(min=1, help="Keep this many hypotheses in the beam search.")] = 4,
    compute: Annotated[
        str, typer.Option(help="Calculate in int8, or in float32, which is slower and what training uses.")
    ] = "int8",
    language: Annotated[
        str, typer.Option("--to", help="Language of the references. Default: by the file names or the models.")
    ] = "",
    samples: Annotated[
        int,
        typer.Option(
            min=40, max=100_000, help="Draw this many bootstrap samples for confidence intervals and p-values."
        ),
    ] = 1000,
    ter: Annotated[bool, typer.Option("--ter/--no-ter", help="Compute TER. It is slow on long sentences.")] = True,
    comet: Annotated[
        Path | None, typer.Option(help="Compute COMET with this checkpoint. COMET must be installed.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Score translation systems on a test set, with confidence intervals, and compare them with a baseline."""
    systems.require_sacrebleu()
    from sixfold.evaluation.comparison import compare

    baseline = None if baseline is None else find_model(baseline)
    paths, test_set = split_arguments(files, baseline, language)
    if out is not None:
        page.make_folder(out)
    names = dict(zip(systems.short_names(paths), paths, strict=True))
    models = {name: systems.open_model(path) for name, path in names.items() if path.suffix == MODEL_SUFFIX}
    test_set = replace(test_set, language=systems.target_language(test_set, list(models.values())))
    measures = choose_measures(test_set, ter, comet)
    decoding = DecodingOptions(beam, cast(Compute, compute))
    translations = {
        name: translate_with(name, models[name], test_set, decoding)
        if name in models
        else systems.read_translations(path, len(test_set))
        for name, path in names.items()
    }
    baseline_name = next(name for name, path in names.items() if baseline is None or path == baseline)
    with progress("scoring", len(translations) * len(measures)) as advance:
        comparison = compare(
            test_set, translations, measures, baseline_name, samples, lambda activity: advance(1, activity)
        )
    if out is not None:
        write(out, comparison, translations)
    if as_json:
        print(json.dumps(comparison.to_dict(), ensure_ascii=False))
    else:
        show(comparison)


def split_arguments(files: Sequence[Path], baseline: Path | None, language: str) -> tuple[list[Path], TestSet]:
    """Return the systems and the test set of the command line.

    All text files are read, so that a mistake in them shows before any model is loaded.
    """
    size = 1 if corpus.uncompressed_name(files[-1]).suffix.lower() in PAIR_SUFFIXES else 2
    paths, test_files = [find_model(each) for each in files[:-size]], files[-size:]
    if baseline is not None and baseline not in paths:
        paths.insert(0, baseline)
    if not paths or len(test_files) < size:
        raise ConfigError(
            f"files: expected systems, then source and reference; got {len(files)}: {', '.join(map(str, files))}",
            f"for example: sixfold evaluate model{MODEL_SUFFIX} test.zh test.en",
        )
    test_set = systems.read_test_set(test_files, language)
    for path in paths:
        if path.suffix != MODEL_SUFFIX:
            systems.read_translations(path, len(test_set))
    return paths, test_set


def choose_measures(test_set: TestSet, ter: bool, comet: Path | None) -> dict[str, Metric]:
    """Return BLEU and chrF, and TER and COMET if they are wanted, by name."""
    from sixfold.evaluation.metrics import metrics_for

    chosen = metrics_for(test_set.references, test_set.language)
    if not ter:
        chosen.pop("TER", None)
    if comet is not None:
        from sixfold.evaluation.metrics import comet as load_comet

        chosen["COMET"] = load_comet(comet, test_set.sources, test_set.references)
    return chosen


def translate_with(name: str, model: ModelFile, test_set: TestSet, decoding: DecodingOptions) -> list[str]:
    with progress(f"translating with {name}", len(test_set)) as advance:
        return systems.translate(model, test_set, decoding, lambda count: advance(count, ""))


@contextmanager
def progress(description: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Show a bar with the remaining time. The yielded function advances it and may change its description."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(description, total=total)
        yield lambda count, activity: bar.update(task, advance=count, description=activity or description)


def write(out: Path, comparison: Comparison, translations: Mapping[str, Sequence[str]]) -> None:
    """Write the page, the same as JSON, and the translations of each system."""
    from sixfold.reports.comparison import comparison_page

    page.write(out / "comparison.html", comparison_page("Comparison", comparison))
    page.write(out / "evaluation.json", json.dumps(comparison.to_dict(), indent=1, ensure_ascii=False))
    page.make_folder(out / "translations")
    for name, lines in translations.items():
        file = re.sub(r"[^\w.-]+", "-", name).strip("-")
        page.write(out / "translations" / f"{file}.txt", "".join(f"{line}\n" for line in lines))
    print(f"wrote {out / 'comparison.html'}", file=sys.stderr)


def show(comparison: Comparison) -> None:
    """Print a table with a row for each system, then the signatures of the scores."""
    rows = [["system", *comparison.signatures]]
    for system, scores in comparison.scores.items():
        cells = [f"{score.value:.2f} [{score.low:.1f}–{score.high:.1f}]" for score in scores.values()]
        p_values = [f" p={score.p:.3f}" if score.p is not None else "" for score in scores.values()]
        rows.append([system, *map("".join, zip(cells, p_values, strict=True))])
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    for name, signature in comparison.signatures.items():
        print(f"{name}: {signature}")
    if len(comparison.systems) > 1:
        print(f"[95% interval], p against {comparison.baseline}: paired bootstrap of {comparison.samples:,} resamples")
