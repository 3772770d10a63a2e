"""The learning rate of each step: a linear warm-up, then a decay."""

from __future__ import annotations

import math

from sixfold.config import TrainingConfig


def learning_rate(config: TrainingConfig, d_model: int, step: int) -> float:
    """Return the learning rate of a step, counted from 1. Every schedule but noam peaks at `config.learning_rate`."""
    warmup = max(1, config.warmup)
    warm = min(step / warmup, 1.0)
    if config.schedule == "noam":  # paper eq. 3
        return config.learning_rate * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    if config.schedule == "inverse-sqrt":
        return config.learning_rate * warm * math.sqrt(warmup / max(step, warmup))
    if config.schedule == "cosine":
        progress = max(0.0, (step - warmup) / max(1, config.steps - warmup))
        height = (1 + math.cos(math.pi * min(progress, 1.0))) / 2
        return warm * (config.min_learning_rate + (config.learning_rate - config.min_learning_rate) * height)
    return config.learning_rate * warm
