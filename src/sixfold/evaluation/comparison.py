"""Systems side by side on one test set: scores with intervals, where they differ, and the sentences that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sixfold.evaluation.measures import Measure, total
from sixfold.evaluation.significance import FEWEST, SAMPLES, Estimate, interval, p_value, resampled
from sixfold.evaluation.systems import TestSet
from sixfold.text.languages import DENSE, LETTERS, count, letters

LENGTHS = (10, 20, 30, 50)  # words: the last of each bucket
EXAMPLES = 10  # sentences of each kind
SCRIPTS_SHOWN = 6
NATIVE_FIRST = sorted(LETTERS, key=lambda script: script == "Latin")  # which joins others as names and units


@dataclass(frozen=True)
class Bucket:
    """Sentences of one kind, and what each system scores on them: by system, then by measure."""

    name: str
    sentences: int
    scores: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Sentence:
    """One sentence as each system translated it, and its chrF."""

    line: int
    source: str
    reference: str
    translations: Mapping[str, str]
    chrf: Mapping[str, float]


@dataclass(frozen=True)
class Comparison:
    """All that is known of the systems on this test set."""

    systems: Sequence[str]
    baseline: str
    language: str
    sentences: int
    samples: int
    signatures: Mapping[str, str]
    scores: Mapping[str, Mapping[str, Estimate]]  # by system, then by measure
    buckets: Mapping[str, Sequence[Bucket]]  # by length, by script, by corpus
    worst: Mapping[str, Sequence[Sentence]]
    improved: Mapping[str, Sequence[Sentence]]  # against the baseline, most first
    harmed: Mapping[str, Sequence[Sentence]]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    texts: TestSet,
    translations: Mapping[str, Sequence[str]],
    measures: Mapping[str, Measure],
    baseline: str,
    samples: int = SAMPLES,
    advance: Callable[[str], None] = lambda doing: None,
) -> Comparison:
    """`translations` are by system; `advance` is told what is counted next."""
    counts: dict[str, dict[str, np.ndarray]] = {system: {} for system in translations}
    for system, said in translations.items():
        assert len(said) == len(texts)
        for name, measure in measures.items():
            advance(f"{name} of {system}")
            counts[system][name] = measure.counts(said)
    sentence_chrf = {system: measures["chrF"].score(found["chrF"]) for system, found in counts.items()}

    def sentences(order: np.ndarray) -> list[Sentence]:
        return [_sentence(int(place), texts, translations, sentence_chrf) for place in order[:EXAMPLES]]

    gains = {system: found - sentence_chrf[baseline] for system, found in sentence_chrf.items() if system != baseline}
    return Comparison(
        systems=list(translations),
        baseline=baseline,
        language=texts.language,
        sentences=len(texts),
        samples=samples,
        signatures={name: measure.signature for name, measure in measures.items()},
        scores=estimates(counts, measures, baseline, samples),
        buckets=buckets(texts, counts, measures),
        worst={system: sentences(_falling(100 - found)) for system, found in sentence_chrf.items()},
        improved={system: sentences(_falling(gain)) for system, gain in gains.items()},
        harmed={system: sentences(_falling(-gain)) for system, gain in gains.items()},
    )


def _falling(gain: np.ndarray) -> np.ndarray:
    """Places of what was gained, most first; nothing that was not, or by rounding alone."""
    order = np.argsort(-gain, kind="stable")
    return order[gain[order] > 1e-9]


def _sentence(
    place: int, texts: TestSet, translations: Mapping[str, Sequence[str]], chrf: Mapping[str, np.ndarray]
) -> Sentence:
    return Sentence(
        line=place + 1,
        source=texts.sources[place],
        reference=texts.references[place],
        translations={system: said[place] for system, said in translations.items()},
        chrf={system: round(float(found[place]), 2) for system, found in chrf.items()},
    )


def estimates(
    counts: Mapping[str, Mapping[str, np.ndarray]], measures: Mapping[str, Measure], baseline: str, samples: int
) -> dict[str, dict[str, Estimate]]:
    """Every score with its interval, and its distance from the baseline's with the p-value."""
    scores = resampled(counts, measures, samples)
    values = {
        system: {name: total(measure, found[name]) for name, measure in measures.items()}
        for system, found in counts.items()
    }

    enough = len(counts[baseline]["chrF"]) >= FEWEST

    def estimate(system: str, name: str) -> Estimate:
        value, (low, high) = values[system][name], interval(scores[system][name])
        if system == baseline:
            return Estimate(value, low, high)
        difference = value - values[baseline][name]
        p = p_value(scores[system][name], scores[baseline][name], difference) if enough else None
        return Estimate(value, low, high, difference, p)

    return {system: {name: estimate(system, name) for name in measures} for system in counts}


def buckets(
    texts: TestSet, counts: Mapping[str, Mapping[str, np.ndarray]], measures: Mapping[str, Measure]
) -> dict[str, list[Bucket]]:
    """Scores of the sentences of each kind; where all are of one kind, there is nothing to say."""
    found: dict[str, list[Bucket]] = {}
    for title, kind_of in KINDS.items():
        kinds = np.array([kind_of(texts, place) for place in range(len(texts))])
        names, sizes = np.unique(kinds, return_counts=True)
        if title == "script":
            names = names[np.argsort(-sizes, kind="stable")][:SCRIPTS_SHOWN]
        if len(names) > 1:
            found[title] = [_bucket(str(name), kinds == name, counts, measures) for name in names]
    return found


def _bucket(
    name: str, chosen: np.ndarray, counts: Mapping[str, Mapping[str, np.ndarray]], measures: Mapping[str, Measure]
) -> Bucket:
    scores = {
        system: {name: round(total(measure, found[name][chosen]), 2) for name, measure in measures.items()}
        for system, found in counts.items()
    }
    return Bucket(name.strip(), int(chosen.sum()), scores)


def words(text: str) -> int:
    """Words between spaces, where each character of Chinese, Japanese or Korean is one."""
    dense = letters(*DENSE)
    return count(dense, text) + len(dense.sub(" ", text).split())


def _length(texts: TestSet, place: int) -> str:
    long = words(texts.sources[place])
    low, high = 0, 0
    for end in LENGTHS:
        low, high = high + 1, end
        if long <= end:
            return f"{low:>2}–{high}"  # with a space before one digit, so that names sort as numbers do
    return f"{high + 1} and more"


def _scripts(texts: TestSet, place: int) -> str:
    """Which scripts a source is written in: Han alone is another task than Han with Latin names in it."""
    found = [script for script in NATIVE_FIRST if letters(script).search(texts.sources[place])]
    return " + ".join(found) or "no letters"


KINDS: dict[str, Callable[[TestSet, int], str]] = {
    "length": _length,
    "script": _scripts,
    "corpus": lambda texts, place: texts.corpora[place] or "without a name",
}
