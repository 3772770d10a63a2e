"""Systems compared on one test set: scores with intervals, scores by kind of sentence, and telling sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sixfold.evaluation.metrics import Metric, corpus_score
from sixfold.evaluation.significance import (
    MIN_SENTENCES,
    SAMPLES,
    Counts,
    Estimate,
    confidence_interval,
    p_value,
    resample_scores,
)
from sixfold.evaluation.systems import TestSet
from sixfold.text.languages import DENSE, LETTERS, count_characters, letters

BUCKET_ENDS = (10, 20, 30, 50)  # the longest source of each length bucket, in words
MAX_EXAMPLES = 10  # sentences of each list
MAX_SCRIPTS = 6
SCRIPTS = sorted(LETTERS, key=lambda script: script == "Latin")  # Latin last: names and units in other scripts use it


@dataclass(frozen=True)
class Bucket:
    """Sentences of one kind, and the scores of each system on them: by system, then by metric."""

    name: str
    sentences: int
    scores: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class SentenceComparison:
    """One sentence as each system translated it, and its chrF."""

    line: int  # counted from 1
    source: str
    reference: str
    translations: Mapping[str, str]
    chrf: Mapping[str, float]


@dataclass(frozen=True)
class Comparison:
    """The result of comparing systems on a test set."""

    systems: Sequence[str]
    baseline: str
    language: str
    sentences: int
    samples: int
    signatures: Mapping[str, str]
    scores: Mapping[str, Mapping[str, Estimate]]  # by system, then by metric
    buckets: Mapping[str, Sequence[Bucket]]  # by length, by script, by corpus
    worst: Mapping[str, Sequence[SentenceComparison]]
    improved: Mapping[str, Sequence[SentenceComparison]]  # against the baseline, most first
    harmed: Mapping[str, Sequence[SentenceComparison]]

    def to_dict(self) -> dict[str, Any]:
        """Return what `sixfold evaluate --json` prints."""
        return asdict(self)


def compare(
    texts: TestSet,
    translations: Mapping[str, Sequence[str]],
    metrics: Mapping[str, Metric],
    baseline: str,
    samples: int = SAMPLES,
    report_progress: Callable[[str], None] = lambda activity: None,
) -> Comparison:
    """Score the translations of every system and compare them with those of the baseline.

    `translations` are by system. `report_progress` is called with the name of each count before it begins.
    """
    counts: dict[str, dict[str, np.ndarray]] = {system: {} for system in translations}
    for system, hypotheses in translations.items():
        assert len(hypotheses) == len(texts)
        for name, metric in metrics.items():
            report_progress(f"{name} of {system}")
            counts[system][name] = metric.counts(hypotheses)
    sentence_chrf = {system: metrics["chrF"].score(by_metric["chrF"]) for system, by_metric in counts.items()}

    def examples(order: np.ndarray) -> list[SentenceComparison]:
        return [_compare_sentence(int(index), texts, translations, sentence_chrf) for index in order[:MAX_EXAMPLES]]

    gains = {system: chrf - sentence_chrf[baseline] for system, chrf in sentence_chrf.items() if system != baseline}
    return Comparison(
        systems=list(translations),
        baseline=baseline,
        language=texts.language,
        sentences=len(texts),
        samples=samples,
        signatures={name: metric.signature for name, metric in metrics.items()},
        scores=estimates(counts, metrics, baseline, samples),
        buckets=score_buckets(texts, counts, metrics),
        worst={system: examples(_largest_first(100 - chrf)) for system, chrf in sentence_chrf.items()},
        improved={system: examples(_largest_first(gain)) for system, gain in gains.items()},
        harmed={system: examples(_largest_first(-gain)) for system, gain in gains.items()},
    )


def _largest_first(values: np.ndarray) -> np.ndarray:
    """Return the indices of the positive values, largest first, without those that are positive only by rounding."""
    order = np.argsort(-values, kind="stable")
    return order[values[order] > 1e-9]


def _compare_sentence(
    index: int, texts: TestSet, translations: Mapping[str, Sequence[str]], chrf: Mapping[str, np.ndarray]
) -> SentenceComparison:
    return SentenceComparison(
        line=index + 1,
        source=texts.sources[index],
        reference=texts.references[index],
        translations={system: hypotheses[index] for system, hypotheses in translations.items()},
        chrf={system: round(float(scores[index]), 2) for system, scores in chrf.items()},
    )


def estimates(
    counts: Mapping[str, Counts], metrics: Mapping[str, Metric], baseline: str, samples: int
) -> dict[str, dict[str, Estimate]]:
    """Return every score with its interval, and its difference from the baseline with a p-value."""
    scores = resample_scores(counts, metrics, samples)
    values = {
        system: {name: corpus_score(metric, by_metric[name]) for name, metric in metrics.items()}
        for system, by_metric in counts.items()
    }

    has_enough_sentences = len(counts[baseline]["chrF"]) >= MIN_SENTENCES

    def estimate(system: str, name: str) -> Estimate:
        value, (low, high) = values[system][name], confidence_interval(scores[system][name])
        if system == baseline:
            return Estimate(value, low, high)
        difference = value - values[baseline][name]
        p = p_value(scores[system][name], scores[baseline][name], difference) if has_enough_sentences else None
        return Estimate(value, low, high, difference, p)

    return {system: {name: estimate(system, name) for name in metrics} for system in counts}


def score_buckets(
    texts: TestSet, counts: Mapping[str, Counts], metrics: Mapping[str, Metric]
) -> dict[str, list[Bucket]]:
    """Return the scores of buckets by length, script and corpus; a grouping with only one bucket is left out."""
    buckets: dict[str, list[Bucket]] = {}
    for title, bucket_name in GROUPINGS.items():
        assigned = np.array([bucket_name(texts, index) for index in range(len(texts))])
        names, sizes = np.unique(assigned, return_counts=True)
        if title == "script":
            names = names[np.argsort(-sizes, kind="stable")][:MAX_SCRIPTS]
        if len(names) > 1:
            buckets[title] = [_score_bucket(str(name), assigned == name, counts, metrics) for name in names]
    return buckets


def _score_bucket(
    name: str, members: np.ndarray, counts: Mapping[str, Counts], metrics: Mapping[str, Metric]
) -> Bucket:
    scores = {
        system: {name: round(corpus_score(metric, by_metric[name][members]), 2) for name, metric in metrics.items()}
        for system, by_metric in counts.items()
    }
    return Bucket(name.strip(), int(members.sum()), scores)


def count_words(text: str) -> int:
    """Return the number of words between spaces; each Chinese, Japanese or Korean character counts as a word."""
    dense = letters(*DENSE)
    return count_characters(dense, text) + len(dense.sub(" ", text).split())


def _length_bucket(texts: TestSet, index: int) -> str:
    length = count_words(texts.sources[index])
    low, high = 0, 0
    for end in BUCKET_ENDS:
        low, high = high + 1, end
        if length <= end:
            return f"{low:>2}–{high}"  # with a space before one digit, so that names sort as numbers do
    return f"{high + 1} and more"


def _script_bucket(texts: TestSet, index: int) -> str:
    """Return the scripts of a source, such as "Han + Latin": text with Latin names in it is harder than Han alone."""
    scripts = [script for script in SCRIPTS if letters(script).search(texts.sources[index])]
    return " + ".join(scripts) or "no letters"


GROUPINGS: dict[str, Callable[[TestSet, int], str]] = {
    "length": _length_bucket,
    "script": _script_bucket,
    "corpus": lambda texts, index: texts.corpora[index] or "without a name",
}
