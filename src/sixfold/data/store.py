"""Token ids of every row of some corpora, in named ragged columns that are mapped from disk.

The store knows no task: a task says which columns a record has, and how rows become batches. Memory does not grow with
the corpus: text is read as a stream, and the ids stay on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, compress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sixfold.data.array_log import ArrayLog
from sixfold.data.cleaned import ROWS_PER_COMMIT, Advance, CleanedCorpora, Record, key_of, take_part
from sixfold.data.corpus import Corpus
from sixfold.data.workers import map_in_order, processes_for
from sixfold.errors import DataError
from sixfold.text.tokenizer import Tokenizer

ADDED_TOKENS = 1  # <bos> or <eos>, which a task adds to each text of a batch
Tokenizers = Mapping[str, Tokenizer]  # of each column; columns may share one


class Ragged(NamedTuple):
    """Sequences of different lengths: their values one after another, and the length of each."""

    values: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True)
class Column:
    """One sequence of ids for each row of a store."""

    ids: np.ndarray  # of all rows, one row after another
    ends: np.ndarray  # where each row ends in `ids`
    trailing: int = 0  # ids at the end of each row that are no text: an older format stored <eos> after each source

    def lengths(self) -> np.ndarray:
        """Return the length of every row as int32, without temporary copies of the 64-bit ends."""
        lengths = np.empty(len(self.ends), np.int32)
        lengths[:1] = self.ends[:1]
        np.subtract(self.ends[1:], self.ends[:-1], out=lengths[1:], casting="unsafe")
        return lengths - np.int32(self.trailing) if self.trailing else lengths

    def spans(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where these rows begin in `ids`, and their lengths."""
        begins = np.where(rows > 0, self.ends[rows - 1], 0)
        return begins, self.ends[rows] - begins - self.trailing

    def take(self, rows: np.ndarray) -> Ragged:
        """Read these rows."""
        begins, lengths = self.spans(rows)
        return Ragged(self.read(begins, lengths), lengths)

    def read(self, begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Read the ids of spans, one span after another."""
        indices = np.arange(lengths.sum()) + np.repeat(begins - np.cumsum(lengths) + lengths, lengths)
        return self.ids[indices].astype(np.int64)


@dataclass(frozen=True)
class TokenStore:
    """The rows of some corpora as columns of ids. No text has <bos> or <eos>: a task adds them to its batches."""

    columns: Mapping[str, Column]
    lines: np.ndarray  # the line of each row in its corpus, counted from 1
    corpora: Sequence[Corpus]
    corpus_ends: Sequence[int]  # where the rows of each corpus end
    too_long: int = 0  # rows left out for data.max_tokens
    key: str = ""  # of the corpora, the tokeniser and the texts left out

    def __len__(self) -> int:
        return len(self.lines)


def tokenize(
    cleaned: CleanedCorpora,
    tokenizers: Tokenizers,
    excluded: set[str],
    excluded_columns: Sequence[str],
    max_tokens: int,
    folder: Path,
    advance: Advance,
) -> TokenStore:
    """Tokenise the rows that cleaning kept, except those with a text of a dev or test set.

    `excluded` holds the texts of those sets, and `excluded_columns` says in which columns they are looked for. A row
    with a text of more than `max_tokens` tokens, <eos> included, is left out and counted. An interrupted call is
    continued by the next one.
    """
    # One that all columns share counts once.
    stated = dict.fromkeys(tokenizers[name].to_json() for name in cleaned.columns)
    key = key_of(cleaned.key, *stated, sorted(excluded), max_tokens)
    log = _array_log(folder, key, tokenizers, cleaned.columns)
    if not log.done:
        with log:
            _tokenize(log, cleaned, tokenizers, excluded, excluded_columns, max_tokens, advance)
    return open_tokens(folder, key, tokenizers, cleaned.corpora, cleaned.columns)


def open_tokens(
    folder: Path, key: str, tokenizers: Tokenizers, corpora: Sequence[Corpus], columns: Sequence[str]
) -> TokenStore:
    """Map what `tokenize` has stored, perhaps in another process; the corpora themselves are not read."""
    log = _array_log(folder, key, tokenizers, columns)
    assert log.done
    has_eos = "format" not in log.notes  # format 1 stored <eos> after the text of the first column
    stored = {
        name: Column(log.read(name), log.read(f"{name}_end"), trailing=int(has_eos and name == columns[0]))
        for name in columns
    }
    return TokenStore(stored, log.read("line"), corpora, log.notes["ends"], log.notes["too_long"], key)


def _array_log(folder: Path, key: str, tokenizers: Tokenizers, columns: Sequence[str]) -> ArrayLog:
    ids = {name: np.uint16 if tokenizers[name].vocab <= 2**16 else np.uint32 for name in columns}
    arrays = {**ids, **{f"{name}_end": np.int64 for name in columns}, "line": np.uint32}
    return ArrayLog(folder / f"tokens-{key}", arrays)


def _tokenize(
    log: ArrayLog,
    cleaned: CleanedCorpora,
    tokenizers: Tokenizers,
    excluded: set[str],
    excluded_columns: Sequence[str],
    max_tokens: int,
    advance: Advance,
) -> None:
    """Append the ids of all rows after those that the log holds already."""
    read, too_long = log.notes.get("reached", 0), log.notes.get("too_long", 0)
    # An unfinished log of format 1 goes on in format 1, whose first column ends in <eos>.
    has_eos = bool(log.notes) and "format" not in log.notes
    eos = [tokenizers[cleaned.columns[0]].specials["eos"]] if has_eos else []
    ends = list(log.notes.get("ends", []))
    checked = [1 + cleaned.columns.index(name) for name in excluded_columns]

    def notes() -> dict[str, object]:
        return {"reached": read, "ends": ends, "too_long": too_long, **({} if has_eos else {"format": 2})}

    def encode(part: Sequence[Record]) -> tuple[dict[str, np.ndarray], int]:
        """Return what a part adds to each array, with ends counted from 0, and the number of rows that are too long."""
        part = [record for record in part if not any(record[column] in excluded for column in checked)]
        texts_of = zip(cleaned.columns, _columns(part, len(cleaned.columns)), strict=True)
        ids = [tokenizers[name].encode_batch(list(texts)) for name, texts in texts_of]
        fits = [max(map(len, row)) + ADDED_TOKENS <= max_tokens for row in zip(*ids, strict=True)]
        arrays = {"line": np.array([record.line for record in compress(part, fits)], np.uint32)}
        for name, rows in zip(cleaned.columns, ids, strict=True):
            suffix = eos if name == cleaned.columns[0] else []
            chosen = [[*row, *suffix] for row in compress(rows, fits)]
            arrays[name] = np.fromiter(chain.from_iterable(chosen), log.columns[name])
            arrays[f"{name}_end"] = np.cumsum([len(row) for row in chosen], dtype=np.int64)
        return arrays, fits.count(False)

    _close_corpora(ends, cleaned, read, log)
    records = cleaned.records(advance, read)
    processes = processes_for(sum(corpus.size for corpus in cleaned.corpora))
    encoded = map_in_order(encode, _parts(cleaned, records, read), processes, lambda: advance(0))
    with closing(encoded):
        for part, (arrays, skipped) in encoded:
            read += len(part)
            too_long += skipped
            for name in cleaned.columns:
                arrays[f"{name}_end"] += log.lengths[name]
            for name, values in arrays.items():
                log.append(name, values)
            _close_corpora(ends, cleaned, read, log)
            log.commit(notes())
    next(records, None)  # to the end of the last file, where the reader checks that nobody wrote to it
    log.commit(notes(), done=True)


def _parts(cleaned: CleanedCorpora, records: Iterator[Record], read: int) -> Iterator[list[Record]]:
    """Yield the records from number `read` on, as many as are committed at once; a part never spans two corpora."""
    while read < len(cleaned):
        corpus_end = next(end for end in cleaned.ends if end > read)
        part = take_part(records, min(ROWS_PER_COMMIT, corpus_end - read))
        if not part or [record.line for record in part] != cleaned.lines[read : read + len(part)].tolist():
            corpus = cleaned.corpora[sum(end <= read for end in cleaned.ends)]
            raise DataError(
                f"{corpus.files[0]}: has lost lines since it was cleaned", "put it back, or use another --output"
            )
        read += len(part)
        yield part


def _columns(records: Sequence[Record], count: int) -> list[tuple[str, ...]]:
    """Return the texts of some records, column by column."""
    return list(zip(*(record[1:] for record in records), strict=True)) or [()] * count


def _close_corpora(ends: list[int], cleaned: CleanedCorpora, read: int, log: ArrayLog) -> None:
    """Note where each corpus that has been read to its end stops in the store; a corpus may have no row at all."""
    while len(ends) < len(cleaned.ends) and cleaned.ends[len(ends)] <= read:
        ends.append(log.lengths["line"])
