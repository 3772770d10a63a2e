"""`sixfold translate` for several documents, or all in a folder: resumable, with a report of what was done."""

from __future__ import annotations

import codecs
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import typer

from sixfold import files
from sixfold.cli.translate_documents import (
    UNTRANSLATED_STATUS,
    check_document_options,
    print_warnings,
    report_values,
    translate_data,
)
from sixfold.cli.translate_options import CommandOptions
from sixfold.errors import ConfigError, DataError, RequestError, SixfoldError
from sixfold.text.encodings import SAMPLE_BYTES, check_utf8
from sixfold.translation.documents.formats import FORMATS, REFUSED, check_options, format_of
from sixfold.translation.documents.steps import Report
from sixfold.translation.loading import checksum_of
from sixfold.translation.translator import Progress, Translator

TEXT_SUFFIXES = (".txt", ".text")
RECORD_NAME = ".sixfold-documents.jsonl"  # in the output folder: the settings, then a line for each finished file


@dataclass(frozen=True)
class InputFile:
    """A file to translate, and where its translation goes below the output folder."""

    path: Path
    relative: Path
    form: str | None  # a key of FORMATS; None: plain text

    def state(self) -> dict[str, Any]:
        """Return what tells whether the file has changed since it was translated."""
        status = self.path.stat()
        return {"file": self.relative.as_posix(), "bytes": status.st_size, "modified": status.st_mtime_ns}


@dataclass
class FolderSummary:
    """What has been done with many documents."""

    translated: int = 0
    earlier: int = 0  # that an earlier run has translated
    untranslated: int = 0  # texts
    failed: list[str] = field(default_factory=list)  # the errors of files that could not be translated

    def status(self) -> int:
        return 2 if self.failed else UNTRANSLATED_STATUS if self.untranslated else 0


def translate_folder(options: CommandOptions, paths: Sequence[Path]) -> None:
    """Translate several documents and text files, or all in a folder, into the folder --output.

    The same command again continues where an earlier run has stopped. A file that cannot be translated is reported, and
    the others are translated all the same.
    """
    check_document_options(options, "several documents")
    if options.output is None:
        raise RequestError("--output: expected a folder for the translations of several files", "name it")
    inputs, left_out = find_inputs(paths, options.output, options.form)
    for name in {each.form for each in inputs}:
        check_options(options.document, name)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    summary = FolderSummary()
    try:
        with ExitStack() as stack:
            stack.enter_context(
                files.lock_folder(options.output, f"--output: {options.output}", "another process writes there")
            )
            record = stack.enter_context(DoneRecord.resume(options.output, folder_settings(options)))
            pending = [each for each in inputs if not record.has(each)]
            summary.earlier = len(inputs) - len(pending)
            if pending:
                translator = stack.enter_context(options.load_translator("auto"))
                advance = stack.enter_context(folder_progress(pending, sys.stderr.isatty()))
                for each in pending:
                    translate_into(options, translator, each, record, summary, advance)
    except KeyboardInterrupt:
        print(f"stopped after {summary.translated} files; run the same command to continue", file=sys.stderr)
        raise
    print_summary(summary, left_out, options.output)
    if summary.status():
        raise typer.Exit(summary.status())


def find_inputs(paths: Sequence[Path], output: Path, form: str | None) -> tuple[list[InputFile], int]:
    """Return the files to translate, and how many files in folders are of no format that can be translated."""
    inputs: dict[Path, InputFile] = {}
    left_out = 0
    for path in paths:
        if path.is_dir():
            below = files_below(path, output)
            of_path = [
                InputFile(each, each.relative_to(path), format_of(each)) for each in below if can_translate(each)
            ]
            left_out += len(below) - len(of_path)
        else:
            of_path = [InputFile(path, Path(path.name), format_of(path, form))]
        for source in of_path:
            other = inputs.setdefault(source.relative, source)
            if other is not source:
                raise ConfigError(
                    f"{source.path}: expected files with different names; {other.path} has the same",
                    "translate them into different folders",
                )
    if not inputs:
        raise DataError(
            f"{', '.join(map(str, paths))}: expected documents or text files; got none",
            f"the formats are txt, {', '.join(FORMATS)}",
        )
    return list(inputs.values()), left_out


def files_below(folder: Path, output: Path) -> list[Path]:
    """Return the files of a folder and its folders, without hidden ones and those in the output folder."""
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and not path.resolve().is_relative_to(output.resolve())
    ]


def can_translate(path: Path) -> bool:
    """Return whether a file in a folder has a format that is translated."""
    suffix = path.suffix.lower()
    return suffix not in REFUSED and (suffix in TEXT_SUFFIXES or format_of(path) is not None)


def folder_settings(options: CommandOptions) -> dict[str, Any]:
    """Return what decides the translations, so that a later run goes on with the same or is refused."""
    checksums = [checksum_of(model) for model in options.models]
    document = options.document
    settings = {
        "models": checksums, **options.request.settings(), "compute": options.compute,
        "columns": list(document.columns), "keys": list(document.keys), "header": document.header,
    }  # fmt: skip
    values: dict[str, Any] = json.loads(json.dumps(settings))
    return values


class DoneRecord:
    """The files of an output folder that are done: a line of JSON for each, after one for the settings.

    A line that a kill has cut short does not count.
    """

    def __init__(self, folder: Path, done: Mapping[str, Mapping[str, Any]], file: BinaryIO) -> None:
        self._folder, self._done, self._file = folder, done, file

    @classmethod
    @contextmanager
    def resume(cls, folder: Path, settings: Mapping[str, Any]) -> Iterator[DoneRecord]:
        """Open the record of a folder, or begin one; raise ConfigError if it was begun with other settings."""
        path = folder / RECORD_NAME
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        complete = [json.loads(line) for line in lines if line.endswith(b"\n")]
        if complete and complete[0] != settings:
            names = [name for name in settings if complete[0].get(name) != settings[name]]
            raise ConfigError(
                f"--output: {folder} was begun with other settings: {', '.join(names)}",
                f"use the same settings to continue, or another --output, or delete {path} to translate all again",
            )
        size = sum(len(line) for line in lines if line.endswith(b"\n"))
        with path.open("r+b" if lines else "wb") as file:
            file.truncate(size)
            file.seek(size)
            record = cls(folder, {each["file"]: each for each in complete[1:]}, file)
            if not complete:
                record.write(settings)
            yield record

    def has(self, each: InputFile) -> bool:
        """Return whether a file has been translated since it was changed."""
        return self._done.get(each.relative.as_posix()) == each.state() and (self._folder / each.relative).exists()

    def write(self, values: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(values, ensure_ascii=False).encode() + b"\n")
        self._file.flush()


def translate_into(
    options: CommandOptions,
    translator: Translator,
    source: InputFile,
    record: DoneRecord,
    summary: FolderSummary,
    advance: Callable[[int, int, int], None],
) -> None:
    """Translate one file into the output folder and write it into the record; note an error in the summary."""
    assert options.output is not None
    output = options.output / source.relative
    try:
        state, data = source.state(), source.path.read_bytes()

        def show(done: int, total: int) -> None:
            advance(state["bytes"], done, total)

        if source.form is None:
            check_utf8(data[:SAMPLE_BYTES], str(source.path))
            translated, report = translate_plain_text(options, translator, data, show)
        else:
            translated, report = translate_data(options, translator, data, source.form, source.path, show)
        output.parent.mkdir(parents=True, exist_ok=True)
        with files.atomic_write(output) as file:
            file.write(translated)
    except (SixfoldError, OSError) as error:
        summary.failed.append(str(error))
        print(f"error: {error}", file=sys.stderr)
        return
    finally:
        advance(source.path.stat().st_size, 0, 0)
    record.write(state)
    summary.translated += 1
    summary.untranslated += report.untranslated
    print_warnings(source.path, report)
    if options.as_json:
        print(json.dumps(report_values(source.path, output, report), ensure_ascii=False), flush=True)


def translate_plain_text(
    options: CommandOptions, translator: Translator, data: bytes, progress: Progress
) -> tuple[bytes, Report]:
    """Return the translation of a text file; bytes that are not UTF-8 are replaced."""
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    text = data.removeprefix(bom).decode(errors="replace")
    (translation,) = translator.translate_request([text], options.request, progress)
    notices = [("1", notice) for notice in translation.warnings]
    return bom + translation.text.encode(), Report(1, 1, 0, notices)


def print_summary(summary: FolderSummary, left_out: int, output: Path) -> None:
    """Print what has been done with many documents."""
    parts = [f"{summary.translated:,} {'file' if summary.translated == 1 else 'files'} translated into {output}"]
    if summary.earlier:
        parts.append(f"{summary.earlier:,} were done before")
    if left_out:
        parts.append(f"{left_out:,} of other formats left out")
    if summary.untranslated:
        parts.append(f"{summary.untranslated:,} texts not translated, so that their documents stay whole")
    if summary.failed:
        parts.append(f"{len(summary.failed):,} failed")
    print("; ".join(parts), file=sys.stderr)


@contextmanager
def folder_progress(inputs: Sequence[InputFile], is_shown: bool) -> Iterator[Callable[[int, int, int], None]]:
    """Show a bar with the remaining time for many files, by their bytes.

    The yielded function takes the bytes of the current file and its sentences, done and in total; a total of 0 ends the
    file.
    """
    if not is_shown:
        yield lambda _bytes, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    count = TextColumn("translating: {task.fields[number]:,} of {task.fields[files]:,} files")
    with Progress(count, BarColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        total_bytes = sum(each.path.stat().st_size for each in inputs)
        task = bar.add_task("translate", total=total_bytes, number=0, files=len(inputs))
        finished = number = 0

        def advance(size: int, done: int, total: int) -> None:
            nonlocal finished, number
            if total == 0:
                finished, number = finished + size, number + 1
            share = done / total if total else 0.0
            bar.update(task, completed=finished + size * share, number=number)

        yield advance
