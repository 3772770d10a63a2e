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
from sixfold.data.tokens import Store
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
    later = ("both_ways", "dev_pairs", "max_tokens")  # settings that change nothing here
    rules = {name: value for name, value in asdict(config).items() if name not in later}
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


def tokenize(
    kept: Kept, tokenizer: Tokenizer, left_out: set[str], config: DataConfig, folder: Path, advance: Advance
) -> Store:
    """Tokenise what was kept, but for what dev and test sets hold, `left_out`: as source, and both ways as target."""
    key = key_of(kept.key, tokenizer.to_json(), sorted(left_out), config.max_tokens)
    kind = np.uint16 if tokenizer.vocab <= 2**16 else np.uint32
    columns = {"source": kind, "target": kind, "source_end": np.int64, "target_end": np.int64, "line": np.uint32}
    ledger = Ledger(folder / f"tokens-{key}", columns)
    if not ledger.done:
        with ledger:
            _tokenize(ledger, kept, tokenizer, left_out, config, advance)
    source, target, source_ends, target_ends, lines = map(ledger.read, columns)
    notes = ledger.notes
    columns_read = (source, target, source_ends, target_ends, lines)
    eos = tokenizer.specials["eos"]
    return Store(*columns_read, kept.corpora, notes["ends"], notes["too_long"], key, eos=eos)


def _tokenize(
    ledger: Ledger, kept: Kept, tokenizer: Tokenizer, left_out: set[str], config: DataConfig, advance: Advance
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
        part = [pair for pair in part if left_out.isdisjoint(pair[1 : 3 if config.both_ways else 2])]
        sources = [[*ids, eos] for ids in tokenizer.encode_batch([pair.source for pair in part])]
        targets = tokenizer.encode_batch([pair.target for pair in part])
        fits = [
            max(len(source), len(target) + 1) <= config.max_tokens
            for source, target in zip(sources, targets, strict=True)
        ]
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
