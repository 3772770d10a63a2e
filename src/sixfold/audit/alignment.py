"""Which pairs are translations, told by words that often meet: IBM model 1, learnt from the corpus itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sixfold.audit.text_arrays import Lines, mix

WORDS = 2**20  # hashed words of each side
LINKS = 2**24  # hashed links from a word to a word
MOST = 20  # words of a side that are looked at
CHUNK = 4096  # pairs at a time: some two million links
ROUNDS = 5
FEWEST = 3  # times that a word must be seen before it can speak
WELL_KNOWN = 30  # times seen that make a word count half as much as one that is seen always
EVIDENCE = 3.0  # what the words of a pair must count together, or there is no telling
# The share of words that come from nowhere: a word that nothing on the other side explains costs the log of it.
NOWHERE = 0.2
ONCE = 0.1  # taken off the count of a link: to meet once may be chance
SAME = 0.5  # how surely a word stands for itself: a name, a number, a piece of code
FEWEST_PAIRS = 500  # scores that a threshold can be drawn from
STEP = 0.2  # between two thresholds that are tried
SURE = 0.6  # how likely a pair must be unrelated before it is condemned
MOST_LOST = 0.03  # of the translations that may be condemned with the unrelated pairs, as far as can be estimated
ENOUGH = 0.95  # the area under the curve, of good pairs, below which nothing is condemned


@dataclass(frozen=True)
class Side:
    """The words of many texts, those of one text together; a word counts once in a text."""

    words: np.ndarray
    begins: np.ndarray  # where the words of each text begin, and where the last end

    @classmethod
    def of(cls, lines: Lines) -> Side:
        hashes, rows = (np.concatenate(both) for both in zip(lines.words(), lines.couples(), strict=True))
        keys = np.sort(rows.astype(np.uint64) * np.uint64(WORDS) + (hashes >> np.uint64(44)))
        keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
        begins = np.searchsorted(keys, np.arange(lines.count + 1, dtype=np.uint64) * np.uint64(WORDS))
        return cls((keys % np.uint64(WORDS)).astype(np.int32), begins)

    def __len__(self) -> int:
        return len(self.begins) - 1

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.begins)

    def rows(self) -> np.ndarray:
        """Which text each word belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def rarest(self, seen: np.ndarray) -> Side:
        """The MOST words of each text that say most: the rarest, but for those too rare to have been learnt."""
        rows = self.rows()
        counts = seen[self.words]
        last = 2**31  # more than there are pairs: behind all that were learnt
        order = np.argsort((rows << 32) + np.where(counts < FEWEST, last, counts), kind="stable")
        kept = np.sort(order[np.arange(len(rows)) - self.begins[rows] < MOST])
        return Side(self.words[kept], np.searchsorted(rows[kept], np.arange(len(self) + 1)))

    def take(self, texts: np.ndarray) -> Side:
        """These texts, in this order."""
        sizes = self.sizes[texts]
        begins = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(begins[-1]) + np.repeat(self.begins[texts] - begins[:-1], sizes)
        return Side(self.words[places], begins)


@dataclass(frozen=True)
class Links:
    """Every word of each target with every word of its source."""

    ends: tuple[np.ndarray, np.ndarray]  # places among the words of the sources, and of the targets
    keys: np.ndarray  # of the two words, in the table of links
    same: np.ndarray  # the two are one word

    @classmethod
    def of(cls, source: Side, target: Side) -> Links:
        partners = source.sizes[target.rows()]
        targets = np.repeat(np.arange(len(target.words)), partners)
        firsts = source.begins[target.rows()] - np.cumsum(partners) + partners
        sources = np.arange(len(targets)) + np.repeat(firsts, partners)
        left, right = source.words[sources], target.words[targets]
        keys = mix(left.astype(np.uint64) * np.uint64(WORDS) + right.astype(np.uint64)) >> np.uint64(40)
        return cls((sources, targets), keys.astype(np.int32), left == right)


@dataclass(frozen=True)
class Lexicon:
    """How often words of the two sides were linked, and in how many texts each was seen."""

    links: np.ndarray
    linked: tuple[np.ndarray, np.ndarray]  # all links of a word, of either side
    seen: tuple[np.ndarray, np.ndarray]

    @classmethod
    def learn(cls, source: Side, target: Side) -> Lexicon:
        """From pairs that mostly are translations, by expectation and maximisation, in both directions at once."""
        seen = (np.bincount(source.words, minlength=WORDS), np.bincount(target.words, minlength=WORDS))
        # Where every link counts the same, its share of a pair follows from the number of words alone.
        alike = np.broadcast_to(np.float32(1), LINKS)
        model = cls(alike, (alike[:WORDS], alike[:WORDS]), seen)
        source, target = source.rarest(seen[0]), target.rarest(seen[1])
        for _ in range(ROUNDS):
            links, left, right = (np.zeros(size, np.float32) for size in (LINKS, WORDS, WORDS))
            for some in _chunks(source, target):
                found = Links.of(*some)
                shares = model._shares(some, found)
                np.add.at(links, found.keys, shares)
                np.add.at(left, some[0].words[found.ends[0]], shares)
                np.add.at(right, some[1].words[found.ends[1]], shares)
            model = cls(links, (left, right), seen)
        return model

    def _shares(self, sides: tuple[Side, Side], found: Links) -> np.ndarray:
        """How much of each word every word of the other side explains: the mean of both directions."""
        both = np.zeros(len(found.keys))
        for here, there in ((0, 1), (1, 0)):
            words = sides[here].words[found.ends[here]]
            chances = self.links[found.keys] / np.maximum(self.linked[here][words], 1e-9)
            explained = sides[there].words
            sums = np.bincount(found.ends[there], chances, len(explained)) + self._nowhere(there, explained)
            both += chances / sums[found.ends[there]]
        return (both / 2).astype(np.float32)

    def _nowhere(self, side: int, words: np.ndarray) -> np.ndarray:
        """How likely a word is anyway, whatever the other side says."""
        return np.maximum(self.seen[side][words], 1) / max(1, self.seen[side].sum())

    def score(self, source: Side, target: Side) -> np.ndarray:
        """Of each pair, how much likelier its words are beside each other than by chance: the mean log; NaN: unknown.

        It means something for other pairs than it was learnt from: those vouch for themselves.
        """
        source, target = source.rarest(self.seen[0]), target.rarest(self.seen[1])
        scores = [self._score(some) for some in _chunks(source, target)]
        return np.concatenate([*scores, np.empty(0)])

    def _score(self, sides: tuple[Side, Side]) -> np.ndarray:
        found = Links.of(*sides)
        counts = np.maximum(self.links[found.keys] - ONCE, 0)
        gains, weights = np.zeros(len(sides[0])), np.zeros(len(sides[0]))
        for here, there in ((0, 1), (1, 0)):
            side, ends = sides[there], found.ends[there]
            words = sides[here].words[found.ends[here]]
            chances = counts / np.maximum(self.linked[here][words], 1)
            chances[found.same] = np.maximum(chances[found.same], SAME)
            explained = np.bincount(ends, chances, len(side.words)) / np.maximum(sides[here].sizes[side.rows()], 1)
            gain = np.log(NOWHERE + (1 - NOWHERE) * explained / self._nowhere(there, side.words))
            seen = self.seen[there][side.words]
            weight = np.where(seen < FEWEST, 0, seen / (seen + WELL_KNOWN))
            weight[ends[found.same]] = 1
            gains += np.bincount(side.rows(), gain * weight, len(side))
            weights += np.bincount(side.rows(), weight, len(side))
        return np.divide(gains, weights, out=np.full(len(gains), np.nan), where=weights >= EVIDENCE)

    def leaning(self, side: int, texts: Side) -> np.ndarray:
        """How much more each text sounds like its own side (0 source, 1 target) than like the other; 0: no telling."""
        odds = self._odds[texts.words] if side == 0 else -self._odds[texts.words]
        return np.bincount(texts.rows(), odds, len(texts)) / np.maximum(texts.sizes, 1)

    @cached_property
    def _odds(self) -> np.ndarray:
        """Of every word, the log odds that it is of the source; 0 where it is too rare to tell."""
        source, target = (np.log((seen + 0.5) / (seen.sum() + 1)) for seen in self.seen)
        return np.where(self.seen[0] + self.seen[1] < FEWEST, 0, source - target)


def _chunks(source: Side, target: Side) -> Iterator[tuple[Side, Side]]:
    for first in range(0, len(source), CHUNK):
        texts = np.arange(first, min(first + CHUNK, len(source)))
        yield source.take(texts), target.take(texts)


def strangers(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """For every pair another one whose sides are about as long, told by the lengths of both sides."""
    order = np.lexsort((target, source))
    others = np.empty_like(order)
    # Not the very next: it may be the same sentence again.
    others[order] = np.roll(order, min(7, len(order) // 2))
    return others


@dataclass(frozen=True)
class Verdict:
    """Where to draw the line between pairs and unrelated texts.

    The corpus is taken as a mixture: a share of its pairs is unrelated, and their scores are distributed as those of
    pairs that were put together at random; the rest are translations. What holds of the translations alone follows.
    """

    threshold: float  # pairs that score less are condemned; minus infinity: none, as there is no telling
    area: float  # under the curve: how often a pair as it stands scores better than an unrelated one
    share: float  # of the pairs as they stand that are unrelated, at most
    good_area: float = 0.5  # how often a translation scores better than an unrelated pair, the share taken out

    @classmethod
    def between(cls, given: np.ndarray, unrelated: np.ndarray) -> Verdict:
        """The highest threshold at which a pair is unrelated for SURE, and few translations are below it."""
        given, unrelated = given[~np.isnan(given)], unrelated[~np.isnan(unrelated)]
        if min(len(given), len(unrelated)) < FEWEST_PAIRS:
            return cls(-np.inf, 0.5, 0.0)
        low, high = np.percentile(unrelated, [0.5, 99.5])
        edges = np.arange(low, high + STEP, STEP)
        below = [np.searchsorted(np.sort(scores), edges) / len(scores) for scores in (given, unrelated)]
        # Were all of the corpus that scores so low unrelated, there would be this much of it.
        share = float((below[0][below[1] > 0.3] / below[1][below[1] > 0.3]).min(initial=1))
        lost = (below[0] - share * below[1]) / max(1 - share, 1e-9)  # of the translations, below each edge
        doubtful = (share * np.diff(below[1]) < SURE * np.diff(below[0])) | (lost[1:] > MOST_LOST)
        doubtful[: np.searchsorted(below[1], 0.3)] = False  # too few there to compare
        place = int(np.argmax(doubtful)) if doubtful.any() else len(edges) - 1
        area = area_under_curve(given, unrelated)
        # The unrelated among the given win half of the time against their like; the others are what counts here.
        good_area = (area - share / 2) / max(1 - share, 1e-9)
        return cls(float(edges[place]) if good_area >= ENOUGH else -np.inf, area, share, good_area)


def area_under_curve(better: np.ndarray, worse: np.ndarray) -> float:
    """How often a number of the first kind is above one of the second; equal ones count half."""
    ordered = np.sort(worse)
    below = np.searchsorted(ordered, better) + np.searchsorted(ordered, better, side="right")
    return float(below.mean() / 2 / len(worse))
