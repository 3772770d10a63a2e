"""How far a score may be off by the luck of the sentences, and whether two systems differ by more than that.

The bootstrap of sacreBLEU from the same seed: the same resamples and intervals, and but for ties the same p-values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from sixfold.evaluation.measures import Measure

SAMPLES = 1000
FEWEST = 10  # sentences: draws of fewer are too much alike to tell anything from chance
SEED = 12345  # sacreBLEU's own
AT_ONCE = 2_000_000  # drawn sentences: what is in memory does not grow with their number

Counts = Mapping[str, np.ndarray]  # by measure: a row a sentence


@dataclass(frozen=True)
class Estimate:
    """A score, the interval that holds 95% of its resamples, and how it compares with the baseline."""

    value: float
    low: float
    high: float
    difference: float | None = None
    p: float | None = None


def resampled(
    systems: Mapping[str, Counts], measures: Mapping[str, Measure], samples: int = SAMPLES, seed: int = SEED
) -> dict[str, dict[str, np.ndarray]]:
    """The scores of every system on the same draws of sentences, by system and measure."""
    sentences = len(next(iter(next(iter(systems.values())).values())))
    scores: dict[str, dict[str, list[np.ndarray]]] = {system: {name: [] for name in measures} for system in systems}
    for times in draws(sentences, samples, seed):
        for system, counts in systems.items():
            for name, measure in measures.items():
                scores[system][name].append(measure.score(times @ counts[name]))
    return {system: {name: np.concatenate(parts) for name, parts in found.items()} for system, found in scores.items()}


def draws(sentences: int, samples: int, seed: int = SEED) -> Iterator[np.ndarray]:
    """How often each sentence is in each resample, some resamples at a time."""
    random = np.random.default_rng(seed)
    together = max(1, AT_ONCE // sentences)
    for start in range(0, samples, together):
        rows = min(together, samples - start)
        drawn = random.choice(sentences, size=(rows, sentences), replace=True)
        yield np.stack([np.bincount(row, minlength=sentences) for row in drawn]).astype(np.float64)


def interval(scores: np.ndarray) -> tuple[float, float]:
    """Where 95% of the resamples lie."""
    ordered = np.sort(scores)
    cut = len(ordered) // 40
    return float(ordered[cut]), float(ordered[len(ordered) - cut - 1])


def p_value(scores: np.ndarray, baseline: np.ndarray, difference: float) -> float:
    """How often chance alone gives a difference as large as the one found (Koehn 2004).

    sacreBLEU counts differences that are larger; as large is counted here, so that a system does not differ
    significantly from itself.
    """
    gaps = np.abs(scores - baseline)
    extreme = int((gaps - gaps.mean() >= abs(difference) - 1e-9).sum())
    return (extreme + 1) / (len(gaps) + 1)
