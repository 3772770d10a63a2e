"""Confidence intervals of scores, and whether two systems differ by more than chance, by bootstrap resampling.

This is the bootstrap of sacreBLEU with the same seed: the same resamples and intervals, and the same p-values except
where differences are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from sixfold.evaluation.metrics import Metric

SAMPLES = 1000
MIN_SENTENCES = 10  # resamples of fewer sentences are too similar for a p-value
SEED = 12345  # as in sacreBLEU
MAX_DRAWS = 2_000_000  # sentences drawn at once, so that memory does not grow with the number of resamples

Counts = Mapping[str, np.ndarray]  # by metric: a row of statistics for each sentence


@dataclass(frozen=True)
class Estimate:
    """A score, the interval that contains 95% of its resamples, and its difference from the baseline with a p-value."""

    value: float
    low: float
    high: float
    difference: float | None = None
    p: float | None = None


def resample_scores(
    systems: Mapping[str, Counts], metrics: Mapping[str, Metric], samples: int = SAMPLES, seed: int = SEED
) -> dict[str, dict[str, np.ndarray]]:
    """Return the scores of every system on the same resamples, by system and metric."""
    sentences = len(next(iter(next(iter(systems.values())).values())))
    scores: dict[str, dict[str, list[np.ndarray]]] = {system: {name: [] for name in metrics} for system in systems}
    for multiplicities in resamples(sentences, samples, seed):
        for system, counts in systems.items():
            for name, metric in metrics.items():
                scores[system][name].append(metric.score(multiplicities @ counts[name]))
    return {
        system: {name: np.concatenate(parts) for name, parts in by_metric.items()}
        for system, by_metric in scores.items()
    }


def resamples(sentences: int, samples: int, seed: int = SEED) -> Iterator[np.ndarray]:
    """Yield how often each sentence (column) is in each resample (row), some resamples at a time."""
    random = np.random.default_rng(seed)
    chunk = max(1, MAX_DRAWS // sentences)
    for start in range(0, samples, chunk):
        rows = min(chunk, samples - start)
        drawn = random.choice(sentences, size=(rows, sentences), replace=True)
        yield np.stack([np.bincount(row, minlength=sentences) for row in drawn]).astype(np.float64)


def confidence_interval(scores: np.ndarray) -> tuple[float, float]:
    """Return the ends of the interval that contains 95% of the resamples."""
    ordered = np.sort(scores)
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[len(ordered) - cut - 1])


def p_value(scores: np.ndarray, baseline: np.ndarray, difference: float) -> float:
    """Return how often chance alone gives a difference at least as large as the observed one (Koehn 2004).

    sacreBLEU counts only larger differences. Here equal ones count too, so that a system does not differ significantly
    from itself.
    """
    differences = np.abs(scores - baseline)
    extreme = int((differences - differences.mean() >= abs(difference) - 1e-9).sum())
    return (extreme + 1) / (len(differences) + 1)
