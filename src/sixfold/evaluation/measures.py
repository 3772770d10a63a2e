"""Measures of translations as counts of each sentence that add up, and the score that sums of them stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from sixfold.evaluation.scores import TOKENIZERS

ORDER = 4  # longest n-grams of BLEU
BETA = 4  # of chrF: recall counts twice as much, squared


@dataclass(frozen=True)
class Measure:
    """How a corpus is scored. `counts` has a row a sentence, and `score` a number for each row of sums."""

    name: str
    higher_is_better: bool
    signature: str
    counts: Callable[[Sequence[str]], np.ndarray]  # of hypotheses, in the order of the references
    score: Callable[[np.ndarray], np.ndarray]


def measures(references: Sequence[str], language: str) -> dict[str, Measure]:
    """BLEU, chrF and TER as sacreBLEU counts them, for one set of references in the target language."""
    code = language.split("-")[0]
    tokenize = TOKENIZERS.get(code, "13a")
    chosen = [
        Measure("BLEU", True, *_counting(lambda texts: BLEU(tokenize=tokenize, references=[texts]), references), bleu),
        Measure("chrF", True, *_counting(lambda texts: CHRF(references=[texts]), references), chrf),
    ]
    if tokenize != "char" or code == "ja":  # TER counts words, and knows how to cut only Chinese and Japanese
        cut = code in ("zh", "ja")
        made = _counting(lambda texts: TER(normalized=cut, asian_support=cut, references=[texts]), references)
        chosen.append(Measure("TER", False, *made, ter))
    return {measure.name: measure for measure in chosen}


def _counting(
    make: Callable[[Sequence[str]], Any], references: Sequence[str]
) -> tuple[str, Callable[[Sequence[str]], np.ndarray]]:
    """A signature, and how to count hypotheses. The references are counted once, when the first of them come."""
    whole = cache(lambda: make(references))
    # sacreBLEU has no public name for what its own significance tests are made of.
    return str(make(references[:1]).get_signature()), lambda hypotheses: np.array(
        whole()._extract_corpus_statistics(hypotheses, None), np.float64
    )


def bleu(sums: np.ndarray) -> np.ndarray:
    """Columns: lengths of hypothesis and reference, matches of each order, n-grams of each order."""
    length, reference = sums[:, 0], sums[:, 1]
    right, total = sums[:, 2 : 2 + ORDER], sums[:, 2 + ORDER :]
    # Smoothing "exp": the first order without a match counts as half a match, the next as a quarter, and so on.
    halvings = np.cumsum((right == 0) & (total > 0), axis=1)
    matches = np.where(right == 0, 0.5**halvings, right)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(matches / total).mean(axis=1)
        brevity = np.minimum(0, 1 - reference / length)
        scores = 100 * np.exp(logs + brevity)
    return np.where((right.sum(axis=1) > 0) & (total > 0).all(axis=1), scores, 0.0)


def chrf(sums: np.ndarray) -> np.ndarray:
    """Columns: for each order n-grams of the hypothesis, of the reference, and matches."""
    hypothesis, reference, matches = sums[:, 0::3], sums[:, 1::3], sums[:, 2::3]
    known = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(known.sum(axis=1), 1)
    precision = np.divide(matches, hypothesis, where=known, out=np.zeros_like(matches)).sum(axis=1) / orders
    recall = np.divide(matches, reference, where=known, out=np.zeros_like(matches)).sum(axis=1) / orders
    below = BETA * precision + recall
    return np.divide(100 * (1 + BETA) * precision * recall, below, where=below > 0, out=np.zeros_like(below))


def ter(sums: np.ndarray) -> np.ndarray:
    """Columns: edits, words of the reference. Against nothing, anything is wrong."""
    edits, words = sums[:, 0], sums[:, 1]
    return 100 * np.divide(edits, words, where=words > 0, out=(edits > 0).astype(np.float64))


def mean(sums: np.ndarray) -> np.ndarray:
    """Columns: a score of each sentence, and 1."""
    return 100 * sums[:, 0] / np.maximum(sums[:, 1], 1)


def total(measure: Measure, counts: np.ndarray) -> float:
    """The score of all these sentences together."""
    return float(measure.score(counts.sum(axis=0, keepdims=True))[0])
