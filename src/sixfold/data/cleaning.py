"""Filters that drop bad pairs by cheap rules; each filter has a name, a count and examples."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import compress, islice
from typing import Any, NamedTuple, get_args

import numpy as np

from sixfold.config import DataConfig, Filter
from sixfold.data.corpus import Corpus, Pair
from sixfold.errors import DataError
from sixfold.text.chinese import chinese_variant
from sixfold.text.languages import LETTERS, SCRIPTS, count_characters, letters, weighted_length

PAIRS_PER_CHUNK = 10_000  # that are checked for duplicates at once
EXAMPLES = 3  # of each filter
# Hints for a corpus that a filter drops completely, for filters that should not be disabled.
HINTS = {
    "encoding": "convert the file to UTF-8, for example: iconv -f GB18030 -t UTF-8",
    "script": "are the two sides swapped, or data.source and data.target?",
}
SMOOTHING = 10  # added to both lengths before their ratio is taken, because short pairs vary more
MIN_UNTRANSLATED_WORDS = 4  # in Latin letters; fewer may be a name, which stays in Latin letters
REPLACEMENT = "\ufffd"
PASSED = 255  # instead of the number of a filter

# Control characters, direction overrides, byte order marks and annotation anchors. The joiners U+200C and U+200D are
# allowed, because Persian, the scripts of India and emoji need them; so are the direction marks of Arabic and Hebrew.
_CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202d\u202e\ufeff\ufff9-\ufffb]")
_ZERO_WIDTH_SPACE = "\u200b"
_ZERO_WIDTH_SPACED = ("km", "lo", "my", "th")  # languages that use it to show where a line may break
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
# Only HTML tags, because <name> is a placeholder in manuals, and only complete links and templates, because code and
# formulas have nested brackets and braces.
_MARKUP = re.compile(
    r"</?(?:a|b|br|center|code|div|em|font|h[1-6]|hr|i|img|li|ol|p|pre|ref|small|span|strong|sub|sup|table|t[dhr]|u|ul)"
    r"(?:\s[^<>]*)?/?>"
    r"|&(?:[A-Za-z]{2,8}|\#\d{2,6}|\#[xX][0-9A-Fa-f]{2,5});"
    r"|\{\{[^{}]+\}\}"
    r"|\[\[[^\[\]|]+\|[^\[\]]+\]\]"
)


class WritingSystem(NamedTuple):
    """Patterns for the script of a language: `own` letters, and `foreign` words in neither its script nor Latin."""

    own: re.Pattern[str]
    foreign: re.Pattern[str]

    @classmethod
    def of(cls, language: str) -> WritingSystem | None:
        """Return the patterns of a language, or None if its script is unknown."""
        if language not in SCRIPTS:
            return None
        others = "".join(LETTERS[script] for script in LETTERS if script not in ("Latin", *SCRIPTS[language]))
        # At least two letters: a single one is often a symbol, such as α or Ω.
        return cls(letters(*SCRIPTS[language]), re.compile(f"[{others}]{{2,}}"))


class FilterContext(NamedTuple):
    """The settings and languages that filters use besides the pair."""

    max_characters: int
    max_ratio: float
    languages: tuple[str, str]
    writing_systems: tuple[WritingSystem | None, WritingSystem | None]

    @property
    def one_language(self) -> bool:
        return self.languages[0] == self.languages[1] != ""


def is_empty(source: str, target: str, context: FilterContext) -> bool:
    return not source or not target


def has_bad_encoding(source: str, target: str, context: FilterContext) -> bool:
    """Return whether a side has bytes that were not UTF-8, or half a surrogate pair."""
    if REPLACEMENT in source or REPLACEMENT in target:
        return True
    return not _printable(source, target) and bool(_LONE_SURROGATES.search(source) or _LONE_SURROGATES.search(target))


def has_control_characters(source: str, target: str, context: FilterContext) -> bool:
    """Return whether a side has invisible characters that do not belong in text."""
    return not _printable(source, target) and (
        _invisible(source, context.languages[0]) or _invisible(target, context.languages[1])
    )


def _printable(source: str, target: str) -> bool:
    """Return whether a pair has printable characters only, as almost every pair does; this is fast."""
    return source.isprintable() and target.isprintable()


def _invisible(text: str, language: str) -> bool:
    return bool(_CONTROLS.search(text)) or (_ZERO_WIDTH_SPACE in text and language not in _ZERO_WIDTH_SPACED)


def has_one_sided_markup(source: str, target: str, context: FilterContext) -> bool:
    """Return whether only one side has tags, entities, links or templates; on both sides they belong to the text."""
    return bool(_MARKUP.search(source)) != bool(_MARKUP.search(target))


def is_long(source: str, target: str, context: FilterContext) -> bool:
    return len(source) > context.max_characters or len(target) > context.max_characters


def has_unequal_lengths(source: str, target: str, context: FilterContext) -> bool:
    """Return whether one side is more than `max_ratio` times as long as the other."""
    first, second = len(source) + SMOOTHING, len(target) + SMOOTHING
    longest_first = first if source.isascii() else 3 * first
    longest_second = second if target.isascii() else 3 * second
    if longest_first <= context.max_ratio * second and longest_second <= context.max_ratio * first:
        return False  # for any characters; counting them takes longer
    shorter, longer = sorted((weighted_length(source) + SMOOTHING, weighted_length(target) + SMOOTHING))
    return longer > context.max_ratio * shorter


def has_wrong_script(source: str, target: str, context: FilterContext) -> bool:
    """Return whether a side is not in the script of its language."""
    first, second = context.writing_systems
    return (first is not None and _is_in_wrong_script(source, first)) or (
        second is not None and _is_in_wrong_script(target, second)
    )


def _is_in_wrong_script(text: str, writing: WritingSystem) -> bool:
    # Latin never counts as foreign: names, code and units stay Latin in technical text of every language, so a good
    # Chinese sentence may have ten Latin letters for each of its own. Only a side without own letters is untranslated.
    own = writing.own.search(text)
    if own is None:
        latin = sum(bool(letters("Latin").search(word)) for word in text.split())
        return latin >= MIN_UNTRANSLATED_WORDS or bool(writing.foreign.search(text))
    if text.isascii() or 3 * len(own[0]) >= len(text) or not writing.foreign.search(text):
        return False  # the foreign letters cannot be twice as many, or there are none
    return 2 * count_characters(writing.own, text) < count_characters(writing.foreign, text)


def is_copied(source: str, target: str, context: FilterContext) -> bool:
    """Return whether both sides have the same words; within one language, as in grammar correction, this is allowed."""
    return not context.one_language and same_words(source, target)


def same_words(source: str, target: str) -> bool:
    """Return whether two texts with a letter differ only in case and white space."""
    if source[:1].casefold() != target[:1].casefold():
        return False
    same = "".join(source.casefold().split()) == "".join(target.casefold().split())
    return same and any(map(str.isalpha, source))


# Applied in this order; the first filter that returns True drops the pair.
FILTERS: dict[str, Callable[[str, str, FilterContext], bool] | None] = {
    "empty": is_empty,
    "encoding": has_bad_encoding,
    "control": has_control_characters,
    "markup": has_one_sided_markup,
    "long": is_long,
    "ratio": has_unequal_lengths,
    "script": has_wrong_script,
    "copied": is_copied,
    "duplicate": None,  # depends on all earlier pairs: Cleaner uses a HashSet, one chunk at a time
}


class HashSet:
    """A set of 64-bit hashes in 8 bytes each: sorted arrays, each at least twice as long as the next."""

    def __init__(self, hashes: np.ndarray | None = None) -> None:
        self._levels: list[np.ndarray] = []
        if hashes is not None:
            self.add(hashes)

    def add(self, hashes: np.ndarray) -> np.ndarray:
        """Add hashes; return a mask that is True for each new hash, at its first position."""
        unique, first = np.unique(hashes.astype(np.uint64, copy=False), return_index=True)
        new = np.ones(len(unique), bool)
        for level in self._levels:
            positions = np.minimum(np.searchsorted(level, unique), len(level) - 1)
            new &= level[positions] != unique
        self._push(unique[new])
        mask = np.zeros(len(hashes), bool)
        mask[first[new]] = True
        return mask

    def hashes(self) -> np.ndarray:
        """Return all hashes, sorted."""
        return np.sort(np.concatenate([*self._levels, np.empty(0, np.uint64)]), kind="stable")

    def _push(self, level: np.ndarray) -> None:
        while self._levels and len(self._levels[-1]) < 2 * len(level):
            # A stable sort merges the two sorted runs.
            level = np.sort(np.concatenate([self._levels.pop(), level]), kind="stable")
        if len(level):
            self._levels.append(level)


def hash_record(*texts: str) -> bytes:
    """Return eight bytes that are equal for records that differ only in case and white space."""
    normalised = "\n".join(map(_normalised, texts))
    return hashlib.blake2b(normalised.encode("utf-8", "replace"), digest_size=8).digest()


def _normalised(text: str) -> str:
    folded = text.casefold().strip()
    # The space is the only printable white space, so most texts need no splitting.
    return folded if text.isprintable() and "  " not in text else " ".join(folded.split())


def how_to_disable(kind: str) -> str:
    """Return the option that disables a filter, or that keeps a kind of fault of `sixfold doctor`."""
    return f"--set data.skip='[\"{kind}\"]'" if kind in get_args(Filter) else f"--keep {kind}"


@dataclass
class CleaningReport:
    """The counts of cleaning, and the locations of some dropped pairs."""

    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    simplified: int = 0  # kept pairs with this kind of Chinese
    traditional: int = 0
    unchanged: int = 0  # kept pairs within one language with two equal sides

    def drop(self, name: str, where: str) -> None:
        """Count a pair that a filter dropped, and keep its location as an example."""
        self.dropped[name] = self.dropped.get(name, 0) + 1
        examples = self.examples.setdefault(name, [])
        if len(examples) < EXAMPLES:
            examples.append(where)

    def merge(self, other: CleaningReport) -> None:
        """Add the counts of another report."""
        for name in ("read", "kept", "simplified", "traditional", "unchanged"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, number in other.dropped.items():
            self.dropped[name] = self.dropped.get(name, 0) + number
        for name, examples in other.examples.items():
            self.examples[name] = [*self.examples.get(name, []), *examples][:EXAMPLES]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> CleaningReport:
        return cls(**values)

    def nothing_left(self, unit: str = "pairs") -> DataError:
        """Return the error for a corpus without any remaining record."""
        if not self.read:
            return DataError(f"corpus: expected {unit} of text; it is empty")
        largest = max(self.dropped, key=self.dropped.__getitem__)
        return DataError(
            f"corpus: none of {self.read:,} {unit} is left; the filter {largest!r} dropped {self.dropped[largest]:,} "
            f"of them, the first at {self.examples[largest][0]}",
            HINTS.get(largest, f"look at that line; if it is good, disable the filter: {how_to_disable(largest)}"),
        )

    @property
    def is_a_copy(self) -> bool:
        """Return whether most pairs have the same text on both sides, so that there is hardly anything to learn."""
        return self.dropped.get("copied", 0) + self.unchanged > self.read / 2

    def lines(self, unit: str = "pairs") -> list[str]:
        """Return the report for people: the records kept, and the count and one location for each filter."""
        table = [f"{self.read:,} {unit} read, {self.kept:,} kept ({self.kept / max(self.read, 1):.1%})"]
        for name, number in self.dropped.items():
            if number:
                table.append(f"{name:>14} {number:>11,} {number / self.read:>6.1%}  {self.examples[name][0]}")
        rarer, total = min(self.simplified, self.traditional), self.simplified + self.traditional
        if rarer > total / 100:
            table.append(
                f"Chinese of both kinds: {self.simplified / total:.1%} simplified, "
                f"{self.traditional / total:.1%} traditional"
            )
        return table


class FilterResults(NamedTuple):
    """The results of the filters that look at each pair alone."""

    filters: np.ndarray  # (pairs,): the number of the filter that drops the pair, or PASSED
    hashes: np.ndarray  # of the pairs that pass
    variants: Sequence[str | None]  # the kind of Chinese of the pairs that pass; empty if no side is Chinese


class Cleaner:
    """Passes on good pairs in order and counts the others; a pair of an earlier corpus is a duplicate too."""

    def __init__(
        self,
        config: DataConfig,
        languages: tuple[str, str],
        seen: HashSet | None = None,
        report: CleaningReport | None = None,
    ) -> None:
        enabled = [name for name in FILTERS if name not in config.skip]
        self.seen = seen or HashSet()
        self.report = report or CleaningReport(dropped=dict.fromkeys(enabled, 0))
        self._filters = [(name, test) for name in enabled if (test := FILTERS[name])]
        self._drops_duplicates = "duplicate" in enabled
        self._counts_copies = "copied" in enabled
        self._chinese = next((side for side, code in zip(Pair._fields[1:], languages, strict=True) if code == "zh"), "")
        writing_systems = (WritingSystem.of(languages[0]), WritingSystem.of(languages[1]))
        self._context = FilterContext(config.max_characters, config.max_ratio, languages, writing_systems)

    def clean(self, corpus: Corpus, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs that pass all filters; `corpus` is used for their locations only."""
        remaining = iter(pairs)
        while chunk := list(islice(remaining, PAIRS_PER_CHUNK)):
            yield from self.select(corpus, chunk, self.apply_filters(chunk))[0]

    def apply_filters(self, pairs: Sequence[Pair]) -> FilterResults:
        """Apply the filters that look at each pair alone. Nothing is changed, so that any process may do it."""
        filters = np.fromiter(map(self._first_filter, pairs), np.uint8, len(pairs))
        passing = list(compress(pairs, filters == PASSED))
        hashes = np.frombuffer(b"".join([hash_record(source, target) for _, source, target in passing]), np.uint64)
        variants = [chinese_variant(getattr(pair, self._chinese)) for pair in passing] if self._chinese else []
        return FilterResults(filters, hashes, variants)

    def select(self, corpus: Corpus, pairs: Sequence[Pair], results: FilterResults) -> tuple[list[Pair], np.ndarray]:
        """Return the pairs that pass and are no duplicates, and their hashes; count all pairs in the report."""
        self.report.read += len(pairs)
        for pair, number in zip(pairs, results.filters.tolist(), strict=True):
            if number != PASSED:
                self.report.drop(self._filters[number][0], corpus.where(pair.line))
        passing = list(compress(pairs, results.filters == PASSED))
        new = self.seen.add(results.hashes) if self._drops_duplicates else np.ones(len(passing), bool)
        for pair in compress(passing, ~new):
            self.report.drop("duplicate", corpus.where(pair.line))
        kept = list(compress(passing, new))
        self.report.kept += len(kept)
        if self._context.one_language and self._counts_copies:
            self.report.unchanged += sum(same_words(source, target) for _, source, target in kept)
        variants = Counter(compress(results.variants, new))
        self.report.simplified += variants["simplified"]
        self.report.traditional += variants["traditional"]
        return kept, results.hashes[new]

    def _first_filter(self, pair: Pair) -> int:
        """Return the number of the first filter that drops the pair, or PASSED."""
        _, source, target = pair
        for number, (_, test) in enumerate(self._filters):
            if test(source, target, self._context):
                return number
        return PASSED
