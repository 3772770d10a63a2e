"""Which pairs are worth learning from, told by cheap rules that each have a name, a count and examples."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import compress, islice
from typing import Any, NamedTuple, get_args

import numpy as np

from sixfold.config import DataConfig, Filter
from sixfold.data.corpus import Corpus, Pair
from sixfold.errors import DataError
from sixfold.text.languages import LETTERS, SCRIPTS, chinese_variant, count_characters, letters, weighted_length

CHUNK = 10_000  # pairs that are looked up among those seen at once
EXAMPLES = 3
# What to do about a corpus that a filter dropped as a whole, where leaving the filter off would be wrong.
CURES = {
    "encoding": "convert the file to UTF-8, for example: iconv -f GB18030 -t UTF-8",
    "script": "are the two sides swapped, or data.source and data.target?",
}
SMOOTHING = 10  # units added to both sides before their ratio is taken: short pairs vary more
UNTRANSLATED = 4  # Latin words make a sentence; fewer may be a name, which has no letter of another script
REPLACEMENT = "\ufffd"

# Controls, overrides of direction, byte order marks and anchors of annotations. The joiners U+200C and U+200D stay:
# Persian, the scripts of India and emoji need them; so do the marks of direction, which Arabic and Hebrew need.
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202d\u202e\ufeff\ufff9-\ufffb]")
_ZERO_WIDTH_SPACE = "\u200b"
_ZERO_WIDTH_SPACED = ("km", "lo", "my", "th")  # where it says at which word a line may break
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
# Only tags of HTML, as <name> is a placeholder in manuals, and only links and templates that are whole, as brackets
# and braces nest in code and formulas.
_MARKUP = re.compile(
    r"</?(?:a|b|br|center|code|div|em|font|h[1-6]|hr|i|img|li|ol|p|pre|ref|small|span|strong|sub|sup|table|t[dhr]|u|ul)"
    r"(?:\s[^<>]*)?/?>"
    r"|&(?:[A-Za-z]{2,8}|\#\d{2,6}|\#[xX][0-9A-Fa-f]{2,5});"
    r"|\{\{[^{}]+\}\}"
    r"|\[\[[^\[\]|]+\|[^\[\]]+\]\]"
)


class Writing(NamedTuple):
    """How a language is written: runs of its own letters and words in letters that neither it nor Latin has."""

    own: re.Pattern[str]
    foreign: re.Pattern[str]

    @classmethod
    def of(cls, language: str) -> Writing | None:
        if language not in SCRIPTS:
            return None
        others = "".join(LETTERS[script] for script in LETTERS if script not in ("Latin", *SCRIPTS[language]))
        # Two letters make a word; one alone is often a symbol, as α and Ω are.
        return cls(letters(*SCRIPTS[language]), re.compile(f"[{others}]{{2,}}"))


class Rules(NamedTuple):
    """What the filters are told besides the pair."""

    max_characters: int
    max_ratio: float
    languages: tuple[str, str]
    writings: tuple[Writing | None, Writing | None]

    @property
    def one_language(self) -> bool:
        return self.languages[0] == self.languages[1] != ""


def empty(source: str, target: str, rules: Rules) -> bool:
    return not source or not target


def encoding(source: str, target: str, rules: Rules) -> bool:
    """Bytes that were no UTF-8, or half a surrogate pair."""
    if REPLACEMENT in source or REPLACEMENT in target:
        return True
    return not _printable(source, target) and bool(_LONE_SURROGATES.search(source) or _LONE_SURROGATES.search(target))


def control(source: str, target: str, rules: Rules) -> bool:
    """Characters that no reader sees and no writer meant."""
    return not _printable(source, target) and (
        _invisible(source, rules.languages[0]) or _invisible(target, rules.languages[1])
    )


def _printable(source: str, target: str) -> bool:
    """Whether all is well at a glance, as it is with almost every pair."""
    return source.isprintable() and target.isprintable()


def _invisible(text: str, language: str) -> bool:
    return bool(_CONTROLS.search(text)) or (_ZERO_WIDTH_SPACE in text and language not in _ZERO_WIDTH_SPACED)


def markup(source: str, target: str, rules: Rules) -> bool:
    """Tags, entities, links or templates left over on one side; on both they are what the text is about."""
    return bool(_MARKUP.search(source)) != bool(_MARKUP.search(target))


def long(source: str, target: str, rules: Rules) -> bool:
    return len(source) > rules.max_characters or len(target) > rules.max_characters


def ratio(source: str, target: str, rules: Rules) -> bool:
    """One side says much more than the other."""
    first, second = len(source) + SMOOTHING, len(target) + SMOOTHING
    most_first = first if source.isascii() else 3 * first
    most_second = second if target.isascii() else 3 * second
    if most_first <= rules.max_ratio * second and most_second <= rules.max_ratio * first:
        return False  # whatever the characters are; counting them takes longer
    shorter, longer = sorted((weighted_length(source) + SMOOTHING, weighted_length(target) + SMOOTHING))
    return longer > rules.max_ratio * shorter


def script(source: str, target: str, rules: Rules) -> bool:
    """A side is not written as its language is."""
    first, second = rules.writings
    return (first is not None and _misplaced(source, first)) or (second is not None and _misplaced(target, second))


def _misplaced(text: str, writing: Writing) -> bool:
    # Latin counts as foreign nowhere: names, code and units stay Latin in technical text of every language, so that
    # a good Chinese sentence may have ten Latin letters to one of its own. Only a side without any is untranslated.
    own = writing.own.search(text)
    if own is None:
        latin = sum(bool(letters("Latin").search(word)) for word in text.split())
        return latin >= UNTRANSLATED or bool(writing.foreign.search(text))
    if text.isascii() or 3 * len(own[0]) >= len(text) or not writing.foreign.search(text):
        return False  # there is no room for twice as many foreign letters, or there are none
    return 2 * count_characters(writing.own, text) < count_characters(writing.foreign, text)


def copied(source: str, target: str, rules: Rules) -> bool:
    """The same words on both sides; within one language that may be right, as in the correction of grammar."""
    return not rules.one_language and same_words(source, target)


def same_words(source: str, target: str) -> bool:
    """Whether two texts differ in case and white space only, and hold a letter."""
    if source[:1].casefold() != target[:1].casefold():
        return False
    same = "".join(source.casefold().split()) == "".join(target.casefold().split())
    return same and any(map(str.isalpha, source))


# Asked in this order; the first to say yes takes the pair out.
FILTERS: dict[str, Callable[[str, str, Rules], bool] | None] = {
    "empty": empty,
    "encoding": encoding,
    "control": control,
    "markup": markup,
    "long": long,
    "ratio": ratio,
    "script": script,
    "copied": copied,
    "duplicate": None,  # depends on all pairs before: Cleaner asks Seen, a chunk at a time
}


class Seen:
    """A set of 64-bit hashes at 8 bytes each: sorted arrays, every one at least twice as long as the next."""

    def __init__(self, hashes: np.ndarray | None = None) -> None:
        self._levels: list[np.ndarray] = []
        if hashes is not None:
            self.add(hashes)

    def add(self, hashes: np.ndarray) -> np.ndarray:
        """Take in hashes; True where one is new, at its first place in the batch."""
        unique, first = np.unique(hashes.astype(np.uint64, copy=False), return_index=True)
        new = np.ones(len(unique), bool)
        for level in self._levels:
            places = np.minimum(np.searchsorted(level, unique), len(level) - 1)
            new &= level[places] != unique
        self._push(unique[new])
        mask = np.zeros(len(hashes), bool)
        mask[first[new]] = True
        return mask

    def hashes(self) -> np.ndarray:
        """All of them, sorted."""
        return np.sort(np.concatenate([*self._levels, np.empty(0, np.uint64)]), kind="stable")

    def _push(self, level: np.ndarray) -> None:
        while self._levels and len(self._levels[-1]) < 2 * len(level):
            # The stable sort finds the two sorted runs and merges them.
            level = np.sort(np.concatenate([self._levels.pop(), level]), kind="stable")
        if len(level):
            self._levels.append(level)


def hash_of(*texts: str) -> bytes:
    """Return eight bytes that are the same for records that differ in case and white space only."""
    plain = "\n".join(map(_folded, texts))
    return hashlib.blake2b(plain.encode("utf-8", "replace"), digest_size=8).digest()


def _folded(text: str) -> str:
    folded = text.casefold().strip()
    # The space is the only white space that is printable: most texts need no splitting.
    return folded if text.isprintable() and "  " not in text else " ".join(folded.split())


def how_to_leave_off(kind: str) -> str:
    """Filters are settings; what a doctor's report condemns is not."""
    return f"--set data.skip='[\"{kind}\"]'" if kind in get_args(Filter) else f"--keep {kind}"


@dataclass
class Report:
    """What cleaning did: counts that add up, and where to look."""

    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    simplified: int = 0  # kept pairs whose Chinese is of this kind
    traditional: int = 0
    unchanged: int = 0  # kept pairs of one language whose two sides are the same

    def drop(self, name: str, where: str) -> None:
        self.dropped[name] = self.dropped.get(name, 0) + 1
        examples = self.examples.setdefault(name, [])
        if len(examples) < EXAMPLES:
            examples.append(where)

    def merge(self, other: Report) -> None:
        """Add what was done to other pairs."""
        for name in ("read", "kept", "simplified", "traditional", "unchanged"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, number in other.dropped.items():
            self.dropped[name] = self.dropped.get(name, 0) + number
        for name, examples in other.examples.items():
            self.examples[name] = [*self.examples.get(name, []), *examples][:EXAMPLES]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        return cls(**values)

    def nothing_left(self) -> DataError:
        """What to tell a user whose corpus was dropped as a whole."""
        if not self.read:
            return DataError("corpus: expected pairs of text; it is empty")
        most = max(self.dropped, key=self.dropped.__getitem__)
        return DataError(
            f"corpus: none of {self.read:,} pairs is left; the filter {most!r} dropped {self.dropped[most]:,} of them, "
            f"the first at {self.examples[most][0]}",
            CURES.get(most, f"look at that line; if it is good, leave the filter off: {how_to_leave_off(most)}"),
        )

    @property
    def is_a_copy(self) -> bool:
        """Whether most pairs have the same text on both sides, so that there is hardly anything to learn."""
        return self.dropped.get("copied", 0) + self.unchanged > self.read / 2

    def lines(self) -> list[str]:
        """For a person: what was kept, what each filter took and one place to see it."""
        table = [f"{self.read:,} pairs read, {self.kept:,} kept ({self.kept / max(self.read, 1):.1%})"]
        for name, number in self.dropped.items():
            if number:
                table.append(f"{name:>14} {number:>11,} {number / self.read:>6.1%}  {self.examples[name][0]}")
        rarer, all_told = min(self.simplified, self.traditional), self.simplified + self.traditional
        if rarer > all_told / 100:
            table.append(
                f"Chinese of both kinds: {self.simplified / all_told:.1%} simplified, "
                f"{self.traditional / all_told:.1%} traditional"
            )
        return table


class Cleaner:
    """Lets good pairs through, in order, and counts the rest; a pair seen in an earlier corpus is a duplicate too."""

    def __init__(
        self, config: DataConfig, languages: tuple[str, str], seen: Seen | None = None, report: Report | None = None
    ) -> None:
        enabled = [name for name in FILTERS if name not in config.skip]
        self.seen = seen or Seen()
        self.report = report or Report(dropped=dict.fromkeys(enabled, 0))
        self._filters = [(name, test) for name in enabled if (test := FILTERS[name])]
        self._once = "duplicate" in enabled
        self._counts_copies = "copied" in enabled
        self._chinese = next((side for side, code in zip(Pair._fields[1:], languages, strict=True) if code == "zh"), "")
        writings = (Writing.of(languages[0]), Writing.of(languages[1]))
        self._rules = Rules(config.max_characters, config.max_ratio, languages, writings)

    def clean(self, corpus: Corpus, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs of a corpus that pass; `corpus` is asked only where a pair stands."""
        remaining = iter(pairs)
        while chunk := list(islice(remaining, CHUNK)):
            self.report.read += len(chunk)
            yield from self._unseen(corpus, [pair for pair in chunk if self._passes(corpus, pair)])

    def _passes(self, corpus: Corpus, pair: Pair) -> bool:
        line, source, target = pair
        for name, test in self._filters:
            if test(source, target, self._rules):
                self.report.drop(name, corpus.where(line))
                return False
        return True

    def _unseen(self, corpus: Corpus, pairs: list[Pair]) -> list[Pair]:
        new = [True] * len(pairs)
        if self._once:
            hashes = b"".join([hash_of(source, target) for _, source, target in pairs])
            new = self.seen.add(np.frombuffer(hashes, np.uint64)).tolist()
        for pair, fresh in zip(pairs, new, strict=True):
            if not fresh:
                self.report.drop("duplicate", corpus.where(pair.line))
        kept = list(compress(pairs, new))
        self.report.kept += len(kept)
        if self._rules.one_language and self._counts_copies:
            self.report.unchanged += sum(same_words(source, target) for _, source, target in kept)
        if self._chinese:
            variants = Counter(chinese_variant(getattr(pair, self._chinese)) for pair in kept)
            self.report.simplified += variants["simplified"]
            self.report.traditional += variants["traditional"]
        return kept
