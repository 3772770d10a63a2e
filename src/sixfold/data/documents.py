"""Documents to learn a language from: plain text, cut at blank lines or line by line, and JSON lines with `text`.

Prompts with answers, which a model is fine-tuned on, are read here too. Files are read as streams, compressed or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sixfold.config import DataConfig, Documents
from sixfold.data.cleaning import PASSED, REPLACEMENT, CleaningReport, HashSet, hash_record
from sixfold.data.corpus import (
    RECORDS,
    Corpus,
    Fingerprint,
    Progress,
    as_text,
    parse_record,
    read_corpus_lines,
    uncompressed_name,
)
from sixfold.errors import DataError

TEXT, ANSWERS = ("text",), ("prompt", "answer")  # the columns of a document, and of a prompt with its answer
MAX_DOCUMENT_CHARACTERS = 2**20  # a longer text without a blank line is cut after the line that reaches this
# A text has documents if this many are separated by blank lines at its beginning, and their lines are not too many.
MIN_DOCUMENTS = 20
MAX_LINES_PER_DOCUMENT = 1000
SAMPLE_LINES = 100_000


class Document(NamedTuple):
    """A text, and the number of its first line, counted from 1."""

    line: int
    text: str


class Answer(NamedTuple):
    """A prompt, the text that should follow it, and the number of their line, counted from 1."""

    line: int
    prompt: str
    answer: str


@dataclass(frozen=True)
class TextCorpus(Corpus):
    """A file of documents, or one or two files of prompts with answers."""

    contents: tuple[str, ...] = TEXT  # the columns of its records
    documents: Documents = "lines"  # of a plain text: where one ends

    def __post_init__(self) -> None:
        if self.contents == TEXT and len(self.files) > 1:
            raise DataError(
                f"corpus.files: expected one file of text; got {len(self.files)}",
                "write a [[corpus]] table for each file",
            )
        if self.contents == ANSWERS and len(self.files) == 1 and self.format not in (".tsv", *RECORDS):
            raise DataError(
                f"{self.files[0]}: expected prompts with answers to end in .tsv, {' or '.join(RECORDS)}",
                "name two files of lines: the prompts, then the answers",
            )

    def records(self, advance: Progress | None = None, fingerprint: Fingerprint | None = None) -> Iterator[Any]:
        """Yield every document, or every prompt with its answer, in order."""
        before = self.stamp()
        if self.format in RECORDS:
            yield from self._json_records(advance, fingerprint)
        elif self.contents == ANSWERS:
            yield from (Answer(*pair) for pair in self.pairs(advance, fingerprint))
        else:
            lines = read_corpus_lines(self.files[0], advance, fingerprint)
            yield from blocks(lines) if self.documents == "blocks" else single_lines(lines)
        self.refuse_changes(before)

    def _json_records(self, advance: Progress | None, fingerprint: Fingerprint | None) -> Iterator[Any]:
        make = Document if self.contents == TEXT else Answer
        for line, raw in enumerate(read_corpus_lines(self.files[0], advance, fingerprint), start=1):
            if raw.strip():
                where = f"{self.files[0]}:{line}"
                record = parse_record(raw, where)
                yield make(line, *(text_field(record, name, where) for name in self.columns or self.contents))


def text_field(record: dict[str, Any], name: str, where: str) -> str:
    """Return a field of a JSON object as text, with its line breaks."""
    if name not in record:
        raise DataError(f"{where}: expected a field {name}; got {', '.join(record)[:100] or 'none'}")
    return as_text(record[name], f"{where}: {name}").replace("\r\n", "\n").strip("\n")


def single_lines(lines: Iterator[str]) -> Iterator[Document]:
    """Yield every line that is not blank as a document."""
    return (Document(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip())


def blocks(lines: Iterator[str]) -> Iterator[Document]:
    """Yield the lines between blank lines as one document each."""
    block: list[str] = []
    first, characters = 1, 0
    for number, line in enumerate(lines, start=1):
        if block and (not line.strip() or characters >= MAX_DOCUMENT_CHARACTERS):
            yield Document(first, "\n".join(block))
            block, characters = [], 0
        if line.strip():
            first = first if block else number
            block.append(line.rstrip())
            characters += len(line)
    if block:
        yield Document(first, "\n".join(block))


def detect_documents(file: Path) -> Documents:
    """Return whether the beginning of a plain text has documents between blank lines; else its lines are documents."""
    lines = list(map(bool, map(str.strip, islice(read_corpus_lines(file), SAMPLE_LINES))))
    documents = sum(is_text and not before for before, is_text in zip([False, *lines], lines, strict=False))
    return "blocks" if documents >= max(MIN_DOCUMENTS, len(lines) / MAX_LINES_PER_DOCUMENT) else "lines"


def has_answers(files: Sequence[Path]) -> bool:
    """Return whether files hold prompts with answers: two files, a TSV, or JSON lines that begin with such a record."""
    ending = uncompressed_name(files[0]).suffix.lower()
    if len(files) == 2 or ending == ".tsv":
        return True
    if ending not in RECORDS:
        return False
    first = next((line for line in read_corpus_lines(files[0]) if line.strip()), "{}")
    return set(ANSWERS) <= parse_record(first, f"{files[0]}:1").keys()


class TextCleaner:
    """Drops texts that are empty, that were not UTF-8, or that came before."""

    FILTERS: ClassVar[dict[str, Any]] = {
        "empty": lambda texts: not all(map(str.strip, texts)),
        "encoding": lambda texts: any(REPLACEMENT in text for text in texts),
    }

    def __init__(self, config: DataConfig, seen: HashSet) -> None:
        enabled = [name for name in (*self.FILTERS, "duplicate") if name not in config.skip]
        self.seen = seen
        self.report = CleaningReport(dropped=dict.fromkeys(enabled, 0))
        self._filters = [name for name in enabled if name in self.FILTERS]
        self._drops_duplicates = "duplicate" in enabled

    def apply_filters(self, records: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of the filter that drops each record, or PASSED, and a hash of each record that passes."""
        filters = np.fromiter(map(self._first_filter, records), np.uint8, len(records))
        hashes = [hash_record(*record[1:]) for record in compress(records, filters == PASSED)]
        return filters, np.frombuffer(b"".join(hashes), np.uint64)

    def select(
        self, corpus: Corpus, records: Sequence[Any], results: tuple[np.ndarray, np.ndarray]
    ) -> tuple[list[Any], np.ndarray]:
        """Return the records that pass and are no duplicates, and their hashes; count all records in the report."""
        filters, hashes = results
        self.report.read += len(records)
        for record, number in zip(records, filters.tolist(), strict=True):
            if number != PASSED:
                self.report.drop(self._filters[number], corpus.where(record.line))
        passing = list(compress(records, filters == PASSED))
        new = self.seen.add(hashes) if self._drops_duplicates else np.ones(len(passing), bool)
        for record in compress(passing, ~new):
            self.report.drop("duplicate", corpus.where(record.line))
        self.report.kept += int(new.sum())
        return list(compress(passing, new)), hashes[new]

    def _first_filter(self, record: Any) -> int:
        texts = record[1:]
        return next((number for number, name in enumerate(self._filters) if self.FILTERS[name](texts)), PASSED)
