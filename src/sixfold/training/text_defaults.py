"""Defaults for training decoder-only models: preset, vocabulary, batch and steps, by size of the text and device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sixfold.config import Config
from sixfold.configfile import merge
from sixfold.presets import from_tree, preset
from sixfold.training.defaults import Size, preset_name, size_of, tune

SIZES = (
    Size(2e6, "decoder-tiny", "decoder-tiny", 4000, 0.1, 2**13, 20),
    Size(2e7, "decoder-small", "decoder-tiny", 8000, 0.1, 2**15, 10),
    Size(2e8, "decoder-base", "decoder-small", 16000, 0.1, 2**17, 4),
    Size(float("inf"), "decoder-base", "decoder-small", 32000, 0.0, 2**18, 2),
)
ROW_TOKENS = {"cpu": 256, "cuda": 1024}
# Labels are not smoothed, because bits per byte are measured. The rest is as GPT-3 was trained (Brown et al., 2020).
TRAINING = {"label_smoothing": 0.0, "beta2": 0.95, "weight_decay": 0.1}
LOWEST_RATE = 0.1  # of the peak learning rate, at the end of the schedule
TUNED_TRAINING = {"label_smoothing": 0.0, "beta2": 0.95}


def choose(settings: Mapping[str, Any], size: int, device: str) -> Config:
    """Return the full configuration; `settings` are those of the user, by section, and take precedence."""
    defaults = size_of(size, SIZES)
    name = preset_name(settings, size, device, SIZES)
    start = preset(name)
    # A narrow model bears a higher learning rate.
    rate = settings.get("training", {}).get("learning_rate") or round(1e-3 * math.sqrt(512 / start.model.d_model), 5)
    schedule = {"schedule": "cosine", "learning_rate": rate, "min_learning_rate": round(LOWEST_RATE * rate, 8)}
    suggested = {
        "model": {"dropout": defaults.dropout},
        "tokenizer": {"vocab": min(defaults.vocab, start.tokenizer.vocab)},
        "training": {**TRAINING, **schedule, "packing": "on", "shortlist": False, "score": "loss"},
    }
    config = from_tree({**merge(suggested, settings), "preset": name}, "settings")
    return with_rows(config, device)


def tune_text(settings: Mapping[str, Any], start: Config, device: str) -> Config:
    """Return the configuration for fine-tuning a model on documents, or on prompts with answers."""
    own = {
        "training": {**TUNED_TRAINING, "shortlist": False, "score": "loss"},
        "data": {"max_tokens": max(1, min(1000, start.model.max_length // 2 - 1))},
    }
    return with_rows(tune(merge(own, settings), start), device)


def with_rows(config: Config, device: str) -> Config:
    """Return a configuration with a length of rows, where none is set."""
    chosen = config.training.row_tokens or min(config.model.max_length, ROW_TOKENS[device])
    return replace(config, training=replace(config.training, row_tokens=chosen))
