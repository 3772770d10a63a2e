"""`sixfold clean`: keep the pairs that are worth learning from, and say what became of the others."""

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

from sixfold.audit.findings import condemned
from sixfold.cli.config import Set
from sixfold.cli.options import Command
from sixfold.config import Config, DataConfig, override
from sixfold.data.cleaning import Cleaner, Report
from sixfold.data.corpus import Corpus, Pair, languages_in
from sixfold.errors import ConfigError
from sixfold.files import atomic, check_target
from sixfold.recipe import CorpusConfig


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(clean)


def clean(
    files: Annotated[list[Path], typer.Argument(help="Two files of lines, or one file of pairs: .tsv or .jsonl.")],
    out: Annotated[Path, typer.Option("--output", "-o", help="PREFIX of two files of lines, or one FILE.tsv.")],
    source: Annotated[str, typer.Option("--from", help="Language; left out: by the names, else the script.")] = "",
    target: Annotated[str, typer.Option("--to", help="Language; left out: by the names, else the script.")] = "",
    skip: Annotated[list[str], typer.Option(help="A filter to leave off; repeatable.")] = [],  # noqa: B006
    using: Annotated[Path | None, typer.Option(help="A doctor.json, whose condemned pairs are dropped too.")] = None,
    keep: Annotated[list[str], typer.Option(help="A kind of its findings to leave alone; repeatable.")] = [],  # noqa: B006
    changes: Set = [],  # noqa: B006 -- typer reads the default and never changes it
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON on standard output.")] = False,
) -> None:
    """Drop pairs that are empty, damaged, untranslated or said before, and report how many of each."""
    settings = override(Config(data=DataConfig(source, target, skip=tuple(skip))), changes).data
    config = CorpusConfig(tuple(map(str, files)))
    languages = languages_in(settings, config, Path())
    corpus = Corpus.from_config(config, Path(), languages)
    targets = _targets(out, languages)
    if {check_target(path) for path in targets} & {file.resolve() for file in files}:
        raise ConfigError(f"--output: expected another file than the text; got {out}")
    if keep and using is None:
        raise ConfigError("--keep: expected only with --using, whose findings it is about", "leave it out")
    verdicts = condemned(using, corpus, keep) if using is not None else {}
    cleaner = Cleaner(settings, languages)
    spared = _spared(corpus, _shown(corpus), verdicts, cleaner.report)
    _write(cleaner.clean(corpus, spared), targets, cleaner.report)
    print(*cleaner.report.lines(), f"wrote {', '.join(map(str, targets))}", sep="\n", file=sys.stderr)
    if as_json:
        print(json.dumps(cleaner.report.to_dict(), ensure_ascii=False))


def _targets(out: Path, languages: tuple[str, str]) -> list[Path]:
    if out.suffix == ".tsv":
        return [out]
    if languages[0] == languages[1]:
        languages = ("src", "tgt")
    return [out.with_name(f"{out.name}.{end}") for end in (languages[0] or "src", languages[1] or "tgt")]


def _shown(corpus: Corpus) -> Iterator[Pair]:
    columns = (TextColumn("cleaning"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("clean", total=corpus.size)
        yield from corpus.pairs(lambda size: bar.advance(task, size))


def _spared(corpus: Corpus, pairs: Iterable[Pair], verdicts: Mapping[int, str], report: Report) -> Iterator[Pair]:
    """The pairs that no doctor condemned; the others are counted by their kind."""
    for pair in pairs:
        if pair.line in verdicts:
            report.read += 1
            report.drop(verdicts[pair.line], corpus.where(pair.line))
        else:
            yield pair


def _write(pairs: Iterable[Pair], targets: list[Path], report: Report) -> None:
    """Each target whole, or not at all."""
    with ExitStack() as stack:
        files = [stack.enter_context(atomic(path)) for path in targets]
        for _, source, target in pairs:
            if len(files) == 2:
                files[0].write(f"{source}\n".encode())
                files[1].write(f"{target}\n".encode())
            else:
                # A tab inside a side would make a third column.
                files[0].write("{}\t{}\n".format(source.replace("\t", " "), target.replace("\t", " ")).encode())
        if not report.kept:
            raise report.nothing_left()
