"""Finds the faults of a corpus, line by line, before a model is trained on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from sixfold.audit import near_duplicates
from sixfold.audit.alignment import HASHED_WORDS, MIN_SCORED_PAIRS, Lexicon, Separation, Side, unrelated_pairs
from sixfold.audit.findings import Audit
from sixfold.audit.leaks import HeldOut
from sixfold.audit.text_arrays import TextArrays
from sixfold.config import DataConfig
from sixfold.data.cleaning import (
    FILTERS,
    SMOOTHING,
    FilterContext,
    HashSet,
    WritingSystem,
    has_wrong_script,
    hash_record,
)
from sixfold.data.corpus import Corpus, Pair
from sixfold.errors import DataError
from sixfold.text.chinese import chinese_variant
from sixfold.text.encodings import is_mojibake
from sixfold.text.numbers import numbers_differ

PAIRS_PER_CHUNK = 10_000
MAX_CHARACTERS = 2000  # of a text that are examined: a book on one line must not fill the memory
SAMPLE_PAIRS = 80_000  # at most that words are learned from; at least half as many if there are more
STRATA = (6, 12, 24, 48)  # words of a pair; pairs of similar length share a threshold, because short ones vary more
# The area under the curve, of translations against unrelated pairs, below which no pair of a corpus is flagged, as in a
# dictionary of rare words.
MIN_CORPUS_AREA = 0.9
MAX_FOREIGN_LOG_ODDS = -2.0  # mean; below it a text is in the language of the other side
MIN_WORDS = 3  # of a text whose language is examined
MAX_LENGTH_DEVIATION = 4.5  # of the log ratio of lengths, in robust standard deviations
MIN_LENGTH_SPREAD = 0.1  # lower bound of such a deviation: generated text may have none
# Edges of histogram bars.
LENGTH_EDGES = np.arange(0, 401, 10)
RATIO_EDGES = np.linspace(-2, 2, 33)  # of the log (base 2) of target by source
SCORE_EDGES = np.arange(-2.5, 5.01, 0.25)

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Sample:
    """Pairs from the whole corpus: every `stride`-th pair, at most SAMPLE_PAIRS."""

    pairs: list[Pair]
    stride: int

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> Sample:
        """Draw a sample; the stride doubles whenever there are too many pairs."""
        kept: list[Pair] = []
        stride = 1
        for pair in pairs:
            if (pair.line - 1) % stride == 0:
                if len(pair.source) <= MAX_CHARACTERS and len(pair.target) <= MAX_CHARACTERS:
                    kept.append(pair)
                if len(kept) > SAMPLE_PAIRS:
                    stride *= 2
                    kept = [pair for pair in kept if (pair.line - 1) % stride == 0]
        return cls(kept, stride)


@dataclass(frozen=True)
class CorpusStatistics:
    """What is usual in a corpus, learned from a sample."""

    lexicons: tuple[Lexicon, Lexicon]  # of the even and of the odd pairs of the sample
    stride: int
    separation: Separation  # of all pairs of the sample
    thresholds: np.ndarray  # scores below which a pair is flagged, for each number of words as in STRATA
    ratio: float  # the median log of target by source length
    spread: float  # robust standard deviation of that log
    corpus_scores: np.ndarray  # of the pairs of the sample
    unrelated_scores: np.ndarray  # of the sources of the sample with targets of other pairs

    @classmethod
    def learn(cls, sample: Sample, context: FilterContext) -> CorpusStatistics:
        """Learn from the distinct pairs of a sample that no filter drops."""
        good = [pair for pair in sample.pairs if failed_filter(pair, context) is None]
        hashes = b"".join(hash_record(pair.source, pair.target) for pair in good)
        good = [good[row] for row in np.flatnonzero(HashSet().add(np.frombuffer(hashes, np.uint64)))]
        texts = TextArrays.of([pair.source for pair in good]), TextArrays.of([pair.target for pair in good])
        lengths = texts[0].lengths(), texts[1].lengths()
        ratios = np.log((lengths[1] + SMOOTHING) / (lengths[0] + SMOOTHING))
        median = float(np.median(ratios)) if good else 0.0
        spread = 1.4826 * float(np.median(np.abs(ratios - median))) if good else 0.0
        sides = Side.of(texts[0]), Side.of(texts[1])
        folds = [np.flatnonzero(fold) for fold in _folds(np.array([pair.line for pair in good], int), sample.stride)]
        lexicons = [Lexicon.learn(sides[0].take(fold), sides[1].take(fold)) for fold in folds]
        corpus, unrelated = [], []
        # Each half is scored by the lexicon of the other half.
        for fold, lexicon in zip(folds, reversed(lexicons), strict=True):
            others = fold[unrelated_pairs(lengths[0][fold], lengths[1][fold])]
            corpus.append(lexicon.score(sides[0].take(fold), sides[1].take(fold)))
            unrelated.append(lexicon.score(sides[0].take(fold), sides[1].take(others)))
        scores = np.concatenate(corpus), np.concatenate(unrelated)
        strata = _strata(*sides)[np.concatenate(folds)]
        separation = Separation.between(*scores)
        thresholds = np.full(len(STRATA) + 1, -np.inf)
        if separation.good_area >= MIN_CORPUS_AREA:
            for stratum in range(len(thresholds)):
                chosen = _with_shorter(strata, stratum)
                thresholds[stratum] = Separation.between(scores[0][chosen], scores[1][chosen]).threshold
        return cls(
            (lexicons[0], lexicons[1]),
            sample.stride,
            separation,
            thresholds,
            median,
            max(spread, MIN_LENGTH_SPREAD),
            *scores,
        )

    def below(self, scores: np.ndarray, source: Side, target: Side) -> np.ndarray:
        """Return how far each score is below the threshold for the number of words of its pair."""
        return self.thresholds[_strata(source, target)] - scores

    def scores(self, lines: np.ndarray, source: Side, target: Side) -> np.ndarray:
        """Score every pair with the lexicon that was not learned from it."""
        scores = np.empty(len(lines))
        for fold, lexicon in zip(_folds(lines, self.stride), reversed(self.lexicons), strict=True):
            rows = np.flatnonzero(fold)
            scores[rows] = lexicon.score(source.take(rows), target.take(rows))
        return scores

    def foreign(self, side: int, texts: Side) -> np.ndarray:
        """Return which texts are in the language of the other side, by their words."""
        first, second = self.lexicons
        log_odds = (first.side_log_odds(side, texts) + second.side_log_odds(side, texts)) / 2
        return (log_odds < MAX_FOREIGN_LOG_ODDS) & (texts.sizes >= MIN_WORDS)


def _folds(lines: np.ndarray, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which lines are in the even and which in the odd half of a sample."""
    odd = (lines - 1) // stride % 2 == 1
    return ~odd, odd


def _strata(source: Side, target: Side) -> np.ndarray:
    return np.searchsorted(STRATA, source.sizes + target.sizes)


def _with_shorter(strata: np.ndarray, stratum: int) -> np.ndarray:
    """Return the pairs of a stratum; if they are few, also shorter ones, whose threshold is more cautious."""
    chosen = strata == stratum
    while stratum and chosen.sum() < MIN_SCORED_PAIRS:
        stratum -= 1
        chosen |= strata == stratum
    return chosen


def failed_filter(pair: Pair, context: FilterContext) -> str | None:
    """Return the name of the first filter of `sixfold clean` that drops a pair, or None; duplicates are not checked."""
    return next((name for name, test in FILTERS.items() if test and test(pair.source, pair.target, context)), None)


@dataclass
class Auditor:
    """Reads a corpus in chunks and records its faults in `audit`."""

    statistics: CorpusStatistics
    context: FilterContext
    held_out: HeldOut | None
    audit: Audit
    _seen: HashSet = field(default_factory=HashSet)
    _signatures: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    _good: list[np.ndarray] = field(default_factory=list)  # pairs without a fault so far, for each chunk
    _words: np.ndarray = field(default_factory=lambda: np.zeros(HASHED_WORDS, bool))

    def read(self, pairs: Iterator[Pair]) -> None:
        """Examine all pairs of the corpus."""
        while chunk := list(islice(pairs, PAIRS_PER_CHUNK)):
            self._examine(chunk)
        self._find_near_duplicates()
        # Linear counting: the number of distinct words follows from the share of hashes without a word.
        self.audit.words = round(-HASHED_WORDS * np.log(max(1, (~self._words).sum()) / HASHED_WORDS))

    def _examine(self, chunk: list[Pair]) -> None:
        lines = np.array([pair.line for pair in chunk])
        texts = (
            TextArrays.of([pair.source[:MAX_CHARACTERS] for pair in chunk]),
            TextArrays.of([pair.target[:MAX_CHARACTERS] for pair in chunk]),
        )
        sides = Side.of(texts[0]), Side.of(texts[1])
        for text in texts:
            self._words[text.words()[0] >> np.uint64(44)] = True
        bad = self._find_filtered(chunk)
        bad |= self._find_wrong_languages(chunk, sides)
        bad |= self._find_mojibake(chunk)
        lengths = texts[0].lengths(), texts[1].lengths()
        self._count(chunk, lengths)
        scores = self.statistics.scores(lines, *sides)
        self.audit.count("alignment of the pairs", SCORE_EDGES, scores[~np.isnan(scores)])
        below = self.statistics.below(scores, *sides)
        bad |= self._record("misaligned", lines, ~bad & (below > 0), below)
        ratios = np.log((lengths[1] + SMOOTHING) / (lengths[0] + SMOOTHING))
        deviations = np.abs(ratios - self.statistics.ratio) / self.statistics.spread
        bad |= self._record("lopsided", lines, ~bad & (deviations > MAX_LENGTH_DEVIATION), deviations)
        bad |= self._find_numbers(chunk, ~bad)
        signatures = near_duplicates.signatures(texts[0]), near_duplicates.signatures(texts[1])
        for row, similarity, location in self.held_out.find_in(signatures) if self.held_out else ():
            self.audit.findings["leaked"].add(int(lines[row]), similarity, location)
            bad[row] = True
        self._signatures.append(signatures)
        self._good.append(~bad)

    def _record(self, kind: str, lines: np.ndarray, is_faulty: np.ndarray, scores: np.ndarray) -> np.ndarray:
        for row in np.flatnonzero(is_faulty):
            self.audit.findings[kind].add(int(lines[row]), float(scores[row]))
        return is_faulty

    def _find_filtered(self, chunk: list[Pair]) -> np.ndarray:
        """Record the pairs that `sixfold clean` would drop, and return which they are."""
        names = [failed_filter(pair, self.context) for pair in chunk]
        hashes = b"".join(hash_record(pair.source, pair.target) for pair in chunk)
        is_new = self._seen.add(np.frombuffer(hashes, np.uint64))
        for pair, name, new in zip(chunk, names, is_new, strict=True):
            if name or not new:
                self.audit.findings[name or "duplicate"].add(pair.line)
        return np.array([name is not None for name in names]) | ~is_new

    def _find_wrong_languages(self, chunk: list[Pair], sides: tuple[Side, Side]) -> np.ndarray:
        """Record pairs whose sides are swapped, by script or by words, and pairs with an untranslated side."""
        foreign = self.statistics.foreign(0, sides[0]), self.statistics.foreign(1, sides[1])
        bad = foreign[0] | foreign[1]
        for row, pair in enumerate(chunk):
            source, target = pair.source, pair.target
            crossed = has_wrong_script(source, target, self.context) and not has_wrong_script(
                target, source, self.context
            )
            if (foreign[0][row] and foreign[1][row]) or (crossed and source and target and not bad[row]):
                self.audit.findings["swapped"].add(pair.line)
            elif bad[row]:
                self.audit.findings["untranslated"].add(pair.line)
        return bad

    def _find_mojibake(self, chunk: list[Pair]) -> np.ndarray:
        """Record pairs with a side that was decoded with the wrong encoding."""
        bad = np.array([is_mojibake(pair.source) or is_mojibake(pair.target) for pair in chunk], bool)
        return self._record("mojibake", np.array([pair.line for pair in chunk]), bad, np.ones(len(chunk)))

    def _find_numbers(self, chunk: list[Pair], rows: np.ndarray) -> np.ndarray:
        """Record those of the chosen rows whose sides have different numbers."""
        bad = np.zeros(len(chunk), bool)
        for row in np.flatnonzero(rows):
            difference = numbers_differ(chunk[row].source, chunk[row].target)
            if difference:
                bad[row] = True
                self.audit.findings["numbers"].add(chunk[row].line, 1.0, difference)
        return bad

    def _count(self, chunk: list[Pair], lengths: tuple[np.ndarray, np.ndarray]) -> None:
        self.audit.pairs += len(chunk)
        for side, name in enumerate(("source", "target")):
            self.audit.count(f"letters of the {name}", LENGTH_EDGES, lengths[side])
            self.audit.letters[side] += int(lengths[side].sum())
        ratios = np.log2((lengths[1] + SMOOTHING) / (lengths[0] + SMOOTHING))
        self.audit.count("target by source length, as powers of 2", RATIO_EDGES, ratios)
        if "zh" in self.context.languages:
            for pair in chunk:
                variant = chinese_variant(pair.source if self.context.languages[0] == "zh" else pair.target)
                self.audit.variants[variant] = self.audit.variants.get(variant, 0) + 1

    def _find_near_duplicates(self) -> None:
        """Record near-duplicates among the pairs without another fault, so that the one that is kept is good."""
        good = np.flatnonzero(np.concatenate([*self._good, np.empty(0, bool)]))
        if not len(good):
            return
        source, target = (np.concatenate([chunk[side] for chunk in self._signatures])[good] for side in (0, 1))
        matches = near_duplicates.find_earlier(source, target)
        rows = np.flatnonzero(matches >= 0)
        first = matches[rows]
        scores = (
            near_duplicates.similarity(source[rows], source[first])
            + near_duplicates.similarity(target[rows], target[first])
        ) / 2
        for line, score, earlier in zip(good[rows] + 1, scores, good[first] + 1, strict=True):
            self.audit.findings["near-duplicate"].add(int(line), float(score), f"line {earlier}")


def audit_corpus(
    corpus: Corpus, languages: tuple[str, str], config: DataConfig, held_out: HeldOut | None, advance: Advance
) -> Audit:
    """Read a corpus twice: first for its statistics, then for its faults.

    `held_out` are test sets to look for. `advance` is called with the bytes read, in both passes.
    """
    writing_systems = (WritingSystem.of(languages[0]), WritingSystem.of(languages[1]))
    context = FilterContext(config.max_characters, config.max_ratio, languages, writing_systems)
    statistics = CorpusStatistics.learn(Sample.of(corpus.pairs(advance)), context)
    audit = Audit(corpus, languages)
    auditor = Auditor(statistics, context, held_out, audit)
    auditor.read(corpus.pairs(advance))
    if not audit.pairs:
        raise DataError(f"{corpus.files[0]}: expected pairs of text; the file is empty")
    separation = statistics.separation
    trusted = bool(np.isfinite(statistics.thresholds).any())
    judged = 1 - float(np.isnan(statistics.corpus_scores).mean()) if len(statistics.corpus_scores) else 0.0
    audit.alignment = {"area": round(separation.area, 4), "judged": round(judged, 4), "trusted": trusted}
    audit.alignment |= {"good_area": round(separation.good_area, 4), "unrelated": round(separation.share, 4)}
    audit.alignment["learnt_from"] = len(statistics.corpus_scores)
    audit.alignment["thresholds"] = [
        round(value, 3) if np.isfinite(value) else None for value in statistics.thresholds.tolist()
    ]
    audit.alignment["words"] = list(STRATA)
    audit.count(
        "alignment of unrelated texts", SCORE_EDGES, statistics.unrelated_scores[~np.isnan(statistics.unrelated_scores)]
    )
    audit.quote_examples()
    return audit
