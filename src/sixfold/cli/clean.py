"""`sixfold clean`: keeps the pairs that are worth learning from, and reports why the others were dropped."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sixfold.audit.findings import faulty_lines
from sixfold.cli.options import PAIR_FILES_HELP, Command, SetOption
from sixfold.config import Config, DataConfig, override
from sixfold.data.cleaning import Cleaner, CleaningReport
from sixfold.data.corpus import Corpus, Pair, detect_languages
from sixfold.errors import ConfigError
from sixfold.files import atomic_write, check_output_path
from sixfold.recipe import CorpusConfig


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(clean)


def clean(
    files: Annotated[list[Path], typer.Argument(help=PAIR_FILES_HELP)],
    out: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Write FILE.tsv, or two text files that start with PREFIX, for example PREFIX.zh and PREFIX.en.",
        ),
    ],
    source: Annotated[
        str, typer.Option("--from", help="Language of the source. Default: by the file names, otherwise by the script.")
    ] = "",
    target: Annotated[
        str, typer.Option("--to", help="Language of the target. Default: by the file names, otherwise by the script.")
    ] = "",
    skip: Annotated[list[str], typer.Option(help="Switch off this filter. Can be repeated.")] = [],  # noqa: B006
    using: Annotated[
        Path | None,
        typer.Option(help="Also drop the pairs that are rejected in this doctor.json, which `sixfold doctor` writes."),
    ] = None,
    keep: Annotated[
        list[str], typer.Option(help="With --using, keep pairs with this kind of finding. Can be repeated.")
    ] = [],  # noqa: B006
    changes: SetOption = [],  # noqa: B006 -- typer reads the default and never changes it
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Drop sentence pairs that are empty, damaged, untranslated or repeated, and report how many of each."""
    settings = override(Config(data=DataConfig(source, target, skip=tuple(skip))), changes).data
    config = CorpusConfig(tuple(map(str, files)))
    languages = detect_languages(settings, config, Path())
    corpus = Corpus.from_config(config, Path(), languages)
    targets = _targets(out, languages)
    if {check_output_path(path) for path in targets} & {file.resolve() for file in files}:
        raise ConfigError(f"--output: expected a file other than the input; got {out}")
    if keep and using is None:
        raise ConfigError("--keep: expected only together with --using", "leave it out")
    rejected = faulty_lines(using, corpus, keep) if using is not None else {}
    cleaner = Cleaner(settings, languages)
    pairs = _without_rejected(corpus, _with_progress(corpus), rejected, cleaner.report)
    _write(cleaner.clean(corpus, pairs), targets, cleaner.report)
    print(*cleaner.report.lines(), f"wrote {', '.join(map(str, targets))}", sep="\n", file=sys.stderr)
    if as_json:
        print(json.dumps(cleaner.report.to_dict(), ensure_ascii=False))


def _targets(out: Path, languages: tuple[str, str]) -> list[Path]:
    """Return the file or the two files to write."""
    if out.suffix == ".tsv":
        return [out]
    if languages[0] == languages[1]:
        languages = ("src", "tgt")
    return [out.with_name(f"{out.name}.{end}") for end in (languages[0] or "src", languages[1] or "tgt")]


def _with_progress(corpus: Corpus) -> Iterator[Pair]:
    """Yield the pairs of a corpus while a progress bar is shown."""
    columns = (TextColumn("cleaning"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("clean", total=corpus.size)
        yield from corpus.pairs(lambda size: bar.advance(task, size))


def _without_rejected(
    corpus: Corpus, pairs: Iterable[Pair], rejected: Mapping[int, str], report: CleaningReport
) -> Iterator[Pair]:
    """Yield the pairs whose line is not rejected; count the others in the report by the kind of their finding."""
    for pair in pairs:
        if pair.line in rejected:
            report.read += 1
            report.drop(rejected[pair.line], corpus.where(pair.line))
        else:
            yield pair


def _write(pairs: Iterable[Pair], targets: list[Path], report: CleaningReport) -> None:
    """Write the pairs. Each file is written completely or not at all."""
    with ExitStack() as stack:
        files = [stack.enter_context(atomic_write(path)) for path in targets]
        for _, source, target in pairs:
            if len(files) == 2:
                files[0].write(f"{source}\n".encode())
                files[1].write(f"{target}\n".encode())
            else:
                # A tab inside a sentence would start a third column.
                files[0].write("{}\t{}\n".format(source.replace("\t", " "), target.replace("\t", " ")).encode())
        if not report.kept:
            raise report.nothing_left()
