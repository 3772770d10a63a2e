"""From raw corpora to a memory-mapped store of tokens: cleaned once, tokenised once, both resumable.

Memory does not grow with the corpus: text is read as a stream, and what is kept lies on disk. A pair costs eight bytes
of memory while duplicates are looked for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from sixfold.config import DataConfig
from sixfold.data.cleaning import Cleaner, Report, Seen, hash_of
from sixfold.data.corpus import Corpus, Pair
from sixfold.data.ledger import Ledger
from sixfold.errors import DataError
from sixfold.text.tokenizer import Tokenizer

PART = 20_000  # pairs between two entries of a ledger
Advance = Callable[[int], None]  # told the bytes read from disk; it may raise to stop


def key_of(*parts: Any) -> str:
    """A name for what follows from these values alone."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Kept:
    """The pairs that cleaning kept: a line number each, corpus after corpus."""

    corpora: Sequence[Corpus]
    lines: np.ndarray
    ends: Sequence[int]  # where the lines of each corpus end
    report: Report
    key: str

    def __len__(self) -> int:
        return len(self.lines)

    def pairs(self, advance: Advance | None = None, start: int = 0) -> Iterator[Pair]:
        """Read them again, from the `start`-th on."""
        begin = 0
        for corpus, end in zip(self.corpora, self.ends, strict=True):
            wanted = iter(self.lines[max(begin, start) : end].tolist())
            line = next(wanted, None)
            if line is not None:
                for pair in corpus.pairs(advance):
                    if pair.line == line:
                        yield pair
                        line = next(wanted, None)
            begin = end


def clean(
    corpora: Sequence[Corpus], languages: tuple[str, str], config: DataConfig, folder: Path, advance: Advance
) -> Kept:
    """Which lines to keep. What an earlier call found is gone on from; one that ended is only read."""
    rules = {name: value for name, value in asdict(config).items() if name not in ("dev_pairs", "max_tokens")}
    key = key_of([[corpus.digest(), corpus.columns] for corpus in corpora], languages, rules)
    ledger = Ledger(folder / f"clean-{key}", {"line": np.uint32, "hash": np.uint64})
    if not ledger.done:
        with ledger:
            _clean(ledger, corpora, Cleaner(config, languages, Seen(np.array(ledger.read("hash")))), advance)
    return Kept(corpora, ledger.read("line"), ledger.notes["ends"], Report.from_dict(ledger.notes["report"]), key)


def _clean(ledger: Ledger, corpora: Sequence[Corpus], cleaner: Cleaner, advance: Advance) -> None:
    ends = list(ledger.notes.get("ends", []))
    reached = ledger.notes.get("reached", 0)  # the last line of the corpus it was in
    if "report" in ledger.notes:
        cleaner.report = Report.from_dict(ledger.notes["report"])
    for corpus in corpora[len(ends) :]:
        pairs = (pair for pair in corpus.pairs(advance) if pair.line > reached)
        while part := list(islice(pairs, PART)):
            kept = list(cleaner.clean(corpus, part))
            ledger.append("line", np.array([pair.line for pair in kept]))
            ledger.append("hash", np.frombuffer(b"".join(hash_of(*pair[1:]) for pair in kept), np.uint64))
            reached = part[-1].line
            ledger.commit({"ends": ends, "reached": reached, "report": cleaner.report.to_dict()})
        ends.append(ledger.lengths["line"])
        reached = 0
        ledger.commit({"ends": ends, "reached": reached, "report": cleaner.report.to_dict()})
    ledger.commit({"ends": ends, "report": cleaner.report.to_dict()}, done=True)


@dataclass(frozen=True)
class Store:
    """Token ids of every pair, mapped from disk. Sources end in <eos>; targets are bare."""

    source: np.ndarray
    target: np.ndarray
    source_ends: np.ndarray
    target_ends: np.ndarray
    lines: np.ndarray
    corpora: Sequence[Corpus]
    ends: Sequence[int]  # where the pairs of each corpus end
    too_long: int  # pairs left out for data.max_tokens
    key: str = ""  # of the corpora, the tokeniser and what was left out

    def __len__(self) -> int:
        return len(self.lines)

    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of every source and of every target with its <eos>."""
        source, target = (_lengths(ends) for ends in (self.source_ends, self.target_ends))
        target += 1
        return source, target

    def gather(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The ids of these pairs one after another, and their lengths: source, target, source and target lengths."""
        source, source_lengths = _gather(self.source, self.source_ends, rows)
        target, target_lengths = _gather(self.target, self.target_ends, rows)
        return source, target, source_lengths, target_lengths

    def where(self, row: int) -> str:
        """The file and line that a pair came from."""
        corpus = self.corpora[int(np.searchsorted(self.ends, row, side="right"))]
        return corpus.where(int(self.lines[row]))


def _lengths(ends: np.ndarray) -> np.ndarray:
    """From where each ends; without copies, which count when there are hundreds of millions."""
    lengths = np.empty(len(ends), np.int32)
    lengths[:1] = ends[:1]
    np.subtract(ends[1:], ends[:-1], out=lengths[1:], casting="unsafe")
    return lengths


def _gather(ids: np.ndarray, ends: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    begins = np.where(rows > 0, ends[rows - 1], 0)
    lengths = ends[rows] - begins
    places = np.arange(lengths.sum()) + np.repeat(begins - np.cumsum(lengths) + lengths, lengths)
    return ids[places].astype(np.int64), lengths


def tokenize(
    kept: Kept, tokenizer: Tokenizer, left_out: set[str], config: DataConfig, folder: Path, advance: Advance
) -> Store:
    """Tokenise what was kept, but for sources in `left_out`, the dev set's."""
    key = key_of(kept.key, tokenizer.to_json(), sorted(left_out), config.max_tokens)
    kind = np.uint16 if tokenizer.vocab <= 2**16 else np.uint32
    columns = {"source": kind, "target": kind, "source_end": np.int64, "target_end": np.int64, "line": np.uint32}
    ledger = Ledger(folder / f"tokens-{key}", columns)
    if not ledger.done:
        with ledger:
            _tokenize(ledger, kept, tokenizer, left_out, config.max_tokens, advance)
    source, target, source_ends, target_ends, lines = map(ledger.read, columns)
    notes = ledger.notes
    return Store(source, target, source_ends, target_ends, lines, kept.corpora, notes["ends"], notes["too_long"], key)


def _tokenize(
    ledger: Ledger, kept: Kept, tokenizer: Tokenizer, left_out: set[str], longest: int, advance: Advance
) -> None:
    reached, too_long = ledger.notes.get("reached", 0), ledger.notes.get("too_long", 0)
    ends = list(ledger.notes.get("ends", []))
    _close_corpora(ends, kept, reached, ledger)
    pairs = kept.pairs(advance, reached)
    eos = tokenizer.specials["eos"]
    while reached < len(kept):
        border = next(end for end in kept.ends if end > reached)  # a part never crosses from one corpus to the next
        expected = kept.lines[reached : min(reached + PART, border)]
        part = list(islice(pairs, len(expected)))
        if [pair.line for pair in part] != expected.tolist():
            corpus = kept.corpora[sum(end <= reached for end in kept.ends)]
            raise DataError(
                f"{corpus.files[0]}: has lost lines since it was cleaned", "put it back, or use another --out"
            )
        reached += len(part)
        part = [pair for pair in part if pair.source not in left_out]
        sources = [[*ids, eos] for ids in tokenizer.encode_batch([pair.source for pair in part])]
        targets = tokenizer.encode_batch([pair.target for pair in part])
        fits = [max(len(source), len(target) + 1) <= longest for source, target in zip(sources, targets, strict=True)]
        too_long += fits.count(False)
        for side, rows in (("source", sources), ("target", targets)):
            chosen = [row for row, fit in zip(rows, fits, strict=True) if fit]
            before = ledger.lengths[side]
            ledger.append(side, np.array([index for row in chosen for index in row], np.uint32))
            ledger.append(f"{side}_end", before + np.cumsum([len(row) for row in chosen], dtype=np.int64))
        ledger.append("line", np.array([pair.line for pair, fit in zip(part, fits, strict=True) if fit], np.uint32))
        _close_corpora(ends, kept, reached, ledger)
        ledger.commit({"reached": reached, "ends": ends, "too_long": too_long})
    next(pairs, None)  # to the end of the last file, where it is checked that nobody wrote to it
    ledger.commit({"reached": reached, "ends": ends, "too_long": too_long}, done=True)


def _close_corpora(ends: list[int], kept: Kept, reached: int, ledger: Ledger) -> None:
    """Note where each corpus ends that has been read; one may have no pair at all."""
    while len(ends) < len(kept.ends) and kept.ends[len(ends)] <= reached:
        ends.append(ledger.lengths["line"])
