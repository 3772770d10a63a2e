"""Defaults for settings that the user leaves out: preset, vocabulary, batch and steps, by corpus size and device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sixfold.config import Config, TrainingConfig, from_dict, to_dict
from sixfold.configfile import merge
from sixfold.errors import ConfigError
from sixfold.presets import from_tree, preset


class Size(NamedTuple):
    """The defaults for corpora of at most some size."""

    limit: float  # in pairs or, where there are none, in bytes of text
    gpu_preset: str
    cpu_preset: str
    vocab: int
    dropout: float
    batch_tokens: int  # on a GPU; a CPU takes a quarter
    epochs: int  # on a GPU; a CPU makes half


SIZES = (
    Size(2e4, "tiny", "tiny", 4000, 0.3, 4096, 60),
    Size(1e5, "small", "tiny", 6000, 0.3, 8192, 40),
    Size(5e5, "base", "small", 16000, 0.2, 16384, 30),
    Size(5e6, "base", "small", 32000, 0.1, 32768, 15),
    Size(float("inf"), "big", "base", 32000, 0.1, 65536, 5),
)
MIN_VALIDATION_INTERVAL = 25  # steps, where the user sets no interval


def size_of(amount: int, sizes: Sequence[Size] = SIZES) -> Size:
    """Return the defaults for a corpus of this many pairs or, with other `sizes`, of what they are measured in."""
    return next(size for size in sizes if amount <= size.limit)


def preset_name(settings: Mapping[str, Any], amount: int, device: str, sizes: Sequence[Size] = SIZES) -> str:
    """Return the preset that the user names, or the one for this corpus and device."""
    size = size_of(amount, sizes)
    return str(settings.get("preset") or (size.gpu_preset if device == "cuda" else size.cpu_preset))


def choose(settings: Mapping[str, Any], pairs: int, device: str) -> Config:
    """Return the full configuration; `settings` are those of the user, by section, and take precedence."""
    size = size_of(pairs)
    name = preset_name(settings, pairs, device)
    start = preset(name)
    suggested = {
        # A tiny model hardly overfits.
        "model": {"dropout": min(size.dropout, 0.1) if name == "tiny" else size.dropout},
        "tokenizer": {"vocab": min(size.vocab, start.tokenizer.vocab)},
        # A narrow model bears a higher learning rate.
        "training": {"schedule": "cosine", "learning_rate": round(1e-3 * math.sqrt(512 / start.model.d_model), 5)},
    }
    return from_tree({**merge(suggested, settings), "preset": name}, "settings")


def tune(settings: Mapping[str, Any], start: Config, special_tokens: int = 0) -> Config:
    """Return the configuration for fine-tuning a model: its own, with a new schedule and a lower learning rate.

    `special_tokens` is how many tokens the model reads or writes around a text, besides <eos>.
    """
    if "preset" in settings:
        raise ConfigError("preset: expected none beside a model to start from, which has its shape", "leave it out")
    gentle = round(3e-4 * math.sqrt(512 / start.model.d_model), 5)
    # The low-rank matrices start at zero and bear a higher rate.
    rate = 10 * gentle if settings.get("training", {}).get("lora") else gentle
    max_tokens = start.data.max_tokens
    if start.model.positions == "learned":
        max_tokens = min(max_tokens, start.model.max_length - special_tokens)
    own = {
        "model": to_dict(start.model), "tokenizer": to_dict(start.tokenizer),
        "data": {"both_ways": start.data.both_ways, "max_tokens": max_tokens},
        "training": {"schedule": "cosine", "learning_rate": rate, "compile": "off", "patience": 5},
    }  # fmt: skip
    return from_dict(merge(own, settings))


def is_packed(config: TrainingConfig, device: str) -> bool:
    """Return whether batches are packed. On a CPU, masks cost more in attention than padding does, so they are not."""
    return config.packing == "on" if config.packing != "auto" else device == "cuda" or config.compile == "on"


def complete(config: TrainingConfig, pairs: int, steps_per_epoch: Callable[[int], int], device: str) -> TrainingConfig:
    """Return the configuration for a corpus of pairs with every 0 that means "chosen" filled in."""
    return fill_in(config, size_of(pairs), steps_per_epoch, device)


def fill_in(config: TrainingConfig, size: Size, steps_per_epoch: Callable[[int], int], device: str) -> TrainingConfig:
    """Return the configuration with the lengths of steps and runs that suit a corpus of some size."""
    batch = config.batch_tokens or (size.batch_tokens if device == "cuda" else size.batch_tokens // 4)
    epochs = size.epochs if device == "cuda" else size.epochs // 2
    steps = config.steps or max(500, steps_per_epoch(batch) * epochs)
    # Twenty validations in a run, but not more often than every 25 steps, as each translates the dev set.
    validate = config.validate_every or max(min(steps, MIN_VALIDATION_INTERVAL), min(steps // 20, 2000))
    return replace(
        config,
        batch_tokens=batch,
        steps=steps,
        warmup=config.warmup or max(1, min(4000, steps // 10)),
        validate_every=validate,
        checkpoint_every=config.checkpoint_every or validate,
    )
