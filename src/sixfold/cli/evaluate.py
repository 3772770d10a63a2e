"""`sixfold evaluate`: translate a test set with each model, score what they say, and tell luck from progress."""

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

from sixfold.cli.options import Command
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

PAIRS = (".tsv", ".jsonl", ".json")


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(evaluate)


def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SYSTEM... SOURCE REFERENCE | SYSTEM... PAIRS.tsv",
            help=f"Models ({MODEL_SUFFIX}) or text files of translations, then the test set.",
        ),
    ],
    out: Annotated[Path | None, typer.Option("--output", "-o", help="A folder for the page, JSON and texts.")] = None,
    baseline: Annotated[Path | None, typer.Option(help="Model or file to compare with; left out: the first.")] = None,
    beam: Annotated[int, typer.Option(min=1, help="How many hypotheses a model follows at once.")] = 4,
    compute: Annotated[str, typer.Option(help="int8, or float32: slower, as in training.")] = "int8",
    language: Annotated[str, typer.Option("--to", help="Language; left out: by the names or the models.")] = "",
    samples: Annotated[int, typer.Option(min=40, max=100_000, help="Resamples behind intervals and p.")] = 1000,
    ter: Annotated[bool, typer.Option("--ter/--no-ter", help="TER is slow on long sentences.")] = True,
    comet: Annotated[Path | None, typer.Option(help="A COMET checkpoint, where COMET is installed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All that is found as JSON on standard output.")] = False,
) -> None:
    """Score systems on a test set, with confidence intervals, against a baseline."""
    systems.require_sacrebleu()
    from sixfold.evaluation.comparison import compare

    baseline = None if baseline is None else find_model(baseline)
    paths, texts = understood(files, baseline, language)
    if out is not None:
        page.make_folder(out)
    named = dict(zip(systems.short_names(paths), paths, strict=True))
    models = {name: systems.open_model(path) for name, path in named.items() if path.suffix == MODEL_SUFFIX}
    texts = replace(texts, language=systems.target_language(texts, list(models.values())))
    measures = chosen_measures(texts, ter, comet)
    decoding = DecodingOptions(beam, cast(Compute, compute))
    said = {
        name: translated(name, models[name], texts, decoding)
        if name in models
        else systems.read_translations(path, len(texts))
        for name, path in named.items()
    }
    first = next(name for name, path in named.items() if baseline is None or path == baseline)
    with bar("scoring", len(said) * len(measures)) as advance:
        found = compare(texts, said, measures, first, samples, lambda doing: advance(1, doing))
    if out is not None:
        write(out, found, said)
    if as_json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        show(found)


def understood(files: Sequence[Path], baseline: Path | None, language: str) -> tuple[list[Path], TestSet]:
    """Which files are systems and which are the test set; the text files among them are looked at before anything."""
    size = 1 if corpus.uncompressed(files[-1]).suffix.lower() in PAIRS else 2
    paths, texts = [find_model(each) for each in files[:-size]], files[-size:]
    if baseline is not None and baseline not in paths:
        paths.insert(0, baseline)
    if not paths or len(texts) < size:
        raise ConfigError(
            f"files: expected systems, then source and reference; got {len(files)}: {', '.join(map(str, files))}",
            f"for example: sixfold evaluate model{MODEL_SUFFIX} test.zh test.en",
        )
    found = systems.read_test_set(texts, language)
    for path in paths:
        if path.suffix != MODEL_SUFFIX:
            systems.read_translations(path, len(found))
    return paths, found


def chosen_measures(texts: TestSet, ter: bool, comet: Path | None) -> dict[str, Metric]:
    from sixfold.evaluation.metrics import metrics_for

    chosen = metrics_for(texts.references, texts.language)
    if not ter:
        chosen.pop("TER", None)
    if comet is not None:
        from sixfold.evaluation.metrics import comet as opened

        chosen["COMET"] = opened(comet, texts.sources, texts.references)
    return chosen


def translated(name: str, model: ModelFile, texts: TestSet, decoding: DecodingOptions) -> list[str]:
    with bar(f"translating with {name}", len(texts)) as advance:
        return systems.translate(model, texts, decoding, lambda count: advance(count, ""))


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """A bar with the time left; what it is told beside a count stands before it."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as shown:
        task = shown.add_task(what, total=total)
        yield lambda count, doing: shown.update(task, advance=count, description=doing or what)


def write(out: Path, found: Comparison, translations: Mapping[str, Sequence[str]]) -> None:
    """The page, the same as JSON, and what each system said."""
    from sixfold.reports.comparison import comparison_page

    page.write(out / "comparison.html", comparison_page("Comparison", found))
    page.write(out / "evaluation.json", json.dumps(found.to_dict(), indent=1, ensure_ascii=False))
    page.make_folder(out / "translations")
    for name, said in translations.items():
        file = re.sub(r"[^\w.-]+", "-", name).strip("-")
        page.write(out / "translations" / f"{file}.txt", "".join(f"{line}\n" for line in said))
    print(f"wrote {out / 'comparison.html'}", file=sys.stderr)


def show(found: Comparison) -> None:
    """For a terminal or a pipe: a row a system, then the signatures."""
    rows = [["system", *found.signatures]]
    for system, scores in found.scores.items():
        cells = [f"{at.value:.2f} [{at.low:.1f}–{at.high:.1f}]" for at in scores.values()]
        marks = [f" p={at.p:.3f}" if at.p is not None else "" for at in scores.values()]
        rows.append([system, *map("".join, zip(cells, marks, strict=True))])
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    for name, signature in found.signatures.items():
        print(f"{name}: {signature}")
    if len(found.systems) > 1:
        print(f"[95% interval], p against {found.baseline}: paired bootstrap of {found.samples:,} resamples")
