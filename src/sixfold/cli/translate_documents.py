"""`sixfold translate` for one document, and what is reported about it."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer

from sixfold import files
from sixfold.cli.translate_input import display_name, open_input, read_all
from sixfold.cli.translate_lines import sentence_progress
from sixfold.cli.translate_options import CommandOptions
from sixfold.errors import RequestError
from sixfold.text.encodings import SAMPLE_BYTES, check_utf8
from sixfold.translation.documents.document import Document
from sixfold.translation.documents.formats import is_archive
from sixfold.translation.documents.steps import Report, translate_read_document
from sixfold.translation.line_translator import NoticeCount, add_notice_count, check_strict, warning_lines
from sixfold.translation.translator import Progress, Translator

UNTRANSLATED_STATUS = 3  # the exit status if texts were left out because they would have damaged a document
MAX_REASONS = 20  # untranslated texts of a document that are named one by one


def translate_document_file(options: CommandOptions, path: Path, form: str) -> None:
    """Translate one document. It is read as a whole, because its parts may depend on each other."""
    check_document_options(options, f"{path}: a document of the format {form}")
    if options.resume:
        raise RequestError(f"{path}: --resume: expected lines or a folder; a document is translated as a whole")
    if options.as_json and options.output is None:
        raise RequestError("--json: expected --output with it, because the report is printed", "name the output")
    if options.output is not None:
        files.check_output_path(options.output)
    with ExitStack() as stack:
        data = read_all(open_input(path, stack, is_binary=is_archive(form)))
        translator = stack.enter_context(options.load_translator("auto"))
        with sentence_progress(sys.stderr.isatty()) as show:
            translated, report = translate_data(options, translator, data, form, path, show)
    if options.output is None:
        sys.stdout.buffer.write(translated)
        sys.stdout.buffer.flush()
    else:
        with files.atomic_write(options.output) as file:
            file.write(translated)
    print_warnings(path, report)
    if options.as_json:
        print(json.dumps(report_values(path, options.output, report), ensure_ascii=False))
    if report.untranslated:
        raise typer.Exit(UNTRANSLATED_STATUS)


def check_document_options(options: CommandOptions, subject: str) -> None:
    """Raise RequestError for options that documents do not have."""
    if options.details or options.request.options.n_best > 1 or options.request.options.prefix:
        raise RequestError(
            f"{subject}: expected none of --details, --n-best and --prefix", "--format text translates its lines"
        )


def translate_data(
    options: CommandOptions, translator: Translator, data: bytes, form: str, path: Path, progress: Progress | None
) -> tuple[bytes, Report]:
    """Return the translation of a document."""
    if not is_archive(form):
        check_utf8(data[:SAMPLE_BYTES], display_name(path))
    document = Document.read(data, form, display_name(path), options.document)
    translated, report = translate_read_document(translator, document, options.request, progress)
    if options.strict:
        check_strict(notice_counts(path, report))
    return translated, report


def notice_counts(path: Path, report: Report) -> dict[str, NoticeCount]:
    """Return how many texts of a document have a notice of each kind, and the first of them."""
    counts: dict[str, NoticeCount] = {}
    for location, notice in report.notices:
        add_notice_count(counts, notice.kind, NoticeCount(1, f"{display_name(path)}:{location}", notice.message))
    return counts


def print_warnings(path: Path, report: Report) -> None:
    """Print the untranslated texts of a document one by one, and a line for each other kind of notice."""
    counts = notice_counts(path, report)
    counts.pop("untranslated", None)
    for line in warning_lines(0, "", counts):
        print(f"warning: {line}", file=sys.stderr)
    reasons = [(location, notice.message) for location, notice in report.notices if notice.kind == "untranslated"]
    for location, message in reasons[:MAX_REASONS]:
        print(f"warning: {display_name(path)}:{location}: {message}", file=sys.stderr)
    if report.untranslated:
        print(
            f"warning: {display_name(path)}: {report.untranslated:,} of {report.units:,} texts were not translated, "
            "so that the document stays whole",
            file=sys.stderr,
        )


def report_values(path: Path, output: Path | None, report: Report) -> dict[str, Any]:
    """Return a report as values that JSON can hold."""
    return {
        "file": display_name(path), "output": None if output is None else str(output), "texts": report.units,
        "translated": report.translated, "untranslated": report.untranslated,
        "copied": len(report.copied),
        "warnings": [{"location": location, **notice._asdict()} for location, notice in report.notices],
    }  # fmt: skip
