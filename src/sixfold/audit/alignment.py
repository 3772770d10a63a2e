"""Which pairs are translations: IBM model 1, learned from the corpus itself, scores how well their words fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sixfold.audit.text_arrays import TextArrays, mix

HASHED_WORDS = 2**20  # distinct hashes of words on each side
HASHED_LINKS = 2**24  # distinct hashes of links between a source word and a target word
MAX_WORDS = 20  # of a side that are used
PAIRS_PER_CHUNK = 4096  # some two million links
ROUNDS = 5  # of expectation and maximisation
MIN_OCCURRENCES = 3  # a rarer word is ignored
HALF_WEIGHT_OCCURRENCES = 30  # a word with this many has half the weight of a very frequent one
MIN_EVIDENCE = 3.0  # sum of the weights of the words of a pair; a pair with less has no score
NULL_PROBABILITY = 0.2  # of a word without a counterpart; such a word lowers the score by its log
LINK_DISCOUNT = 0.1  # subtracted from the count of a link, because a single occurrence may be chance
IDENTITY_PROBABILITY = 0.5  # that a word is translated by itself: a name, a number, a piece of code
MIN_SCORED_PAIRS = 500  # that a threshold can be estimated from
THRESHOLD_STEP = 0.2  # between two thresholds that are tried
MIN_UNRELATED_PROBABILITY = 0.6  # of a pair that is flagged
MAX_LOST_TRANSLATIONS = 0.03  # estimated share of the translations that may be flagged
MIN_GOOD_AREA = 0.95  # under the curve, of translations against unrelated pairs; below it no pair is flagged


@dataclass(frozen=True)
class Side:
    """The distinct words of each text on one side of the pairs, one text after another."""

    words: np.ndarray  # hashes below HASHED_WORDS
    begins: np.ndarray  # where the words of each text begin, and where the last text ends

    @classmethod
    def of(cls, texts: TextArrays) -> Side:
        """Return the words of texts; in scripts without spaces, characters and pairs of characters."""
        hashes, rows = (np.concatenate(arrays) for arrays in zip(texts.words(), texts.character_pairs(), strict=True))
        keys = np.sort(rows.astype(np.uint64) * np.uint64(HASHED_WORDS) + (hashes >> np.uint64(44)))
        keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
        begins = np.searchsorted(keys, np.arange(texts.count + 1, dtype=np.uint64) * np.uint64(HASHED_WORDS))
        return cls((keys % np.uint64(HASHED_WORDS)).astype(np.int32), begins)

    def __len__(self) -> int:
        return len(self.begins) - 1

    @property
    def sizes(self) -> np.ndarray:
        """Return the number of words of each text."""
        return np.diff(self.begins)

    def rows(self) -> np.ndarray:
        """Return the text that each word belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def rarest(self, occurrences: np.ndarray) -> Side:
        """Return the MAX_WORDS rarest words of each text; words below MIN_OCCURRENCES come last."""
        rows = self.rows()
        counts = occurrences[self.words]
        last = 2**31  # above every count
        order = np.argsort((rows << 32) + np.where(counts < MIN_OCCURRENCES, last, counts), kind="stable")
        chosen = np.sort(order[np.arange(len(rows)) - self.begins[rows] < MAX_WORDS])
        return Side(self.words[chosen], np.searchsorted(rows[chosen], np.arange(len(self) + 1)))

    def take(self, texts: np.ndarray) -> Side:
        """Return some of the texts, in the given order."""
        sizes = self.sizes[texts]
        begins = np.concatenate([[0], np.cumsum(sizes)])
        indices = np.arange(begins[-1]) + np.repeat(self.begins[texts] - begins[:-1], sizes)
        return Side(self.words[indices], begins)


@dataclass(frozen=True)
class Links:
    """All links of the pairs: every word of a target with every word of its source."""

    ends: tuple[np.ndarray, np.ndarray]  # indices of the two words, in the words of the sources and of the targets
    keys: np.ndarray  # of the links, below HASHED_LINKS
    is_identity: np.ndarray  # whether the two words are the same

    @classmethod
    def of(cls, source: Side, target: Side) -> Links:
        """Return the links of pairs."""
        partners = source.sizes[target.rows()]
        targets = np.repeat(np.arange(len(target.words)), partners)
        firsts = source.begins[target.rows()] - np.cumsum(partners) + partners
        sources = np.arange(len(targets)) + np.repeat(firsts, partners)
        left, right = source.words[sources], target.words[targets]
        keys = mix(left.astype(np.uint64) * np.uint64(HASHED_WORDS) + right.astype(np.uint64)) >> np.uint64(40)
        return cls((sources, targets), keys.astype(np.int32), left == right)


@dataclass(frozen=True)
class Lexicon:
    """How often words of the two sides are linked, and in how many texts each word occurs."""

    links: np.ndarray  # expected count of each link
    word_links: tuple[np.ndarray, np.ndarray]  # expected count of all links of each word, for either side
    occurrences: tuple[np.ndarray, np.ndarray]  # texts with each word, for either side

    @classmethod
    def learn(cls, source: Side, target: Side) -> Lexicon:
        """Learn from pairs that mostly are translations, by expectation and maximisation in both directions."""
        occurrences = (
            np.bincount(source.words, minlength=HASHED_WORDS),
            np.bincount(target.words, minlength=HASHED_WORDS),
        )
        # Start with equal counts, so that the share of a link follows from the number of words alone.
        ones = np.broadcast_to(np.float32(1), HASHED_LINKS)
        model = cls(ones, (ones[:HASHED_WORDS], ones[:HASHED_WORDS]), occurrences)
        source, target = source.rarest(occurrences[0]), target.rarest(occurrences[1])
        for _ in range(ROUNDS):
            links, left, right = (np.zeros(size, np.float32) for size in (HASHED_LINKS, HASHED_WORDS, HASHED_WORDS))
            for sides in _chunks(source, target):
                chunk = Links.of(*sides)
                shares = model._shares(sides, chunk)
                np.add.at(links, chunk.keys, shares)
                np.add.at(left, sides[0].words[chunk.ends[0]], shares)
                np.add.at(right, sides[1].words[chunk.ends[1]], shares)
            model = cls(links, (left, right), occurrences)
        return model

    def _shares(self, sides: tuple[Side, Side], links: Links) -> np.ndarray:
        """Return the posterior probability of each link, as the mean of both directions."""
        total = np.zeros(len(links.keys))
        for given, predicted in ((0, 1), (1, 0)):
            words = sides[given].words[links.ends[given]]
            probabilities = self.links[links.keys] / np.maximum(self.word_links[given][words], 1e-9)
            targets = sides[predicted].words
            sums = np.bincount(links.ends[predicted], probabilities, len(targets)) + self._frequency(predicted, targets)
            total += probabilities / sums[links.ends[predicted]]
        return (total / 2).astype(np.float32)

    def _frequency(self, side: int, words: np.ndarray) -> np.ndarray:
        """Return the probability of words without regard to the other side."""
        return np.maximum(self.occurrences[side][words], 1) / max(1, self.occurrences[side].sum())

    def score(self, source: Side, target: Side) -> np.ndarray:
        """Return for each pair the mean log of how much likelier its words are together than by chance.

        NaN means that there is too little evidence. Only pairs that the lexicon was not learned from may be scored.
        """
        source, target = source.rarest(self.occurrences[0]), target.rarest(self.occurrences[1])
        scores = [self._score(sides) for sides in _chunks(source, target)]
        return np.concatenate([*scores, np.empty(0)])

    def _score(self, sides: tuple[Side, Side]) -> np.ndarray:
        links = Links.of(*sides)
        counts = np.maximum(self.links[links.keys] - LINK_DISCOUNT, 0)
        gains, weights = np.zeros(len(sides[0])), np.zeros(len(sides[0]))
        for given, predicted in ((0, 1), (1, 0)):
            side, ends = sides[predicted], links.ends[predicted]
            words = sides[given].words[links.ends[given]]
            probabilities = counts / np.maximum(self.word_links[given][words], 1)
            identities = np.maximum(probabilities[links.is_identity], IDENTITY_PROBABILITY)
            probabilities[links.is_identity] = identities
            sums = np.bincount(ends, probabilities, len(side.words))
            explained = sums / np.maximum(sides[given].sizes[side.rows()], 1)
            frequency = self._frequency(predicted, side.words)
            gain = np.log(NULL_PROBABILITY + (1 - NULL_PROBABILITY) * explained / frequency)
            seen = self.occurrences[predicted][side.words]
            weight = np.where(seen < MIN_OCCURRENCES, 0, seen / (seen + HALF_WEIGHT_OCCURRENCES))
            weight[ends[links.is_identity]] = 1
            gains += np.bincount(side.rows(), gain * weight, len(side))
            weights += np.bincount(side.rows(), weight, len(side))
        return np.divide(gains, weights, out=np.full(len(gains), np.nan), where=weights >= MIN_EVIDENCE)

    def side_log_odds(self, side: int, texts: Side) -> np.ndarray:
        """Return the mean log odds that a text belongs to its own side (0 source, 1 target); 0 is undecided."""
        odds = self._odds[texts.words] if side == 0 else -self._odds[texts.words]
        return np.bincount(texts.rows(), odds, len(texts)) / np.maximum(texts.sizes, 1)

    @cached_property
    def _odds(self) -> np.ndarray:
        """Return for every word the log odds that it belongs to the source; 0 if it is too rare."""
        source, target = (np.log((counts + 0.5) / (counts.sum() + 1)) for counts in self.occurrences)
        return np.where(self.occurrences[0] + self.occurrences[1] < MIN_OCCURRENCES, 0, source - target)


def _chunks(source: Side, target: Side) -> Iterator[tuple[Side, Side]]:
    for first in range(0, len(source), PAIRS_PER_CHUNK):
        texts = np.arange(first, min(first + PAIRS_PER_CHUNK, len(source)))
        yield source.take(texts), target.take(texts)


def unrelated_pairs(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return for every pair another one of similar length, from the lengths of both sides of all pairs."""
    order = np.lexsort((target, source))
    others = np.empty_like(order)
    # Not the next one in the order, which may be the same sentence again.
    others[order] = np.roll(order, min(7, len(order) // 2))
    return others


@dataclass(frozen=True)
class Separation:
    """The threshold between translations and unrelated pairs.

    The corpus is modelled as a mixture: a share of its pairs is unrelated, and their scores are distributed as those of
    random pairs; the others are translations. The distribution of the translations follows from this.
    """

    threshold: float  # pairs with a lower score are flagged; minus infinity: none, because the two overlap too much
    area: float  # under the curve: how often a pair of the corpus scores higher than an unrelated one
    share: float  # upper estimate of the unrelated pairs in the corpus
    good_area: float = 0.5  # how often a translation scores higher than an unrelated pair

    @classmethod
    def between(cls, corpus: np.ndarray, unrelated: np.ndarray) -> Separation:
        """Find the highest threshold below which pairs are probably unrelated and few translations are lost.

        `corpus` are the scores of the pairs of the corpus, and `unrelated` those of random pairs.
        """
        corpus, unrelated = corpus[~np.isnan(corpus)], unrelated[~np.isnan(unrelated)]
        if min(len(corpus), len(unrelated)) < MIN_SCORED_PAIRS:
            return cls(-np.inf, 0.5, 0.0)
        low, high = np.percentile(unrelated, [0.5, 99.5])
        edges = np.arange(low, high + THRESHOLD_STEP, THRESHOLD_STEP)
        below = [np.searchsorted(np.sort(scores), edges) / len(scores) for scores in (corpus, unrelated)]
        # The share of unrelated pairs if all pairs with such low scores were unrelated.
        share = float((below[0][below[1] > 0.3] / below[1][below[1] > 0.3]).min(initial=1))
        lost = (below[0] - share * below[1]) / max(1 - share, 1e-9)  # the share of the translations below each edge
        doubtful = (share * np.diff(below[1]) < MIN_UNRELATED_PROBABILITY * np.diff(below[0])) | (
            lost[1:] > MAX_LOST_TRANSLATIONS
        )
        doubtful[: np.searchsorted(below[1], 0.3)] = False  # too few to compare
        index = int(np.argmax(doubtful)) if doubtful.any() else len(edges) - 1
        area = area_under_curve(corpus, unrelated)
        # Unrelated pairs of the corpus score higher than random pairs half of the time.
        good_area = (area - share / 2) / max(1 - share, 1e-9)
        return cls(float(edges[index]) if good_area >= MIN_GOOD_AREA else -np.inf, area, share, good_area)


def area_under_curve(better: np.ndarray, worse: np.ndarray) -> float:
    """Return how often a number of the first array is above one of the second; equal ones count half."""
    ordered = np.sort(worse)
    below = np.searchsorted(ordered, better) + np.searchsorted(ordered, better, side="right")
    return float(below.mean() / 2 / len(worse))
