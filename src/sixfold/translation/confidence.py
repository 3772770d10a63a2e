"""How sure a translation is, as the chance that it is a fair one: fitted on dev sets and kept in the model's card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Confidence(NamedTuple):
    """A logistic curve over the mean log-probability of the tokens of a sentence."""

    slope: float
    intercept: float

    def of(self, score: float) -> float:
        return 1 / (1 + math.exp(-max(-500.0, min(500.0, self.slope * score + self.intercept))))


def of_card(card: Mapping[str, Any], languages: tuple[str, str]) -> Confidence | None:
    """`confidence."zh-en"` with a slope and an intercept; models without have none."""
    told = card.get("confidence")
    curve = told.get("-".join(languages)) if isinstance(told, Mapping) else None
    values = [curve.get(name) for name in Confidence._fields] if isinstance(curve, Mapping) else []
    numbers = [float(each) for each in values if isinstance(each, int | float)]
    return Confidence(*numbers) if len(numbers) == len(Confidence._fields) else None


def fit(scores: Sequence[float], fair: Sequence[bool], rounds: int = 30) -> Confidence:
    """The likeliest curve, by Newton's method; a little ridge keeps it finite where the scores tell all."""
    seen = np.stack([np.asarray(scores, float), np.ones(len(scores))], axis=1)
    wanted, weights = np.asarray(fair, float), np.zeros(2)
    for _ in range(rounds):
        chance = 1 / (1 + np.exp(-np.clip(seen @ weights, -30, 30)))
        gradient = seen.T @ (wanted - chance) - 1e-3 * weights
        curvature = (seen * (chance * (1 - chance))[:, None]).T @ seen + 1e-3 * np.eye(2)
        weights = weights + np.linalg.solve(curvature, gradient)
    return Confidence(*map(float, weights))
