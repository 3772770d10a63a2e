"""The findings of an audit: for each kind of fault its lines, how serious they are, and what to do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sixfold.configfile import did_you_mean
from sixfold.data.cleaning import FILTERS
from sixfold.data.corpus import Corpus, Pair
from sixfold.errors import ConfigError, DataError

FORMAT = 1
EXAMPLES = 3  # of each kind
QUOTED_CHARACTERS = 60  # of each side of an example


class FaultKind(NamedTuple):
    """A kind of fault, described for people."""

    what: str
    advice: str


_CLEAN_USING = "drop them: sixfold clean … --using doctor.json"
# The kinds that `sixfold clean` finds by itself come last, under the names of its filters.
KINDS = {
    "misaligned": FaultKind("the two sides do not mean the same", _CLEAN_USING),
    "swapped": FaultKind("each side is in the language of the other", f"swap them back, or {_CLEAN_USING}"),
    "untranslated": FaultKind("a side is in the language of the other", _CLEAN_USING),
    "mojibake": FaultKind(
        "decoded with the wrong encoding", f"read the original with its own encoding; else {_CLEAN_USING}"
    ),
    "lopsided": FaultKind(
        "a side is much longer than usual in this corpus", f"a sentence may be missing; {_CLEAN_USING}"
    ),
    "numbers": FaultKind("each side has numbers that the other lacks", f"check a few of them; {_CLEAN_USING}"),
    "near-duplicate": FaultKind("a nearly equal pair comes earlier", _CLEAN_USING),
    "leaked": FaultKind("a sentence of a test set", f"scores on that set would be worthless; {_CLEAN_USING}"),
    "empty": FaultKind("a side is empty", "sixfold train and clean drop them"),
    "encoding": FaultKind("bytes that are not UTF-8", "convert the file, for example: iconv -f GB18030 -t UTF-8"),
    "control": FaultKind("control characters or direction overrides", "sixfold train and clean drop them"),
    "markup": FaultKind("markup is left over on one side only", "sixfold train and clean drop them"),
    "long": FaultKind(
        "longer than data.max_characters", "split them into sentences; sixfold train and clean drop them"
    ),
    "ratio": FaultKind("one side is more than data.max_ratio times as long", "sixfold train and clean drop them"),
    "script": FaultKind("a side is not in the script of its language", "sixfold train and clean drop them"),
    "copied": FaultKind("both sides are the same", "sixfold train and clean drop them"),
    "duplicate": FaultKind("the same pair comes earlier", "sixfold train and clean keep the first"),
}


@dataclass
class Finding:
    """All lines with one kind of fault."""

    lines: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)  # higher is worse
    notes: list[str] = field(default_factory=list)  # an equal line or what differs; may be empty
    examples: list[str] = field(default_factory=list)  # quotations of the worst lines

    def add(self, line: int, score: float = 1.0, note: str = "") -> None:
        self.lines.append(line)
        self.scores.append(round(score, 3))
        self.notes.append(note)

    def worst(self) -> list[int]:
        """Return the indices of the lines with the highest scores."""
        return sorted(range(len(self.lines)), key=lambda index: -self.scores[index])[:EXAMPLES]


@dataclass
class Audit:
    """The statistics and the faults of a corpus."""

    corpus: Corpus
    languages: tuple[str, str]
    pairs: int = 0
    words: int = 0  # estimated number of distinct words of both sides
    letters: list[int] = field(default_factory=lambda: [0, 0])  # of each side; a Han character counts as three
    findings: dict[str, Finding] = field(default_factory=lambda: {kind: Finding() for kind in KINDS})
    variants: dict[str, int] = field(default_factory=dict)  # pairs with simplified and with traditional Chinese
    alignment: dict[str, Any] = field(default_factory=dict)
    histograms: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)  # counts and edges of the bars

    def count(self, name: str, edges: np.ndarray, values: np.ndarray) -> None:
        """Add values to a histogram; values beyond its edges are counted in the outermost bars."""
        counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        before = self.histograms.get(name)
        self.histograms[name] = (counts if before is None else before[0] + counts, edges)

    @property
    def faulty_pairs(self) -> int:
        """Return the number of pairs with at least one fault."""
        return len({line for finding in self.findings.values() for line in finding.lines})

    def remarks(self) -> list[str]:
        """Return notes about the corpus as a whole."""
        notes = []
        if self.pairs and len(self.findings["swapped"].lines) > self.pairs / 2:
            notes.append("the sides are swapped: name the two files, or the two languages, the other way round")
        variants = {kind: number for kind, number in self.variants.items() if kind}
        if len(variants) == 2 and min(variants.values()) > sum(variants.values()) / 100:
            shares = ", ".join(
                f"{number / sum(variants.values()):.1%} {kind}" for kind, number in sorted(variants.items())
            )
            notes.append(f"Chinese of both kinds: {shares}; convert one, or tag them")
        if self.pairs and not self.alignment.get("trusted"):
            notes.append("too few pairs, or too different ones, to distinguish misaligned pairs from free translations")
        return notes

    def quote_examples(self) -> None:
        """Read the worst lines of each kind again, and keep them as examples."""
        quoted_lines = {finding.lines[index] for finding in self.findings.values() for index in finding.worst()}
        last = max(quoted_lines, default=0)
        pairs: dict[int, Pair] = {}
        for pair in self.corpus.pairs() if quoted_lines else ():
            if pair.line in quoted_lines:
                pairs[pair.line] = pair
            if pair.line == last:
                break
        for finding in self.findings.values():
            finding.examples = [
                quote(self.corpus.where(line), pairs[line], finding.notes[index])
                for index in finding.worst()
                for line in [finding.lines[index]]
            ]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON of an audit, which `sixfold clean --using` reads."""
        findings = []
        for name, finding in self.findings.items():
            entry: dict[str, Any] = {"name": name, "what": KINDS[name].what, "count": len(finding.lines)}
            entry |= {"share": round(len(finding.lines) / max(self.pairs, 1), 6), "advice": KINDS[name].advice}
            entry |= {"lines": finding.lines, "scores": finding.scores, "examples": finding.examples}
            findings.append(entry | ({"notes": finding.notes} if any(finding.notes) else {}))
        return {
            "format": FORMAT,
            "corpus": {"files": [file.name for file in self.corpus.files], "digest": self.corpus.digest()},
            "languages": list(self.languages),
            "pairs": self.pairs,
            "condemned": self.faulty_pairs,
            "words": self.words,
            "letters": self.letters,
            "chinese": self.variants,
            "alignment": self.alignment,
            "remarks": self.remarks(),
            "findings": findings,
            "histograms": {
                name: {"edges": [round(float(edge), 3) for edge in edges], "counts": counts.tolist()}
                for name, (counts, edges) in self.histograms.items()
            },
        }

    def lines(self) -> list[str]:
        """Return the report for people: the findings, examples of each, and what to do."""
        arrow = "→".join(language or "?" for language in self.languages)
        share = self.faulty_pairs / max(self.pairs, 1)
        bad = f"{self.faulty_pairs:,} ({share:.1%}) are better left out{self._misaligned()}"
        table = [f"{self.pairs:,} pairs, {arrow}; {bad}"]
        table += [f"note: {remark}" for remark in self.remarks()]
        for name, finding in self.findings.items():
            if finding.lines:
                number = len(finding.lines)
                table.append(
                    f"{name}: {number:,} ({number / self.pairs:.1%}), {KINDS[name].what}; {KINDS[name].advice}"
                )
                table += [f"    {example}" for example in finding.examples]
        return table

    def _misaligned(self) -> str:
        """Return the part of the summary about misaligned pairs: how many are flagged, and their estimated share."""
        number = len(self.findings["misaligned"].lines)
        if not number:
            return ""
        share = self.alignment["unrelated"]
        return f", {number:,} of them as misaligned (by estimate {share:.1%} of all pairs are misaligned)"


def quote(where: str, pair: Pair, note: str) -> str:
    """Return a pair on one line, shortened, without characters that a terminal would interpret."""
    sides = [
        text if len(text) <= QUOTED_CHARACTERS else f"{text[:QUOTED_CHARACTERS]}…"
        for text in (pair.source, pair.target)
    ]
    printable = [
        "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text) for text in sides
    ]
    return f"{where}{f' ({note})' if note else ''}: {printable[0]} | {printable[1]}"


def faulty_lines(path: Path, corpus: Corpus, keep: Sequence[str]) -> dict[int, str]:
    """Return the faulty lines of a corpus and the kind of fault, from the JSON of an audit.

    Kinds in `keep` are left out, and so are those that the filters of `sixfold clean` find by themselves.
    """
    kinds = [kind for kind in KINDS if kind not in FILTERS]
    for kind in keep:
        if kind not in kinds:
            raise ConfigError(f"--keep: expected one of {', '.join(kinds)}; got {kind!r}", did_you_mean(kind, kinds))
    try:
        audit = json.loads(path.read_text(encoding="utf-8"))
        digest = audit["corpus"]["digest"]
        lines = {finding["name"]: finding["lines"] for finding in audit["findings"]}
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path}: expected the JSON of sixfold doctor", "sixfold doctor … --output DIR") from None
    if audit.get("format") != FORMAT:
        raise DataError(f"{path}: expected format {FORMAT}; got {audit.get('format')!r}", "run sixfold doctor again")
    if digest != corpus.digest():
        names = ", ".join(map(str, audit["corpus"].get("files", [])))
        raise DataError(
            f"{path}: was made from another corpus ({names}), or the corpus has changed since",
            "run sixfold doctor again",
        )
    # If a line has several faults, the first kind of the list is reported.
    return {line: kind for kind in reversed(kinds) if kind not in keep for line in lines.get(kind, [])}
