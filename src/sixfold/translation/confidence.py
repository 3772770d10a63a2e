"""The probability that a translation is a fair one: a curve over its score, fitted on dev sets, on the model's card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

# Of the fair translations of the dev sets `written`, `tatoeba` and `flores-dev` by the model that ships, none of 887
# into English and 5 of 782 (0.6%) into Chinese have a lower confidence; of all translations below it, four in five are
# not fair.
MIN_CONFIDENCE = 0.15


class ConfidenceCurve(NamedTuple):
    """A logistic curve over the mean log-probability of the tokens of a sentence."""

    slope: float
    intercept: float

    def probability(self, score: float) -> float:
        """Return the probability that a sentence with this score is translated fairly."""
        return 1 / (1 + math.exp(-max(-500.0, min(500.0, self.slope * score + self.intercept))))


def curve_from_card(card: Mapping[str, Any], languages: tuple[str, str]) -> ConfidenceCurve | None:
    """Read `confidence."zh-en"` with `slope` and `intercept` from a card; None if the card has no such entry."""
    curves = card.get("confidence")
    curve = curves.get("-".join(languages)) if isinstance(curves, Mapping) else None
    values = [curve.get(name) for name in ConfidenceCurve._fields] if isinstance(curve, Mapping) else []
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    return ConfidenceCurve(*numbers) if len(numbers) == len(ConfidenceCurve._fields) else None


def fit_curve(scores: Sequence[float], fair: Sequence[bool], rounds: int = 30) -> ConfidenceCurve:
    """Fit the curve by Newton's method; a small ridge keeps it finite where the scores separate the labels."""
    inputs = np.stack([np.asarray(scores, float), np.ones(len(scores))], axis=1)
    labels, weights = np.asarray(fair, float), np.zeros(2)
    for _ in range(rounds):
        probabilities = 1 / (1 + np.exp(-np.clip(inputs @ weights, -30, 30)))
        gradient = inputs.T @ (labels - probabilities) - 1e-3 * weights
        hessian = (inputs * (probabilities * (1 - probabilities))[:, None]).T @ inputs + 1e-3 * np.eye(2)
        weights = weights + np.linalg.solve(hessian, gradient)
    return ConfidenceCurve(*map(float, weights))
