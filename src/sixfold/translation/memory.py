"""A translation memory: sentences translated before. Exact matches are used, fuzzy matches are shown."""

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
from typing import Literal

import numpy as np

from sixfold.text.languages import LETTERS, UNSPACED
from sixfold.translation.direction import collapse_whitespace
from sixfold.translation.pair_files import Languages, Pair, is_reversed, read_pairs, read_tmx, swap_sides
from sixfold.translation.protection import has_same_parts
from sixfold.translation.result import Match

MIN_SCORE = 0.7  # of fuzzy matches
MAX_MATCHES = 3  # fuzzy matches of a sentence
MAX_WORDS = 2000  # of a sentence with fuzzy matches: the time grows with the square of the number of words
MAX_INEXACT_SCORE = 0.99  # of sentences that are not equal, for example if only a space differs
_UNSPACED_LETTERS = "".join(LETTERS[script] for script in UNSPACED)
_WORD = re.compile(rf"[{_UNSPACED_LETTERS}]|[^\W{_UNSPACED_LETTERS}]+|[^\w\s]")


@dataclass(frozen=True)
class TranslationMemory:
    """Sentences or lines, and their translations; of several entries with one source, the last is used."""

    entries: tuple[Pair, ...]
    languages: Languages | None = None  # the direction of the entries; None: the direction it is used with

    @classmethod
    def read(cls, path: Path | str) -> TranslationMemory:
        """Read a memory from a file.

        The suffix .tmx stands for TMX. Any other file has two columns separated by tabs, with or without a first line
        of two language codes.
        """
        path = Path(path)
        return cls(*(read_tmx(path) if path.suffix.lower() == ".tmx" else read_pairs(path, "a sentence")))

    def toward(self, languages: Languages) -> TranslationMemory:
        """Return the entries for a direction: as they are, with their sides swapped, or none."""
        swapped = is_reversed(self.languages, languages)
        if swapped is None:
            return TranslationMemory((), languages)
        return self._swapped if swapped else self

    def __contains__(self, sentence: object) -> bool:
        return isinstance(sentence, str) and self.exact(sentence) is not None

    def exact(self, sentence: str) -> str | None:
        """Return the translation of a sentence, or None; white space and Unicode forms make no difference.

        An entry whose translation lacks a placeholder, a tag or another part that must be copied is not used.
        """
        translation = self._translations.get(normalise(sentence))
        return translation if translation is not None and has_same_parts(sentence, translation) else None

    def fuzzy(self, sentence: str, least: float = MIN_SCORE, count: int = MAX_MATCHES) -> list[Match]:
        """Return the `count` most similar entries with a score of at least `least`, the best first.

        The score is the share of words that need no edit, and 1 for the same text. Each character is a word in scripts
        without spaces. A sentence of more than `MAX_WORDS` words has no fuzzy matches.
        """
        text = normalise(sentence)
        words = split_words(text)
        if len(words) > MAX_WORDS:
            return []
        bounds = self._index.score_bounds(words)
        candidates = np.flatnonzero(bounds >= max(least, 1e-9))
        best: list[tuple[float, int]] = []  # minus the score, and the index of the source
        for index in map(int, candidates[np.argsort(-bounds[candidates], kind="stable")]):
            if best[count - 1 :] and bounds[index] < -best[-1][0]:
                break  # no later candidate can be better than the matches so far
            score = _similarity(text, words, self._sources[index])
            if score >= least:
                best = sorted([*best, (-score, index)])[:count]
        return [self._match(self._sources[index], -cost) for cost, index in best]

    def matches(self, sentences: Iterable[str]) -> tuple[Match, ...]:
        """Return the exact match of each sentence, or else its fuzzy matches."""
        matches = []
        for sentence in dict.fromkeys(map(normalise, sentences)):
            matches += [self._match(sentence, 1.0)] if sentence in self else self.fuzzy(sentence)
        return tuple(matches)

    def digest(self) -> str:
        """Return the SHA-256 of the entries and their direction."""
        return hashlib.sha256(json.dumps([self.languages, self.entries]).encode()).hexdigest()

    @cached_property
    def _swapped(self) -> TranslationMemory:
        languages = self.languages and (self.languages[1], self.languages[0])
        return TranslationMemory(swap_sides(self.entries), languages)

    @cached_property
    def _translations(self) -> dict[str, str]:
        """The translations by their normalised sources."""
        pairs = ((normalise(source), collapse_whitespace(target)) for source, target in self.entries)
        return {source: target for source, target in pairs if source and target}

    @cached_property
    def _sources(self) -> list[str]:
        return list(self._translations)

    @cached_property
    def _index(self) -> _WordIndex:
        return _WordIndex(self._sources)

    def _match(self, source: str, score: float) -> Match:
        return Match(source, self._translations[source], score)


@dataclass(frozen=True)
class HopMemory(TranslationMemory):
    """What one model of a route takes from a memory for the languages of the whole route.

    The first of two models keeps the sentences that the memory has, so that the last one can use their translations.
    """

    entries: tuple[Pair, ...] = ()
    of_route: TranslationMemory | None = None  # None: a memory of every text, which is its own translation
    role: Literal["keep", "use", "show"] = "keep"  # show: only say what matches

    def toward(self, languages: Languages) -> TranslationMemory:  # noqa: ARG002
        """Return this memory: the languages of the model do not matter."""
        return self

    def exact(self, sentence: str) -> str | None:
        """Return a sentence that stays as it is, or its translation in the memory of the route, or None."""
        if self.role == "show":
            return None
        translation = sentence if self.of_route is None else self.of_route.exact(sentence)
        return sentence if self.role == "keep" and translation is not None else translation

    def matches(self, sentences: Iterable[str]) -> tuple[Match, ...]:
        """Return the matches of each sentence of the original text; the last model reads another text."""
        return () if self.of_route is None or self.role == "use" else self.of_route.matches(sentences)


class _WordIndex:
    """An inverted index: the texts that contain each word.

    The number of edits between two texts is at least the length of the longer one less the number of words that both
    have. So the shared words bound the score, and a search in the order of this bound may stop early and miss nothing.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.ids: defaultdict[tuple[str, int], int] = defaultdict(lambda: len(self.ids))
        ids_of_texts = [[self.ids[word] for word in number_repeats(split_words(text))] for text in texts]
        self.lengths = np.fromiter(map(len, ids_of_texts), np.int32, len(ids_of_texts))  # texts
        flat = np.fromiter(chain.from_iterable(ids_of_texts), np.int32, int(self.lengths.sum()))
        order = np.argsort(flat, kind="stable")
        # The texts of word id i are texts[starts[i] : starts[i + 1]].
        self.texts = np.repeat(np.arange(len(ids_of_texts), dtype=np.int32), self.lengths)[order]
        self.starts = np.searchsorted(flat[order], np.arange(len(self.ids) + 1))
        self.ids.default_factory = None

    def score_bounds(self, words: Sequence[str]) -> np.ndarray:
        """Return the highest score that each text can have for these words."""
        ids = [self.ids[word] for word in number_repeats(words) if word in self.ids]
        runs = [self.texts[self.starts[number] : self.starts[number + 1]] for number in ids]
        shared = np.bincount(np.concatenate(runs), minlength=len(self.lengths)) if runs else np.zeros_like(self.lengths)
        return shared / np.maximum(self.lengths, len(words))


def normalise(text: str) -> str:
    """Return a text in Unicode form NFC with single spaces."""
    return collapse_whitespace(unicodedata.normalize("NFC", text))


def split_words(text: str) -> list[str]:
    """Return the words and punctuation marks of a text; each character is a word in scripts without spaces."""
    return _WORD.findall(text)


def number_repeats(words: Iterable[str]) -> list[tuple[str, int]]:
    """Return each word with how often it has occurred so far, so that a repeated word counts as often as it occurs."""
    counts: Counter[str] = Counter()
    numbered = []
    for word in words:
        counts[word] += 1
        numbered.append((word, counts[word]))
    return numbered


def _similarity(text: str, words: Sequence[str], source: str) -> float:
    if text == source:
        return 1.0
    source_words = split_words(source)
    longer = max(len(words), len(source_words))
    return min(MAX_INEXACT_SCORE, (longer - edit_distance(words, source_words)) / longer)


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of words to insert, delete or replace to get from one text to the other.

    A column of the table of edit distances is two integers with a bit for each word of `first`: `up` where the distance
    grows by one from a row to the next, `down` where it shrinks by one (Myers 1999).
    """
    positions: defaultdict[str, int] = defaultdict(int)  # a bit for each position of a word in `first`
    for index, word in enumerate(first):
        positions[word] |= 1 << index
    distance, all_bits, last_bit = len(first), (1 << len(first)) - 1, 1 << len(first) >> 1
    up, down = all_bits, 0
    for word in second:
        same = positions.get(word, 0)
        diagonal = (((same & up) + up) ^ up) | same
        right_up, right_down = (down | ~(diagonal | up)) & all_bits, up & diagonal
        distance += bool(right_up & last_bit) - bool(right_down & last_bit)
        right_up, right_down = right_up << 1 | 1, right_down << 1
        same |= down
        up, down = (right_down | ~(same | right_up)) & all_bits, right_up & same & all_bits
    return distance if first else len(second)
