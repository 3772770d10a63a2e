"""From raw corpora to a memory-mapped store of tokens: cleaned once, tokenised once, both resumable.

Memory does not grow with the corpus: text is read as a stream, and what is kept lies on disk. A pair costs eight bytes
of memory while duplicates are looked for.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from heapq import nsmallest
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from sixfold import files
from sixfold.config import DataConfig
from sixfold.data.array_log import Ledger
from sixfold.data.cleaning import Cleaner, Report, Seen, hash_of
from sixfold.data.corpus import Corpus, Fingerprint, Pair
from sixfold.data.tokens import Store
from sixfold.errors import DataError
from sixfold.text.tokenizer import Tokenizer

PART = 20_000  # pairs between two entries of a ledger
Advance = Callable[[int], None]  # told the bytes read from disk; it may raise to stop


def key_of(*parts: Any) -> str:
    """A name for what follows from these values alone."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class Digests:
    """The digest of every corpus that has been read, by the names, sizes and times of change of its files.

    They are kept in `folder`, so that a corpus is not read for its digest by each start.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "digests.json"
        try:
            self._known: dict[str, str] = dict(json.loads(self.path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):  # what cannot be read is made again
            self._known = {}

    @staticmethod
    def name(corpus: Corpus) -> str:
        """What a digest is kept under. It has to be made before the corpus is read: a later change is another name."""
        return json.dumps([[str(file.absolute()) for file in corpus.files], corpus.stamp()])

    def known(self, corpus: Corpus) -> str | None:
        """The digest of a corpus whose files have not changed since they were read, or None."""
        return self._known.get(self.name(corpus))

    def of(self, corpus: Corpus) -> str:
        """The digest of a corpus, which is read only if it is not known."""
        name = self.name(corpus)
        if name not in self._known:
            self.add({name: corpus.digest()})
        return self._known[name]

    def add(self, digests: Mapping[str, str]) -> None:
        """Keep digests by their names."""
        self._known |= digests
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with files.atomic(self.path) as file:
            file.write(json.dumps(self._known, indent=1).encode())


@dataclass(frozen=True)
class Kept:
    """The pairs that cleaning kept: a line number and a hash each, corpus after corpus."""

    corpora: Sequence[Corpus]
    lines: np.ndarray
    hashes: np.ndarray
    ends: Sequence[int]  # where the lines of each corpus end
    report: Report
    key: str
    sample: Mapping[int, Pair] = field(
        default_factory=dict
    )  # pairs of the smallest hashes, where it has just read them

    def __len__(self) -> int:
        return len(self.lines)

    def smallest(self, parts: Sequence[range], count: int) -> list[int]:
        """The numbers of the pairs with the smallest hashes in these parts: a sample that no order changes."""
        numbers = np.concatenate(
            [part.start + np.argsort(self.hashes[part.start : part.stop], kind="stable")[:count] for part in parts]
        )
        return sorted(numbers[np.argsort(self.hashes[numbers], kind="stable")[:count]].tolist())

    def some(self, numbers: Sequence[int], advance: Advance | None = None) -> list[Pair]:
        """These pairs, in their order; the corpora are read only if cleaning has not just done so."""
        if all(number in self.sample for number in numbers):
            return [self.sample[number] for number in numbers]
        wanted = set(numbers)
        return [pair for number, pair in enumerate(self.pairs(advance)) if number in wanted]

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
    """Which lines to keep. What an earlier call found is gone on from; one that ended is only read.

    What was found lies under a name that follows from the digests of the corpora. Where those are not known yet, they
    are made while cleaning reads, and until then it lies under a name that follows from sizes and times of change.
    """
    later = ("both_ways", "dev_pairs", "max_tokens")  # settings that change nothing here
    rules = {name: value for name, value in asdict(config).items() if name not in later}
    known = Digests(folder)
    names, digests = [known.name(corpus) for corpus in corpora], [known.known(corpus) for corpus in corpora]

    def name(marks: Sequence[Any]) -> str:
        columns = [[mark, corpus.columns] for mark, corpus in zip(marks, corpora, strict=True)]
        return key_of(columns, languages, rules)

    unhashed = folder / f"clean-unhashed-{name([corpus.stamp() for corpus in corpora])}"
    columns = {"line": np.uint32, "hash": np.uint64}
    ledger = Ledger(unhashed if None in digests else folder / f"clean-{name(digests)}", columns)
    sample: dict[int, Pair] = {}
    if not ledger.done:
        with ledger:
            cleaner = Cleaner(config, languages, Seen(np.array(ledger.read("hash"))))
            sample = _clean(ledger, corpora, cleaner, advance, config.dev_pairs)
    if None in digests:
        digests = ledger.notes["digests"]
        hashed = folder / f"clean-{name(digests)}"
        if Ledger(hashed, columns).done:  # the same text under another name or with another time of change
            shutil.rmtree(unhashed)
        else:  # what is there, if anything, was interrupted; this one is complete
            shutil.rmtree(hashed, ignore_errors=True)
            unhashed.rename(hashed)
        known.add(dict(zip(names, ledger.notes["digests"], strict=True)))
        ledger = Ledger(hashed, columns)
    notes = ledger.notes
    found = ledger.read("line"), ledger.read("hash"), notes["ends"], Report.from_dict(notes["report"])
    return Kept(corpora, *found, name(digests), sample)


def _clean(
    ledger: Ledger, corpora: Sequence[Corpus], cleaner: Cleaner, advance: Advance, count: int
) -> dict[int, Pair]:
    """Fill the ledger; of each corpus that was read from its beginning, the `count` pairs of the smallest hashes."""
    ends = list(ledger.notes.get("ends", []))
    digests = list(ledger.notes.get("digests", []))
    reached = ledger.notes.get("reached", 0)  # the last line of the corpus it was in
    if "report" in ledger.notes:
        cleaner.report = Report.from_dict(ledger.notes["report"])

    def notes() -> dict[str, Any]:
        return {"ends": ends, "digests": digests, "reached": reached, "report": cleaner.report.to_dict()}

    sample: dict[int, Pair] = {}
    for corpus in corpora[len(ends) :]:
        fingerprint = Fingerprint()
        smallest: list[tuple[int, int, Pair]] = []
        pairs = (pair for pair in corpus.pairs(advance, fingerprint) if pair.line > reached)
        while part := list(islice(pairs, PART)):
            kept = list(cleaner.clean(corpus, part))
            hashes = np.frombuffer(b"".join(hash_of(*pair[1:]) for pair in kept), np.uint64)
            numbers = range(ledger.lengths["line"], ledger.lengths["line"] + len(kept))
            smallest = nsmallest(count, chain(smallest, zip(hashes.tolist(), numbers, kept, strict=True)))
            ledger.append("line", np.array([pair.line for pair in kept]))
            ledger.append("hash", hashes)
            reached = part[-1].line
            ledger.commit(notes())
        sample |= {number: pair for _, number, pair in smallest}
        ends.append(ledger.lengths["line"])
        digests.append(fingerprint.digest(corpus.files))
        reached = 0
        ledger.commit(notes())
    ledger.commit(notes(), done=True)
    return sample


def tokenize(
    kept: Kept, tokenizer: Tokenizer, left_out: set[str], config: DataConfig, folder: Path, advance: Advance
) -> Store:
    """Tokenise what was kept, but for what dev and test sets hold, `left_out`: as source, and both ways as target."""
    key = key_of(kept.key, tokenizer.to_json(), sorted(left_out), config.max_tokens)
    ledger = _tokens(folder, key, tokenizer)
    if not ledger.done:
        with ledger:
            _tokenize(ledger, kept, tokenizer, left_out, config, advance)
    return open_tokens(folder, key, tokenizer, kept.corpora)


def open_tokens(folder: Path, key: str, tokenizer: Tokenizer, corpora: Sequence[Corpus]) -> Store:
    """Map what `tokenize` has stored, perhaps in another process; the corpora themselves are not read."""
    ledger = _tokens(folder, key, tokenizer)
    assert ledger.done
    source, target, source_ends, target_ends, lines = map(ledger.read, ledger.columns)
    notes, eos = ledger.notes, tokenizer.specials["eos"]
    stored = (source, target, source_ends, target_ends, lines)
    return Store(*stored, corpora, notes["ends"], notes["too_long"], key, eos=eos)


def _tokens(folder: Path, key: str, tokenizer: Tokenizer) -> Ledger:
    kind = np.uint16 if tokenizer.vocab <= 2**16 else np.uint32
    columns = {"source": kind, "target": kind, "source_end": np.int64, "target_end": np.int64, "line": np.uint32}
    return Ledger(folder / f"tokens-{key}", columns)


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
                f"{corpus.files[0]}: has lost lines since it was cleaned", "put it back, or use another --output"
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
