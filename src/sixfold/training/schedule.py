"""The learning rate of each step: a linear warm-up, then a decay."""

from __future__ import annotations

import math

from sixfold.config import TrainingConfig


def learning_rate(config: TrainingConfig, d_model: int, step: int) -> float:
    """Steps count from 1. All but noam peak at `config.learning_rate` when the warm-up ends."""
    warm = min(step / config.warmup, 1.0)
    if config.schedule == "noam":  # paper eq. 3
        return config.learning_rate * d_model**-0.5 * min(step**-0.5, step * config.warmup**-1.5)
    if config.schedule == "inverse-sqrt":
        return config.learning_rate * warm * math.sqrt(config.warmup / max(step, config.warmup))
    if config.schedule == "cosine":
        progress = max(0.0, (step - config.warmup) / max(1, config.steps - config.warmup))
        return config.learning_rate * warm * (1 + math.cos(math.pi * min(progress, 1.0))) / 2
    return config.learning_rate * warm
