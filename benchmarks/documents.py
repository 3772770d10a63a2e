"""Translate a folder of real documents and check every translation with readers that are not those of Sixfold.

    python benchmarks/collect_documents.py DIR
    python benchmarks/documents.py DIR                    with the model in the package
    python benchmarks/documents.py DIR --engine hostile   with a decoder that damages what it can, in the same pipeline
    python benchmarks/documents.py DIR --engine lawless   with a translator that does so
    python benchmarks/documents.py DIR --office           convert translated office documents with LibreOffice too

What is counted, for each format:
  malformed   translations that the checker of the format does not accept although it accepts the source
  lost        placeholders, tags, links and code that a translation lacks, has too often or has in another place
  refused     documents that Sixfold does not read; of these, "wrongly" are those that the checker accepts
  unchecked   documents that the checker does not accept but Sixfold does
  units       texts with a word to translate; the share of them that is translated, and the share that stays as it is
              because the translations failed verification
  codes       the other texts in letters of the language of the document. A word to translate has two letters or more,
              and is not: in a part that must be copied, such as an address or a placeholder; with a digit or a sign of
              code in it (_ = ( ) [ ] < > { } / \\ | $ ^ @ # + ~, or a dot or colon before a letter) or a hyphen before
              it; with a capital after a small letter. Chinese characters, names and acronyms are words.

DIR is what collect_documents.py made, or a folder of documents of which each is in a folder with the name of its kind.
The checkers: lxml, html5lib, docutils, markdown-it-py, polib, PyYAML, python-docx, python-pptx, openpyxl, odfpy, and
msgfmt and mandoc if they are installed. Sixfold uses markdown-it-py and PyYAML too, and Python's json and csv. The exit
status is 1 if anything is malformed, lost, or wrongly refused.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import document_readers
import office_readers
from collect_documents import catalogue_language, document_language
from document_outlines import Block, Fault, MalformedError, compare
from hostile_translator import LawlessTranslator, hostile_translator

from sixfold import Translator
from sixfold.errors import SixfoldError
from sixfold.text.language_codes import normalise_code
from sixfold.translation.documents.document import Document
from sixfold.translation.documents.formats import FORMATS, format_of
from sixfold.translation.documents.placement import text_to_translate
from sixfold.translation.documents.steps import is_prose, translate_read_document
from sixfold.translation.options import TranslateOptions
from sixfold.translation.protection import Edit, apply_edits, protected_spans
from sixfold.translation.request import TranslationRequest

Reader = Callable[[bytes], list[Block]]
READERS: dict[str, Reader] = {
    "docx": office_readers.read_docx, "pptx": office_readers.read_pptx, "xlsx": office_readers.read_xlsx,
    "odt": office_readers.read_odf, "odp": office_readers.read_odf, "ods": office_readers.read_odf,
    "epub": office_readers.read_epub, "xliff": office_readers.read_xliff, "po": document_readers.read_po,
    "json": document_readers.read_json, "yaml": document_readers.read_yaml, "html": document_readers.read_html,
    "markdown": document_readers.read_markdown, "rst": document_readers.read_rst, "man": document_readers.read_man,
    "latex": document_readers.read_latex, "srt": document_readers.read_subtitles,
    "vtt": document_readers.read_subtitles, "csv": document_readers.read_csv,
    "tsv": lambda data: document_readers.read_csv(data, "\t"),
}  # fmt: skip
OFFICE = ("docx", "pptx", "odt", "odp", "ods", "xlsx")
MAX_OFFICE = 20  # documents that LibreOffice converts


@dataclass
class Measurement:
    """What came of one document."""

    file: str
    form: str
    outcome: str  # translated, refused, wrongly refused, unchecked, crashed, or not registered
    message: str = ""
    faults: list[Fault] = field(default_factory=list)
    units: int = 0  # with a word to translate
    translated: int = 0
    untranslated: int = 0  # because of verification
    codes: int = 0
    seconds: float = 0.0
    copied: list[str] = field(default_factory=list)  # texts of units that are their own translations
    reasons: list[str] = field(default_factory=list)  # why units are untranslated


@dataclass
class Row:
    """The sums for one format."""

    documents: int = 0
    malformed: int = 0
    damaged: int = 0  # documents that lost or gained something
    lost: int = 0  # what they lost or gained
    refused: int = 0
    wrongly_refused: int = 0
    crashed: int = 0
    unchecked: int = 0
    units: int = 0
    translated: int = 0
    untranslated: int = 0
    codes: int = 0
    seconds: float = 0.0

    def add(self, measurement: Measurement) -> None:
        kinds = [fault.kind for fault in measurement.faults]
        self.documents += 1
        self.malformed += "malformed" in kinds
        self.lost += sum(kind != "malformed" for kind in kinds)
        self.damaged += any(kind != "malformed" for kind in kinds)
        self.refused += "refused" in measurement.outcome
        self.wrongly_refused += measurement.outcome == "wrongly refused"
        self.crashed += measurement.outcome == "crashed"
        self.unchecked += measurement.outcome == "unchecked"
        for name in ("units", "translated", "untranslated", "codes", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(measurement, name))

    def cells(self) -> list[str]:
        counts = [
            self.documents,
            self.malformed,
            f"{self.lost} in {self.damaged}",
            f"{self.refused} ({self.wrongly_refused})",
        ]
        shares = [f"{count / max(1, self.units):.1%}" for count in (self.translated, self.untranslated)]
        return [
            str(cell)
            for cell in (*counts, self.crashed, self.unchecked, self.units, *shares, self.codes, f"{self.seconds:.1f}")
        ]


COLUMNS = (
    "format", "documents", "malformed", "lost", "refused (wrongly)", "crashed", "unchecked", "units", "translated",
    "failed verification", "codes", "seconds",
)  # fmt: skip


# What a word may not have in it: a digit or a sign of code, a capital after a small letter, a dot before a letter.
_CODE = re.compile(r"[\d_=()\[\]<>{}/\\|$^@#+~]|[a-z][A-Z]|[.:]+\w|^-")
_AROUND_WORDS = "\"'“”‘’`*([{<>}]).,;:!?…"


def has_word(text: str) -> bool:
    """Return whether a text has a word to translate."""
    kept = apply_edits(text, [Edit(span, " ") for span in protected_spans(text)])
    if re.search("[\u4e00-\u9fff]", kept):
        return True
    words = (word.strip(_AROUND_WORDS) for word in kept.split())
    return any(len(re.findall(r"[^\W\d_]", word)) > 1 and not _CODE.search(word) for word in words)


def outline_of(form: str, data: bytes) -> list[Block] | None:
    """Return the outline of a document; None if the checker of its format does not accept it."""
    try:
        return READERS[form](data)
    except MalformedError:
        return None


def faults_of(form: str, source: bytes, translation: bytes) -> list[Fault]:
    """Return what is wrong with the translation of a document that the checker of its format accepts."""
    before = READERS[form](source)
    try:
        return compare(before, READERS[form](translation))
    except MalformedError as error:
        return [Fault("malformed", str(error)[:300])]


def measure(path: Path, form: str, language: str, translator: Any) -> tuple[Measurement, bytes]:
    """Translate a document into the other language and check the result, which is returned too."""
    data = path.read_bytes()
    measurement = Measurement(f"{path.parent.name}/{path.name}", form, "translated")
    languages = ("en", "zh") if language == "en" else ("zh", "en")
    if language == "en" and normalise_code(catalogue_language(form, data) or "") == "zh-Hant":
        languages = ("en", "zh-Hant")
    is_accepted = outline_of(form, data) is not None
    if isinstance(translator, LawlessTranslator):
        translator.languages = languages
    start = time.perf_counter()
    try:
        document = Document.read(data, form, path.name)
        request = TranslationRequest(*languages, TranslateOptions())
        output, report = translate_read_document(translator, document, request)
    except SixfoldError as error:
        measurement.outcome, measurement.message = "wrongly refused" if is_accepted else "refused", str(error)
        return measurement, data
    except Exception as error:
        measurement.outcome, measurement.message = "crashed", f"{type(error).__name__}: {error}"
        return measurement, data
    measurement.seconds = time.perf_counter() - start
    texts = [text_to_translate(unit).text for part in document.parts.values() for unit in part.units]
    texts = [text for text in texts if is_prose(text, languages)]
    measurement.copied = [text for text in report.copied if has_word(text)]
    measurement.units = sum(map(has_word, texts))
    measurement.codes = len(texts) - measurement.units
    measurement.untranslated = report.untranslated
    measurement.translated = measurement.units - len(measurement.copied) - report.untranslated
    measurement.reasons = [
        f"{where}: {notice.message}" for where, notice in report.notices if notice.kind == "untranslated"
    ]
    if is_accepted:
        measurement.faults = faults_of(form, data, output)
    else:
        measurement.outcome = "unchecked"
    return measurement, output


def documents_in(folder: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield the documents of a folder, each with its format and its language."""
    folder = folder / "documents" if (folder / "documents").is_dir() else folder
    manifest = folder / "manifest.jsonl"
    if manifest.exists():
        for values in map(json.loads, manifest.read_text(encoding="utf-8").splitlines()):
            path = folder / values["file"]
            yield path, form_of(path), values["language"]
        return
    for path in sorted(folder.glob("*/*")):
        language = document_language(path.parent.name, path.name, path.read_bytes()) or "en"
        yield path, form_of(path), language


def form_of(path: Path) -> str:
    """Return the format of a document by its folder, or else by its suffix; one that is not registered yet, too."""
    kind = path.parent.name
    suffix = path.suffix.lower().removeprefix(".")
    if kind in READERS:
        return kind
    if suffix in READERS:
        return suffix
    try:
        return format_of(path) or kind
    except SixfoldError:
        return kind


def chosen(
    documents: Iterable[tuple[Path, str, str]], formats: Sequence[str], limit: int | None, max_bytes: int | None
) -> list[tuple[Path, str, str]]:
    """Return the documents to measure: of some formats, at most `limit` of each, none larger than `max_bytes`."""
    counts: dict[str, int] = {}
    result = []
    for path, form, language in documents:
        is_wanted = (not formats or form in formats) and (max_bytes is None or path.stat().st_size <= max_bytes)
        if is_wanted and (limit is None or counts.get(form, 0) < limit):
            counts[form] = counts.get(form, 0) + 1
            result.append((path, form, language))
    return result


def table(measurements: Sequence[Measurement]) -> list[str]:
    rows = {form: Row() for form in dict.fromkeys(each.form for each in measurements)}
    total = Row()
    for each in measurements:
        rows[each.form].add(each)
        total.add(each)
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    return lines + [f"| {' | '.join([name, *row.cells()])} |" for name, row in [*rows.items(), ("all", total)]]


def is_good(measurement: Measurement) -> bool:
    return not measurement.faults and measurement.outcome not in ("wrongly refused", "crashed", "not registered")


def show(measurement: Measurement) -> None:
    if not is_good(measurement):
        print(f"{measurement.form} {measurement.file}: {measurement.outcome} {measurement.message}"[:400])
        for fault in measurement.faults[:5]:
            print(f"    {fault.kind}: {fault.message}"[:400])


def check_office(outputs: dict[str, bytes]) -> bool:
    """Convert translated documents with LibreOffice and say which it does not convert."""
    office = shutil.which("libreoffice") or shutil.which("soffice")
    if office is None:
        print("LibreOffice is not installed", file=sys.stderr)
        return False
    with tempfile.TemporaryDirectory() as temporary:
        files = []
        for number, (name, data) in enumerate(outputs.items()):
            files.append(Path(temporary) / f"{number}{Path(name).suffix}")
            files[-1].write_bytes(data)
        failed = office_readers.convert_to_pdf(office, files, Path(temporary))
        names = list(outputs)
        print(f"LibreOffice converts {len(files) - len(failed)} of {len(files)} documents")
        for name in failed:
            print(f"    not converted: {names[int(Path(name).stem)]}")
    return not failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--engine", choices=("shipped", "hostile", "lawless"), default="shipped")
    parser.add_argument("--seed", type=int, default=0, help="of the hostile engine")
    parser.add_argument("--formats", nargs="+", default=[])
    parser.add_argument("--only", help="documents whose names have this in them")
    parser.add_argument("--limit", type=int, help="documents of each format")
    parser.add_argument("--max-bytes", type=int, help="of a document")
    parser.add_argument("--minutes", type=float, help="stop with the last document that begins in this time")
    parser.add_argument("--output", type=Path, help="write the translated documents into this folder")
    parser.add_argument("--office", action="store_true", help=f"convert {MAX_OFFICE} office documents with LibreOffice")
    parser.add_argument("--json", type=Path, help="write what came of each document to this file")
    args = parser.parse_args()
    start = time.monotonic()
    translator = {
        "shipped": lambda: Translator(device="cpu"),
        "hostile": lambda: hostile_translator(args.seed),
        "lawless": lambda: LawlessTranslator(seed=args.seed),
    }[args.engine]()
    measurements, office = [], {}
    found = [each for each in documents_in(args.dir) if args.only is None or args.only in each[0].name]
    for path, form, language in chosen(found, args.formats, args.limit, args.max_bytes):
        if args.minutes is not None and time.monotonic() - start > 60 * args.minutes:
            break
        if form not in FORMATS or form not in READERS:
            measurements.append(Measurement(f"{path.parent.name}/{path.name}", form, "not registered"))
            continue
        measurement, output = measure(path, form, language, translator)
        measurements.append(measurement)
        show(measurement)
        if args.output:
            (args.output / form).mkdir(parents=True, exist_ok=True)
            (args.output / form / path.name).write_bytes(output)
        if form in OFFICE and measurement.outcome == "translated" and len(office) < MAX_OFFICE:
            office[measurement.file] = output
    print("\n".join(table(measurements)))
    if args.json:
        args.json.write_text(
            json.dumps([asdict(each) for each in measurements], ensure_ascii=False, indent=1), encoding="utf-8"
        )
    converted = not args.office or check_office(office)
    sys.exit(0 if converted and all(map(is_good, measurements)) else 1)


if __name__ == "__main__":
    main()
