"""BLEU, chrF, TER and COMET as statistics of each sentence that add up, and the score of such sums.

Sums of statistics are what buckets and the bootstrap need: any set of sentences is scored without counting again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from sixfold.errors import DataError, RequestError
from sixfold.evaluation.scores import TOKENIZERS

BLEU_ORDER = 4  # longest n-grams
CHRF_BETA_SQUARED = 4  # beta is 2: recall counts twice as much as precision


@dataclass(frozen=True)
class Metric:
    """How a corpus is scored."""

    name: str
    higher_is_better: bool
    signature: str
    counts: Callable[[Sequence[str]], np.ndarray]  # hypotheses in the order of the references → statistics, a row each
    score: Callable[[np.ndarray], np.ndarray]  # rows of statistics, or of their sums → a score for each row


def metrics_for(references: Sequence[str], language: str) -> dict[str, Metric]:
    """Return BLEU, chrF and TER as sacreBLEU computes them, for one set of references in the target language."""
    code = language.split("-")[0]
    tokenize = TOKENIZERS.get(code, "13a")
    chosen = [
        Metric("BLEU", True, *_counting(lambda texts: BLEU(tokenize=tokenize, references=[texts]), references), bleu),
        Metric("chrF", True, *_counting(lambda texts: CHRF(references=[texts]), references), chrf),
    ]
    if tokenize != "char" or code == "ja":  # TER counts words; of languages without spaces it can only split two
        is_asian = code in ("zh", "ja")
        counting = _counting(
            lambda texts: TER(normalized=is_asian, asian_support=is_asian, references=[texts]), references
        )
        chosen.append(Metric("TER", False, *counting, ter))
    return {metric.name: metric for metric in chosen}


def _counting(
    make: Callable[[Sequence[str]], Any], references: Sequence[str]
) -> tuple[str, Callable[[Sequence[str]], np.ndarray]]:
    """Return the signature of a metric and a function that counts hypotheses.

    The references are counted once, when the function is first called.
    """
    metric = cache(lambda: make(references))
    # sacreBLEU has no public name for the statistics of its own significance tests.
    return str(make(references[:1]).get_signature()), lambda hypotheses: np.array(
        metric()._extract_corpus_statistics(hypotheses, None), np.float64
    )


def bleu(sums: np.ndarray) -> np.ndarray:
    """Return BLEU. Columns: lengths of hypothesis and reference, matches of each order, n-grams of each order."""
    length, reference_length = sums[:, 0], sums[:, 1]
    matches, ngrams = sums[:, 2 : 2 + BLEU_ORDER], sums[:, 2 + BLEU_ORDER :]
    # Smoothing "exp": the first order without a match counts as half a match, the next as a quarter, and so on.
    halvings = np.cumsum((matches == 0) & (ngrams > 0), axis=1)
    smoothed = np.where(matches == 0, 0.5**halvings, matches)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_precision = np.log(smoothed / ngrams).mean(axis=1)
        log_brevity_penalty = np.minimum(0, 1 - reference_length / length)
        scores = 100 * np.exp(log_precision + log_brevity_penalty)
    return np.where((matches.sum(axis=1) > 0) & (ngrams > 0).all(axis=1), scores, 0.0)


def chrf(sums: np.ndarray) -> np.ndarray:
    """Return chrF. Columns, for each order: n-grams of the hypothesis, of the reference, and matches."""
    hypothesis, reference, matches = sums[:, 0::3], sums[:, 1::3], sums[:, 2::3]
    is_defined = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(is_defined.sum(axis=1), 1)
    precision = np.divide(matches, hypothesis, where=is_defined, out=np.zeros_like(matches)).sum(axis=1) / orders
    recall = np.divide(matches, reference, where=is_defined, out=np.zeros_like(matches)).sum(axis=1) / orders
    numerator = 100 * (1 + CHRF_BETA_SQUARED) * precision * recall
    denominator = CHRF_BETA_SQUARED * precision + recall
    return np.divide(numerator, denominator, where=denominator > 0, out=np.zeros_like(denominator))


def ter(sums: np.ndarray) -> np.ndarray:
    """Return TER. Columns: edits, words of the reference. With an empty reference any edit is an error of 100."""
    edits, words = sums[:, 0], sums[:, 1]
    return 100 * np.divide(edits, words, where=words > 0, out=(edits > 0).astype(np.float64))


def mean(sums: np.ndarray) -> np.ndarray:
    """Return the mean of sentence scores, in percent. Columns: the score of each sentence, and 1."""
    return 100 * sums[:, 0] / np.maximum(sums[:, 1], 1)


def corpus_score(metric: Metric, counts: np.ndarray) -> float:
    """Return the score of all sentences together, from a row of statistics for each."""
    return float(metric.score(counts.sum(axis=0, keepdims=True))[0])


def comet(checkpoint: Path, sources: Sequence[str], references: Sequence[str]) -> Metric:
    """Return COMET with a checkpoint of the user's own.

    The checkpoint is loaded at once, before anything is translated, so that a wrong path costs no time.
    """
    if not checkpoint.is_file():
        raise DataError(f"--comet: {checkpoint}: expected a checkpoint of COMET; there is no such file")
    try:
        from comet import load_from_checkpoint  # type: ignore[import-not-found]
    except ModuleNotFoundError:
        raise RequestError("--comet needs COMET, which is not installed", "pip install unbabel-comet") from None
    model = load_from_checkpoint(str(checkpoint))

    def counts(hypotheses: Sequence[str]) -> np.ndarray:
        triples = [
            {"src": source, "mt": hypothesis, "ref": reference}
            for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True)
        ]
        scores = model.predict(triples, batch_size=16, gpus=0, progress_bar=False).scores
        return np.column_stack([np.array(scores, np.float64), np.ones(len(scores))])

    signature = f"checkpoint:{checkpoint.name}|version:{version('unbabel-comet')}"
    return Metric("COMET", True, signature, counts, mean)
