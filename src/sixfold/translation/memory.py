"""What was translated before: a sentence that is known is not asked for again, and one that is alike is shown."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from sixfold.text.languages import LETTERS, UNSPACED
from sixfold.translation.direction import collapse_whitespace
from sixfold.translation.pair_files import Languages, Pair, is_turned, read_pairs, read_tmx, turned_about
from sixfold.translation.result import Match

LEAST, MOST = 0.7, 3  # how alike, and how many, what is shown for a sentence
LONGEST = 2000  # words of a sentence that is compared with others: the time grows by the square of their number
NEARLY = 0.99  # the most for what is not the same, as where but a space differs
_ALONE = "".join(LETTERS[script] for script in UNSPACED)
_UNIT = re.compile(rf"[{_ALONE}]|[^\W{_ALONE}]+|[^\w\s]")


@dataclass(frozen=True)
class TranslationMemory:
    """Sentences, or lines, and their translations; of several with one source the last counts."""

    entries: tuple[Pair, ...]
    languages: Languages | None = None  # that it is for; None: whatever it is used for

    @classmethod
    def read(cls, path: Path | str) -> TranslationMemory:
        """TMX by its name, else two columns separated by tabs, with or without a first line of two language codes."""
        path = Path(path)
        return cls(*(read_tmx(path) if path.suffix.lower() == ".tmx" else read_pairs(path, "a sentence")))

    def toward(self, languages: Languages) -> TranslationMemory:
        """The entries for a direction: its own, or turned about."""
        turned = is_turned(self.languages, languages)
        if turned is None:
            return TranslationMemory((), languages)
        return self._turned if turned else self

    def __contains__(self, sentence: object) -> bool:
        return isinstance(sentence, str) and folded(sentence) in self._known

    def exact(self, sentence: str) -> str | None:
        """The translation of a sentence that is there, but for white space and the forms of Unicode."""
        return self._known.get(folded(sentence))

    def fuzzy(self, sentence: str, least: float = LEAST, count: int = MOST) -> list[Match]:
        """What is most alike, the best first: a score is the share of words that need no edit, 1 for the same text.

        Where words are not set apart by spaces, each character counts as one. A sentence of more than `LONGEST` words
        is alike to none.
        """
        text = folded(sentence)
        units = units_of(text)
        if len(units) > LONGEST:
            return []
        bounds = self._index.bounds(units)
        near = np.flatnonzero(bounds >= max(least, 1e-9))
        best: list[tuple[float, int]] = []
        for number in map(int, near[np.argsort(-bounds[near], kind="stable")]):
            if best[count - 1 :] and bounds[number] < -best[-1][0]:
                break  # nor can any that follows be better than those
            score = _alike(text, units, self._sources[number])
            if score >= least:
                best = sorted([*best, (-score, number)])[:count]
        return [self._match(self._sources[number], -cost) for cost, number in best]

    def matches(self, sentences: Iterable[str]) -> tuple[Match, ...]:
        """What is known of some sentences: what is the same, or else what is alike."""
        found = []
        for sentence in dict.fromkeys(map(folded, sentences)):
            found += [self._match(sentence, 1.0)] if sentence in self._known else self.fuzzy(sentence)
        return tuple(found)

    def digest(self) -> str:
        """A name for what is in it."""
        return hashlib.sha256(json.dumps([self.languages, self.entries]).encode()).hexdigest()

    @cached_property
    def _turned(self) -> TranslationMemory:
        return TranslationMemory(turned_about(self.entries), self.languages and (self.languages[1], self.languages[0]))

    @cached_property
    def _known(self) -> dict[str, str]:
        pairs = ((folded(source), collapse_whitespace(target)) for source, target in self.entries)
        return {source: target for source, target in pairs if source and target}

    @cached_property
    def _sources(self) -> list[str]:
        return list(self._known)

    @cached_property
    def _index(self) -> _Index:
        return _Index(self._sources)

    def _match(self, source: str, score: float) -> Match:
        return Match(source, self._known[source], score)


class _Index:
    """Which texts have which units.

    The longer of two texts, less the units that both have, is the least number of edits between them. So what they
    share bounds how alike they are, and whoever looks at them by that bound may stop early and has missed nothing.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.numbers: defaultdict[tuple[str, int], int] = defaultdict(lambda: len(self.numbers))
        units = [[self.numbers[unit] for unit in counted(units_of(text))] for text in texts]
        self.lengths = np.fromiter(map(len, units), np.int32, len(units))
        flat = np.fromiter(chain.from_iterable(units), np.int32, int(self.lengths.sum()))
        order = np.argsort(flat, kind="stable")
        self.texts = np.repeat(np.arange(len(units), dtype=np.int32), self.lengths)[order]  # by their units
        self.starts = np.searchsorted(flat[order], np.arange(len(self.numbers) + 1))
        self.numbers.default_factory = None

    def bounds(self, units: Sequence[str]) -> np.ndarray:
        """For every text, the most that it can be alike."""
        known = [self.numbers[unit] for unit in counted(units) if unit in self.numbers]
        runs = [self.texts[self.starts[number] : self.starts[number + 1]] for number in known]
        shared = np.bincount(np.concatenate(runs), minlength=len(self.lengths)) if runs else np.zeros_like(self.lengths)
        return shared / np.maximum(self.lengths, len(units))


def folded(text: str) -> str:
    """In one form of Unicode, with single spaces."""
    return collapse_whitespace(unicodedata.normalize("NFC", text))


def units_of(text: str) -> list[str]:
    """Words and marks; where words are not set apart, characters."""
    return _UNIT.findall(text)


def counted(units: Iterable[str]) -> list[tuple[str, int]]:
    """Each with how often it has come, so that the second of a kind is another than the first."""
    seen: Counter[str] = Counter()
    found = []
    for unit in units:
        seen[unit] += 1
        found.append((unit, seen[unit]))
    return found


def _alike(text: str, units: Sequence[str], other: str) -> float:
    if text == other:
        return 1.0
    others = units_of(other)
    longer = max(len(units), len(others))
    return min(NEARLY, (longer - distance(units, others)) / longer)


def distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Edits from one to the other: units put in, left out or replaced.

    A column of the table of all beginnings is two integers, with a bit for each unit of `one`: where the number of
    edits goes up from one row to the next, and where it goes down (Myers 1999).
    """
    places: defaultdict[str, int] = defaultdict(int)
    for at, unit in enumerate(one):
        places[unit] |= 1 << at
    edits, everywhere, last = len(one), (1 << len(one)) - 1, 1 << len(one) >> 1
    up, down = everywhere, 0
    for unit in other:
        same = places.get(unit, 0)
        diagonal = (((same & up) + up) ^ up) | same
        more, fewer = (down | ~(diagonal | up)) & everywhere, up & diagonal
        edits += bool(more & last) - bool(fewer & last)
        more, fewer = more << 1 | 1, fewer << 1
        same |= down
        up, down = (fewer | ~(same | more)) & everywhere, more & same & everywhere
    return edits if one else len(other)
