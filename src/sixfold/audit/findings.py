"""What an audit found: for each kind of fault the lines, how bad they are, and what to do about it."""

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
EXAMPLES = 3
QUOTED = 60  # characters of a side that are shown


class Kind(NamedTuple):
    """A kind of fault, in words."""

    what: str
    advice: str


_USING = "drop them: sixfold clean … --using doctor.json"
# Those that `sixfold clean` finds by itself come last, by the names of its filters.
KINDS = {
    "misaligned": Kind("the two sides do not say the same", _USING),
    "swapped": Kind("each side is in the language of the other", f"swap them back, or {_USING}"),
    "untranslated": Kind("a side is in the language of the other", _USING),
    "mojibake": Kind("decoded by the wrong rules", f"read the original as UTF-8 or as what it is; else {_USING}"),
    "lopsided": Kind("a side is much longer than is usual here", f"a sentence may be missing; {_USING}"),
    "numbers": Kind("each side has figures that the other lacks", f"look at a few; {_USING}"),
    "near-duplicate": Kind("nearly the same pair stands earlier", _USING),
    "leaked": Kind("a sentence of a test set", f"scores on that set would mean nothing; {_USING}"),
    "empty": Kind("a side is empty", "sixfold train and clean drop them"),
    "encoding": Kind("bytes that were no UTF-8", "convert the file, for example: iconv -f GB18030 -t UTF-8"),
    "control": Kind("control characters or overrides of direction", "sixfold train and clean drop them"),
    "markup": Kind("markup is left over on one side only", "sixfold train and clean drop them"),
    "long": Kind("longer than data.max_characters", "split them into sentences; sixfold train and clean drop them"),
    "ratio": Kind("one side is beyond data.max_ratio times as long", "sixfold train and clean drop them"),
    "script": Kind("a side is not written as its language is", "sixfold train and clean drop them"),
    "copied": Kind("both sides are the same", "sixfold train and clean drop them"),
    "duplicate": Kind("the same pair stands earlier", "sixfold train and clean keep the first"),
}


@dataclass
class Finding:
    """All lines with one kind of fault."""

    lines: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)  # the higher, the worse
    notes: list[str] = field(default_factory=list)  # what it is like, or what differs; empty where there is nothing
    examples: list[str] = field(default_factory=list)  # the worst, quoted

    def add(self, line: int, score: float = 1.0, note: str = "") -> None:
        self.lines.append(line)
        self.scores.append(round(score, 3))
        self.notes.append(note)

    def worst(self) -> list[int]:
        """Where the worst stand among the lines."""
        return sorted(range(len(self.lines)), key=lambda place: -self.scores[place])[:EXAMPLES]


@dataclass
class Audit:
    """A corpus, counted, and what is wrong with it."""

    corpus: Corpus
    languages: tuple[str, str]
    pairs: int = 0
    words: int = 0  # different ones of both sides, estimated
    letters: list[int] = field(default_factory=lambda: [0, 0])  # of each side; a Han character counts as three
    findings: dict[str, Finding] = field(default_factory=lambda: {kind: Finding() for kind in KINDS})
    variants: dict[str, int] = field(default_factory=dict)  # of Chinese
    alignment: dict[str, Any] = field(default_factory=dict)
    histograms: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)  # counts, and edges of bars

    def count(self, name: str, edges: np.ndarray, values: np.ndarray) -> None:
        """Add values to a histogram; what lies outside goes into the outermost bars."""
        counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
        before = self.histograms.get(name)
        self.histograms[name] = (counts if before is None else before[0] + counts, edges)

    @property
    def condemned(self) -> int:
        """Pairs that are better left out, each counted once."""
        return len({line for finding in self.findings.values() for line in finding.lines})

    def remarks(self) -> list[str]:
        """What is true of the corpus as a whole."""
        found = []
        if self.pairs and len(self.findings["swapped"].lines) > self.pairs / 2:
            found.append("the sides are swapped: name the two files, or the two languages, the other way round")
        known = {kind: number for kind, number in self.variants.items() if kind}
        if len(known) == 2 and min(known.values()) > sum(known.values()) / 100:
            shares = ", ".join(f"{number / sum(known.values()):.1%} {kind}" for kind, number in sorted(known.items()))
            found.append(f"Chinese of both kinds: {shares}; convert one, or tag them")
        if self.pairs and not self.alignment.get("trusted"):
            found.append("too few pairs, or too unlike each other, to tell misaligned ones from free translations")
        return found

    def quote(self) -> None:
        """Read the worst lines again, to show them."""
        wanted = {finding.lines[place] for finding in self.findings.values() for place in finding.worst()}
        last = max(wanted, default=0)
        pairs: dict[int, Pair] = {}
        for pair in self.corpus.pairs() if wanted else ():
            if pair.line in wanted:
                pairs[pair.line] = pair
            if pair.line == last:
                break
        for finding in self.findings.values():
            finding.examples = [
                quoted(self.corpus.where(line), pairs[line], finding.notes[place])
                for place in finding.worst()
                for line in [finding.lines[place]]
            ]

    def to_dict(self) -> dict[str, Any]:
        """All of it, for programs, and for `sixfold clean --using`."""
        findings = []
        for name, finding in self.findings.items():
            fact: dict[str, Any] = {"name": name, "what": KINDS[name].what, "count": len(finding.lines)}
            fact |= {"share": round(len(finding.lines) / max(self.pairs, 1), 6), "advice": KINDS[name].advice}
            fact |= {"lines": finding.lines, "scores": finding.scores, "examples": finding.examples}
            findings.append(fact | ({"notes": finding.notes} if any(finding.notes) else {}))
        return {
            "format": FORMAT,
            "corpus": {"files": [file.name for file in self.corpus.files], "digest": self.corpus.digest()},
            "languages": list(self.languages),
            "pairs": self.pairs,
            "condemned": self.condemned,
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
        """For a person: what was found, the worst of it, and what to do."""
        arrow = "→".join(language or "?" for language in self.languages)
        bad = f"{self.condemned:,} ({self.condemned / max(self.pairs, 1):.1%}) are better left out{self._misaligned()}"
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
        """For the summary: how many pairs are condemned as misaligned, and how many there are by the scores of all."""
        number = len(self.findings["misaligned"].lines)
        if not number:
            return ""
        share = self.alignment["unrelated"]
        return f", {number:,} of them as misaligned (by estimate {share:.1%} of all pairs are misaligned)"


def quoted(where: str, pair: Pair, note: str) -> str:
    """A pair on one line that a terminal shows as it is."""
    sides = [text if len(text) <= QUOTED else f"{text[:QUOTED]}…" for text in (pair.source, pair.target)]
    shown = ["".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text) for text in sides]
    return f"{where}{f' ({note})' if note else ''}: {shown[0]} | {shown[1]}"


def condemned(path: Path, corpus: Corpus, keep: Sequence[str]) -> dict[int, str]:
    """Which lines of a corpus an audit condemns, and why; the filters of `sixfold clean` find the rest again."""
    kinds = [kind for kind in KINDS if kind not in FILTERS]
    for kind in keep:
        if kind not in kinds:
            raise ConfigError(f"--keep: expected one of {', '.join(kinds)}; got {kind!r}", did_you_mean(kind, kinds))
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        digest = facts["corpus"]["digest"]
        found = {fact["name"]: fact["lines"] for fact in facts["findings"]}
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path}: expected what sixfold doctor --json wrote", "sixfold doctor … --output DIR") from None
    if facts.get("format") != FORMAT:
        raise DataError(f"{path}: expected format {FORMAT}; got {facts.get('format')!r}", "run sixfold doctor again")
    if digest != corpus.digest():
        names = ", ".join(map(str, facts["corpus"].get("files", [])))
        raise DataError(
            f"{path}: was made from other text ({names}), or the text has changed since", "run sixfold doctor again"
        )
    # The first kind of the list wins where a line has several.
    return {line: kind for kind in reversed(kinds) if kind not in keep for line in found.get(kind, [])}
