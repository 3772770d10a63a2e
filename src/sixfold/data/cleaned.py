"""Which rows of the raw corpora to learn from: cleaned once, resumable, and remembered as line numbers and hashes.

The text is not copied: later passes read the raw files again and take the lines that were kept. A row costs eight bytes
of memory while duplicates are looked for.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from sixfold import files
from sixfold.data.array_log import ArrayLog
from sixfold.data.cleaning import CleaningReport, HashSet
from sixfold.data.corpus import Corpus, Fingerprint
from sixfold.data.workers import map_in_order, processes_for

ROWS_PER_COMMIT = 20_000
CHARACTERS_PER_COMMIT = 2**24  # of long documents, fewer are in memory at once
Advance = Callable[[int], None]  # is called with the bytes read from disk; it may raise to stop
Record = Any  # a named tuple: `line`, counted from 1, and then one text for each column


@runtime_checkable
class RecordCleaner(Protocol):
    """The filters of a task. Several processes may share the first step; the second sees all records in order."""

    report: CleaningReport

    def apply_filters(self, records: Sequence[Record]) -> Any:
        """Look at each record alone and return results for `select`. Nothing is changed; the results are pickled."""
        ...

    def select(self, corpus: Corpus, records: Sequence[Record], results: Any) -> tuple[list[Record], np.ndarray]:
        """Return the records to keep and a 64-bit hash of each; count all of them in the report."""
        ...


@runtime_checkable
class RecordReader(Protocol):
    """What a task knows about the raw text: the columns of a record, how to read them, and which records are good."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns of a record."""
        ...

    @property
    def cleaning_key(self) -> tuple[Any, ...]:
        """Return the settings that decide which records are kept."""
        ...

    def read(
        self, corpus: Corpus, advance: Advance | None = None, fingerprint: Fingerprint | None = None
    ) -> Iterator[Record]:
        """Read every record of a corpus, in order."""
        ...

    def cleaner(self, seen: HashSet) -> RecordCleaner:
        """Return the filters; `seen` holds the hashes of records that were kept already."""
        ...


def key_of(*values: Any) -> str:
    """Return a short name that follows from these values alone."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


class Digests:
    """The digest of every corpus that has been read, by the names, sizes and modification times of its files.

    They are kept in `folder`, so that a corpus is not read again for its digest at each start.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "digests.json"
        try:
            self._digests: dict[str, str] = dict(json.loads(self.path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):  # a damaged file is made again
            self._digests = {}

    @staticmethod
    def name(corpus: Corpus) -> str:
        """Return the name that a digest is stored under. Call it before the corpus is read."""
        return json.dumps([[str(file.absolute()) for file in corpus.files], corpus.stamp()])

    def stored(self, corpus: Corpus) -> str | None:
        """Return the digest of a corpus whose files have not changed since they were read, or None."""
        return self._digests.get(self.name(corpus))

    def of(self, corpus: Corpus) -> str:
        """Return the digest of a corpus, which is read only if its digest is not stored."""
        name = self.name(corpus)
        if name not in self._digests:
            self.add({name: corpus.digest()})
        return self._digests[name]

    def add(self, digests: Mapping[str, str]) -> None:
        """Store digests by their names."""
        self._digests |= digests
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with files.atomic_write(self.path) as file:
            file.write(json.dumps(self._digests, indent=1).encode())


@dataclass(frozen=True)
class CleanedCorpora:
    """The records that cleaning kept: a line number and a hash each, corpus after corpus."""

    reader: RecordReader
    corpora: Sequence[Corpus]
    lines: np.ndarray
    hashes: np.ndarray
    ends: Sequence[int]  # where the lines of each corpus end
    report: CleaningReport
    key: str
    # The records with the smallest hashes, if this process has just read them; see `records_at`.
    sample: Mapping[int, Record] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.reader.columns

    def smallest_hashes(self, parts: Sequence[range], count: int) -> list[int]:
        """Return the numbers of the records with the smallest hashes in these parts: a sample that no order changes."""
        numbers = np.concatenate(
            [part.start + np.argsort(self.hashes[part.start : part.stop], kind="stable")[:count] for part in parts]
        )
        return sorted(numbers[np.argsort(self.hashes[numbers], kind="stable")[:count]].tolist())

    def records_at(self, numbers: Sequence[int], advance: Advance | None = None) -> list[Record]:
        """Return the records with these numbers, in order; the corpora are read only if `sample` lacks one of them."""
        if all(number in self.sample for number in numbers):
            return [self.sample[number] for number in numbers]
        chosen = set(numbers)
        return [record for number, record in enumerate(self.records(advance)) if number in chosen]

    def records(self, advance: Advance | None = None, start: int = 0) -> Iterator[Record]:
        """Read the records again, from number `start` on."""
        begin = 0
        for corpus, end in zip(self.corpora, self.ends, strict=True):
            remaining = iter(self.lines[max(begin, start) : end].tolist())
            line = next(remaining, None)
            if line is not None:
                for record in self.reader.read(corpus, advance):
                    if record.line == line:
                        yield record
                        line = next(remaining, None)
            begin = end


def clean(
    corpora: Sequence[Corpus], reader: RecordReader, sample_size: int, folder: Path, advance: Advance
) -> CleanedCorpora:
    """Decide which lines to keep. An interrupted call is continued; the result of a finished one is only read.

    The result lies in a folder whose name follows from the digests of the corpora. Corpora that have no stored digest
    are hashed while cleaning reads them; until then the name follows from file sizes and modification times. Of each
    corpus that is read here, the `sample_size` records with the smallest hashes are kept in memory.
    """
    known = Digests(folder)
    names, digests = [known.name(corpus) for corpus in corpora], [known.stored(corpus) for corpus in corpora]

    def name(marks: Sequence[Any]) -> str:
        columns = [[mark, corpus.columns] for mark, corpus in zip(marks, corpora, strict=True)]
        return key_of(columns, *reader.cleaning_key)

    unhashed = folder / f"clean-unhashed-{name([corpus.stamp() for corpus in corpora])}"
    arrays = {"line": np.uint32, "hash": np.uint64}
    log = ArrayLog(unhashed if None in digests else folder / f"clean-{name(digests)}", arrays)
    sample: dict[int, Record] = {}
    if not log.done:
        with log:
            cleaner = reader.cleaner(HashSet(np.array(log.read("hash"))))
            sample = _clean(log, corpora, reader, cleaner, advance, sample_size)
    if None in digests:
        digests = log.notes["digests"]
        hashed = folder / f"clean-{name(digests)}"
        if ArrayLog(hashed, arrays).done:  # the same text under another name or with another modification time
            shutil.rmtree(unhashed)
        else:  # an existing folder was interrupted; this one is complete
            shutil.rmtree(hashed, ignore_errors=True)
            unhashed.rename(hashed)
        known.add(dict(zip(names, log.notes["digests"], strict=True)))
        log = ArrayLog(hashed, arrays)
    notes = log.notes
    arrays_and_report = log.read("line"), log.read("hash"), notes["ends"], CleaningReport.from_dict(notes["report"])
    return CleanedCorpora(reader, corpora, *arrays_and_report, name(digests), sample)


def take_part(records: Iterator[Record], count: int) -> list[Record]:
    """Return the next records: at most `count`, and fewer if they are long."""
    part: list[Record] = []
    characters = 0
    for record in islice(records, count):
        part.append(record)
        characters += sum(map(len, record[1:]))
        if characters >= CHARACTERS_PER_COMMIT:
            break
    return part


def _clean(
    log: ArrayLog, corpora: Sequence[Corpus], reader: RecordReader, cleaner: RecordCleaner, advance: Advance, count: int
) -> dict[int, Record]:
    """Fill the log. Return the `count` records with the smallest hashes of each corpus that was read from its start."""
    ends = list(log.notes.get("ends", []))
    digests = list(log.notes.get("digests", []))
    last_line = log.notes.get("reached", 0)  # of the corpus that an earlier call was in
    if "report" in log.notes:
        cleaner.report = CleaningReport.from_dict(log.notes["report"])

    def notes() -> dict[str, Any]:
        return {"ends": ends, "digests": digests, "reached": last_line, "report": cleaner.report.to_dict()}

    sample: dict[int, Record] = {}
    smallest: list[tuple[int, int, Record]] = []
    remaining = corpora[len(ends) :]
    parts = _read_parts(remaining, reader, last_line, advance)
    processes = processes_for(sum(corpus.size for corpus in remaining))
    filtered = map_in_order(lambda part: cleaner.apply_filters(part.records), parts, processes, lambda: advance(0))
    with closing(filtered):
        for (corpus, records, digest), results in filtered:
            if digest is None:
                kept, hashes = cleaner.select(corpus, records, results)
                numbers = range(log.lengths["line"], log.lengths["line"] + len(kept))
                smallest = nsmallest(count, chain(smallest, zip(hashes.tolist(), numbers, kept, strict=True)))
                log.append("line", np.array([record.line for record in kept]))
                log.append("hash", hashes)
                last_line = records[-1].line
            else:
                sample |= {number: record for _, number, record in smallest}
                ends.append(log.lengths["line"])
                digests.append(digest)
                smallest, last_line = [], 0
            log.commit(notes())
    log.commit(notes(), done=True)
    return sample


class _Part(NamedTuple):
    """Consecutive records of a corpus or, after its last record, the digest of the corpus and no record."""

    corpus: Corpus
    records: list[Record]
    digest: str | None = None


def _read_parts(corpora: Iterable[Corpus], reader: RecordReader, last_line: int, advance: Advance) -> Iterator[_Part]:
    """Read the corpora in parts; of the first corpus, only the records after `last_line`."""
    for corpus in corpora:
        fingerprint = Fingerprint()
        records = reader.read(corpus, advance, fingerprint)
        unread = (record for record in records if record.line > last_line)
        while part := take_part(unread, ROWS_PER_COMMIT):
            yield _Part(corpus, part)
        yield _Part(corpus, [], fingerprint.digest(corpus.files))
        last_line = 0
