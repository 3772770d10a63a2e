"""What is wrong with a corpus, line by line, found before anybody pays for training on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from sixfold.audit import near_duplicates
from sixfold.audit.alignment import FEWEST_PAIRS, WORDS, Lexicon, Side, Verdict, strangers
from sixfold.audit.findings import Audit
from sixfold.audit.leaks import HeldOut
from sixfold.audit.text_arrays import Lines
from sixfold.config import DataConfig
from sixfold.data.cleaning import FILTERS, SMOOTHING, Rules, Seen, Writing, hash_of, script
from sixfold.data.corpus import Corpus, Pair
from sixfold.errors import DataError
from sixfold.text.encodings import is_mojibake
from sixfold.text.languages import chinese_variant
from sixfold.text.numbers import numbers_differ

CHUNK = 10_000
LONGEST = 2000  # letters of a text that are looked at: a book on one line must not fill the memory
SAMPLE = 80_000  # pairs that words are learnt from, at most; half as many at least where there are more
STRATA = (6, 12, 24, 48)  # words of a pair: short ones say little, and are judged among themselves
# The area under the curve, of translations against unrelated pairs, below which no pair of a corpus is judged: a
# dictionary of rare words.
TOLD_APART = 0.9
FOREIGN = -2.0  # the mean log odds below which a text is in the language of the other side
FEWEST_WORDS = 3  # that can tell a language
LOPSIDED = 4.5  # robust standard deviations of the log ratio of lengths
NARROWEST = 0.1  # what one such deviation is at least: made-up text may have none
LENGTHS = np.arange(0, 401, 10)
RATIOS = np.linspace(-2, 2, 33)  # of the log (base 2) of target by source
SCORES = np.arange(-2.5, 5.01, 0.25)

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Sample:
    """Pairs from all over a corpus: every `stride`-th, so many as fit."""

    pairs: list[Pair]
    stride: int

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> Sample:
        kept: list[Pair] = []
        stride = 1
        for pair in pairs:
            if (pair.line - 1) % stride == 0:
                if len(pair.source) <= LONGEST and len(pair.target) <= LONGEST:
                    kept.append(pair)
                if len(kept) > SAMPLE:
                    stride *= 2
                    kept = [each for each in kept if (each.line - 1) % stride == 0]
        return cls(kept, stride)


@dataclass(frozen=True)
class Norm:
    """What is usual in a corpus."""

    lexicons: tuple[Lexicon, Lexicon]  # of the even and of the odd pairs of the sample
    stride: int
    verdict: Verdict  # on the sample as a whole
    thresholds: np.ndarray  # below which a pair is condemned, for each number of words as in STRATA
    ratio: float  # the median log of target by source length
    spread: float
    given: np.ndarray  # scores of the sample as it stands, and with the targets of others
    unrelated: np.ndarray

    @classmethod
    def learn(cls, sample: Sample, rules: Rules) -> Norm:
        """From the pairs of a sample that no filter drops, each once."""
        good = [pair for pair in sample.pairs if failed(pair, rules) is None]
        hashes = b"".join(hash_of(pair.source, pair.target) for pair in good)
        good = [good[row] for row in np.flatnonzero(Seen().add(np.frombuffer(hashes, np.uint64)))]
        lines = Lines.of([pair.source for pair in good]), Lines.of([pair.target for pair in good])
        lengths = lines[0].lengths(), lines[1].lengths()
        ratios = np.log((lengths[1] + SMOOTHING) / (lengths[0] + SMOOTHING))
        middle = float(np.median(ratios)) if good else 0.0
        spread = 1.4826 * float(np.median(np.abs(ratios - middle))) if good else 0.0
        sides = Side.of(lines[0]), Side.of(lines[1])
        folds = [np.flatnonzero(fold) for fold in _folds(np.array([pair.line for pair in good], int), sample.stride)]
        lexicons = [Lexicon.learn(sides[0].take(fold), sides[1].take(fold)) for fold in folds]
        given, unrelated = [], []
        # Each half is judged by what the other taught.
        for fold, lexicon in zip(folds, reversed(lexicons), strict=True):
            others = fold[strangers(lengths[0][fold], lengths[1][fold])]
            given.append(lexicon.score(sides[0].take(fold), sides[1].take(fold)))
            unrelated.append(lexicon.score(sides[0].take(fold), sides[1].take(others)))
        scores = np.concatenate(given), np.concatenate(unrelated)
        strata = _strata(*sides)[np.concatenate(folds)]
        whole = Verdict.between(*scores)
        thresholds = np.full(len(STRATA) + 1, -np.inf)
        if whole.good_area >= TOLD_APART:
            for stratum in range(len(thresholds)):
                among = _pooled(strata, stratum)
                thresholds[stratum] = Verdict.between(scores[0][among], scores[1][among]).threshold
        return cls(
            (lexicons[0], lexicons[1]),
            sample.stride,
            whole,
            thresholds,
            middle,
            max(spread, NARROWEST),
            *scores,
        )

    def below(self, scores: np.ndarray, source: Side, target: Side) -> np.ndarray:
        """How far each score is below what a pair of so many words must have."""
        return self.thresholds[_strata(source, target)] - scores

    def scores(self, lines: np.ndarray, source: Side, target: Side) -> np.ndarray:
        """Of every pair, by the lexicon that did not learn from it."""
        found = np.empty(len(lines))
        for fold, lexicon in zip(_folds(lines, self.stride), reversed(self.lexicons), strict=True):
            rows = np.flatnonzero(fold)
            found[rows] = lexicon.score(source.take(rows), target.take(rows))
        return found

    def foreign(self, side: int, texts: Side) -> np.ndarray:
        """Which texts are in the language of the other side, by their words."""
        leaning = (self.lexicons[0].leaning(side, texts) + self.lexicons[1].leaning(side, texts)) / 2
        return (leaning < FOREIGN) & (texts.sizes >= FEWEST_WORDS)


def _folds(lines: np.ndarray, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Which lines are in the even and which in the odd half."""
    odd = (lines - 1) // stride % 2 == 1
    return ~odd, odd


def _strata(source: Side, target: Side) -> np.ndarray:
    return np.searchsorted(STRATA, source.sizes + target.sizes)


def _pooled(strata: np.ndarray, stratum: int) -> np.ndarray:
    """The pairs of a stratum; where they are few, with shorter ones, whose threshold is the more cautious."""
    among = strata == stratum
    while stratum and among.sum() < FEWEST_PAIRS:
        stratum -= 1
        among |= strata == stratum
    return among


def failed(pair: Pair, rules: Rules) -> str | None:
    """The first filter of `sixfold clean` that drops a pair, duplicates aside."""
    return next((name for name, test in FILTERS.items() if test and test(pair.source, pair.target, rules)), None)


@dataclass
class Auditor:
    """Reads a corpus in chunks and writes down what it finds."""

    norm: Norm
    rules: Rules
    held_out: HeldOut | None
    audit: Audit
    _seen: Seen = field(default_factory=Seen)
    _signatures: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    _good: list[np.ndarray] = field(default_factory=list)  # pairs that nothing was found against so far
    _words: np.ndarray = field(default_factory=lambda: np.zeros(WORDS, bool))

    def read(self, pairs: Iterator[Pair]) -> None:
        while chunk := list(islice(pairs, CHUNK)):
            self._read(chunk)
        self._near_duplicates()
        # Of WORDS drawers so many are empty: so many words were thrown in (linear counting).
        self.audit.words = round(-WORDS * np.log(max(1, (~self._words).sum()) / WORDS))

    def _read(self, chunk: list[Pair]) -> None:
        lines = np.array([pair.line for pair in chunk])
        texts = Lines.of([pair.source[:LONGEST] for pair in chunk]), Lines.of([pair.target[:LONGEST] for pair in chunk])
        sides = Side.of(texts[0]), Side.of(texts[1])
        for text in texts:
            self._words[text.words()[0] >> np.uint64(44)] = True
        bad = self._filter(chunk)
        bad |= self._languages(chunk, sides)
        bad |= self._damage(chunk)
        lengths = texts[0].lengths(), texts[1].lengths()
        self._count(chunk, lengths)
        scores = self.norm.scores(lines, *sides)
        self.audit.count("alignment of the pairs", SCORES, scores[~np.isnan(scores)])
        below = self.norm.below(scores, *sides)
        bad |= self._note("misaligned", lines, ~bad & (below > 0), below)
        ratios = np.log((lengths[1] + SMOOTHING) / (lengths[0] + SMOOTHING))
        deviations = np.abs(ratios - self.norm.ratio) / self.norm.spread
        bad |= self._note("lopsided", lines, ~bad & (deviations > LOPSIDED), deviations)
        bad |= self._numbers(chunk, ~bad)
        signatures = near_duplicates.signatures(texts[0]), near_duplicates.signatures(texts[1])
        for row, likeness, place in self.held_out.among(signatures) if self.held_out else ():
            self.audit.findings["leaked"].add(int(lines[row]), likeness, place)
            bad[row] = True
        self._signatures.append(signatures)
        self._good.append(~bad)

    def _note(self, kind: str, lines: np.ndarray, where: np.ndarray, scores: np.ndarray) -> np.ndarray:
        for row in np.flatnonzero(where):
            self.audit.findings[kind].add(int(lines[row]), float(scores[row]))
        return where

    def _filter(self, chunk: list[Pair]) -> np.ndarray:
        """What `sixfold clean` would drop."""
        names = [failed(pair, self.rules) for pair in chunk]
        hashes = b"".join(hash_of(pair.source, pair.target) for pair in chunk)
        fresh = self._seen.add(np.frombuffer(hashes, np.uint64))
        for pair, name, new in zip(chunk, names, fresh, strict=True):
            if name or not new:
                self.audit.findings[name or "duplicate"].add(pair.line)
        return np.array([name is not None for name in names]) | ~fresh

    def _languages(self, chunk: list[Pair], sides: tuple[Side, Side]) -> np.ndarray:
        """Pairs with their sides swapped, by script or by words, and sides that were left untranslated."""
        foreign = self.norm.foreign(0, sides[0]), self.norm.foreign(1, sides[1])
        bad = foreign[0] | foreign[1]
        for row, pair in enumerate(chunk):
            source, target = pair.source, pair.target
            crossed = script(source, target, self.rules) and not script(target, source, self.rules)
            if (foreign[0][row] and foreign[1][row]) or (crossed and source and target and not bad[row]):
                self.audit.findings["swapped"].add(pair.line)
            elif bad[row]:
                self.audit.findings["untranslated"].add(pair.line)
        return bad

    def _damage(self, chunk: list[Pair]) -> np.ndarray:
        bad = np.array([is_mojibake(pair.source) or is_mojibake(pair.target) for pair in chunk], bool)
        return self._note("mojibake", np.array([pair.line for pair in chunk]), bad, np.ones(len(chunk)))

    def _numbers(self, chunk: list[Pair], asked: np.ndarray) -> np.ndarray:
        bad = np.zeros(len(chunk), bool)
        for row in np.flatnonzero(asked):
            difference = numbers_differ(chunk[row].source, chunk[row].target)
            if difference:
                bad[row] = True
                self.audit.findings["numbers"].add(chunk[row].line, 1.0, difference)
        return bad

    def _count(self, chunk: list[Pair], lengths: tuple[np.ndarray, np.ndarray]) -> None:
        self.audit.pairs += len(chunk)
        for side, name in enumerate(("source", "target")):
            self.audit.count(f"letters of the {name}", LENGTHS, lengths[side])
            self.audit.letters[side] += int(lengths[side].sum())
        ratios = np.log2((lengths[1] + SMOOTHING) / (lengths[0] + SMOOTHING))
        self.audit.count("target by source length, as powers of 2", RATIOS, ratios)
        if "zh" in self.rules.languages:
            for pair in chunk:
                variant = chinese_variant(pair.source if self.rules.languages[0] == "zh" else pair.target)
                self.audit.variants[variant] = self.audit.variants.get(variant, 0) + 1

    def _near_duplicates(self) -> None:
        """Among the pairs that are good so far: the first of its kind that is kept must be worth keeping."""
        good = np.flatnonzero(np.concatenate([*self._good, np.empty(0, bool)]))
        if not len(good):
            return
        source, target = (np.concatenate([chunk[side] for chunk in self._signatures])[good] for side in (0, 1))
        like = near_duplicates.earlier(source, target)
        rows = np.flatnonzero(like >= 0)
        first = like[rows]
        scores = (
            near_duplicates.likeness(source[rows], source[first])
            + near_duplicates.likeness(target[rows], target[first])
        ) / 2
        for line, score, other in zip(good[rows] + 1, scores, good[first] + 1, strict=True):
            self.audit.findings["near-duplicate"].add(int(line), float(score), f"line {other}")


def examine(
    corpus: Corpus, languages: tuple[str, str], config: DataConfig, held_out: HeldOut | None, advance: Advance
) -> Audit:
    """Read a corpus twice: for what is usual in it, and for what is not. `advance` hears of the bytes of both."""
    writings = (Writing.of(languages[0]), Writing.of(languages[1]))
    rules = Rules(config.max_characters, config.max_ratio, languages, writings)
    norm = Norm.learn(Sample.of(corpus.pairs(advance)), rules)
    audit = Audit(corpus, languages)
    auditor = Auditor(norm, rules, held_out, audit)
    auditor.read(corpus.pairs(advance))
    if not audit.pairs:
        raise DataError(f"{corpus.files[0]}: expected pairs of text; the file is empty")
    verdict = norm.verdict
    trusted = bool(np.isfinite(norm.thresholds).any())
    judged = 1 - float(np.isnan(norm.given).mean()) if len(norm.given) else 0.0
    audit.alignment = {"area": round(verdict.area, 4), "judged": round(judged, 4), "trusted": trusted}
    audit.alignment |= {"good_area": round(verdict.good_area, 4), "unrelated": round(verdict.share, 4)}
    audit.alignment["learnt_from"] = len(norm.given)
    audit.alignment["thresholds"] = [
        round(value, 3) if np.isfinite(value) else None for value in norm.thresholds.tolist()
    ]
    audit.alignment["words"] = list(STRATA)
    audit.count("alignment of unrelated texts", SCORES, norm.unrelated[~np.isnan(norm.unrelated)])
    audit.quote()
    return audit
