"""Token ids of every pair, mapped from disk, and read the ways that a model learns them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sixfold.data.corpus import Corpus
from sixfold.errors import ConfigError
from sixfold.text.tokenizer import SPECIALS, Tokenizer


class Part(NamedTuple):
    """A corpus, read from source to target or back, with tags before what is then the source."""

    corpus: int
    back: bool = False
    tags: tuple[int, ...] = ()


@dataclass(frozen=True)
class Store:
    """Pairs of ids. What is handed out is a row of a part; sources end in <eos>, targets are bare."""

    source: np.ndarray  # as on disk: each text ends in <eos>
    target: np.ndarray  # here none does
    source_ends: np.ndarray
    target_ends: np.ndarray
    lines: np.ndarray
    corpora: Sequence[Corpus]
    corpus_ends: Sequence[int]  # where the pairs of each corpus end
    too_long: int  # pairs left out for data.max_tokens
    key: str = ""  # of the corpora, the tokeniser and what was left out
    readings: tuple[Part, ...] = ()  # none: every corpus as it is
    eos: int = SPECIALS.index("<eos>")

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return self.readings or tuple(map(Part, range(len(self.corpus_ends))))

    @cached_property
    def ends(self) -> list[int]:
        """Where the rows of each part end."""
        sizes = np.diff([0, *self.corpus_ends])
        return np.cumsum([sizes[part.corpus] for part in self.parts]).tolist()

    @property
    def weights(self) -> list[float]:
        """How often each part is seen in an epoch."""
        return [self.corpora[part.corpus].weight for part in self.parts]

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of every source and of every target with its <eos>."""
        sides = [_lengths(ends) for ends in (self.source_ends, self.target_ends)]
        sides[1] += 1
        if not self.readings:
            return sides[0], sides[1]
        source, target = np.empty(len(self), np.int32), np.empty(len(self), np.int32)
        bounds = [0, *self.corpus_ends]
        for part, begin, end in zip(self.parts, [0, *self.ends], self.ends, strict=False):
            pairs = slice(bounds[part.corpus], bounds[part.corpus + 1])
            np.add(sides[part.back][pairs], len(part.tags), out=source[begin:end])
            target[begin:end] = sides[not part.back][pairs]
        return source, target

    def gather(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The ids of these rows one after another, and their lengths: source, target, source and target lengths."""
        if not self.readings:
            one, other = _span(self.source_ends, rows), _span(self.target_ends, rows)
            return _gather(self.source, *one), _gather(self.target, *other), one[1], other[1]
        part, pairs = self._pairs(rows)
        back = np.array([each.back for each in self.parts])[part]
        one, other = _span(self.source_ends, pairs), _span(self.target_ends, pairs)
        one = one[0], one[1] - 1  # its <eos> stays behind
        source, source_lengths = self._tagged(*self._gather_either(back, one, other), part)
        target, target_lengths = self._gather_either(~back, one, other)
        return source, target, source_lengths, target_lengths

    def where(self, row: int) -> str:
        """The file and line that a pair came from."""
        (part,), (pair,) = self._pairs(np.array([row]))
        return self.corpora[self.parts[part].corpus].where(int(self.lines[pair]))

    def _pairs(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The part that each row is in, and the pair on disk."""
        part = np.searchsorted(self.ends, rows, side="right")
        begins = np.array([0, *self.corpus_ends])[[each.corpus for each in self.parts]]
        return part, rows - np.array([0, *self.ends])[part] + begins[part]

    def _gather_either(self, second: np.ndarray, one: Span, other: Span) -> tuple[np.ndarray, np.ndarray]:
        """From the targets on disk where `second` says so, else from the sources."""
        begins, lengths = (np.where(second, there, here) for here, there in zip(one, other, strict=True))
        ids = np.empty(lengths.sum(), np.int64)
        is_second = np.repeat(second, lengths)
        ids[~is_second] = _gather(self.source, begins[~second], lengths[~second])
        ids[is_second] = _gather(self.target, begins[second], lengths[second])
        return ids, lengths

    def _tagged(self, ids: np.ndarray, lengths: np.ndarray, part: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """With the tags of its part before each text, and <eos> behind it."""
        counts = np.array([len(each.tags) for each in self.parts])[part]
        whole = lengths + counts + 1
        ends = np.cumsum(whole)
        result = np.full(whole.sum(), self.eos, np.int64)
        result[np.arange(len(ids)) + np.repeat(ends - 1 - np.cumsum(lengths), lengths)] = ids
        for place in range(counts.max(initial=0)):
            tag = np.array([each.tags[place] if place < len(each.tags) else 0 for each in self.parts])
            has = counts > place
            result[(ends - whole)[has] + place] = tag[part[has]]
        return result, whole


Span = tuple[np.ndarray, np.ndarray]  # where texts begin, and how long they are


def both_ways(store: Store, tokenizer: Tokenizer, languages: tuple[str, str]) -> Store:
    """As a model reads it that is told by a tag what to translate into: every corpus in the directions it allows."""
    forward, back = ((tokenizer.tag(language),) for language in (languages[1], languages[0]))
    parts = []
    for ways, before, is_back in ((("both", "forward"), forward, False), (("both", "back"), back, True)):
        for number, corpus in enumerate(store.corpora):
            if corpus.way in ways:
                parts.append(Part(number, is_back, before + origin(tokenizer, corpus)))
    if len({part.back for part in parts}) < 2:
        raise ConfigError("corpus.way: expected corpora for both directions, as data.both_ways asks; got one's alone")
    return replace(store, readings=tuple(parts))


def one_way(store: Store, tokenizer: Tokenizer, languages: tuple[str, str]) -> Store:
    """From source to target, without corpora for the way back; with tags where the tokeniser knows them."""
    before = tokenizer.known_tags(languages[1])
    parts = tuple(
        Part(number, tags=before + origin(tokenizer, corpus))
        for number, corpus in enumerate(store.corpora)
        if corpus.way != "back"
    )
    if not parts:
        raise ConfigError("corpus.way: expected a corpus for the way from source to target; all are for the way back")
    if parts == tuple(map(Part, range(len(store.corpora)))):
        return store
    return replace(store, readings=parts)


def origin(tokenizer: Tokenizer, corpus: Corpus) -> tuple[int, ...]:
    return (tokenizer.tag(corpus.tag),) if corpus.tag else ()


def _lengths(ends: np.ndarray) -> np.ndarray:
    """From where each ends; without copies, which count when there are hundreds of millions."""
    lengths = np.empty(len(ends), np.int32)
    lengths[:1] = ends[:1]
    np.subtract(ends[1:], ends[:-1], out=lengths[1:], casting="unsafe")
    return lengths


def _span(ends: np.ndarray, rows: np.ndarray) -> Span:
    begins = np.where(rows > 0, ends[rows - 1], 0)
    return begins, ends[rows] - begins


def _gather(ids: np.ndarray, begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    places = np.arange(lengths.sum()) + np.repeat(begins - np.cumsum(lengths) + lengths, lengths)
    return ids[places].astype(np.int64)
