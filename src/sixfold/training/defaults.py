"""What the user did not say: preset, vocabulary, batch and length of training, from the corpus and the device."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from sixfold.config import Config, TrainingConfig, from_dict, to_dict
from sixfold.configfile import merge
from sixfold.errors import ConfigError
from sixfold.presets import from_tree, preset


class Size(NamedTuple):
    """What suits corpora of up to so many pairs."""

    pairs: float
    gpu_preset: str
    cpu_preset: str
    vocab: int
    dropout: float
    batch_tokens: int  # on a GPU; a CPU takes a quarter
    passes: int  # over the corpus, on a GPU; a CPU makes half


SIZES = (
    Size(2e4, "tiny", "tiny", 4000, 0.3, 4096, 60),
    Size(1e5, "small", "tiny", 6000, 0.3, 8192, 40),
    Size(5e5, "base", "small", 16000, 0.2, 16384, 30),
    Size(5e6, "base", "small", 32000, 0.1, 32768, 15),
    Size(float("inf"), "big", "base", 32000, 0.1, 65536, 5),
)
FEWEST_STEPS = 25  # between two validations that nobody asked for


def size_of(pairs: int) -> Size:
    return next(size for size in SIZES if pairs <= size.pairs)


def preset_name(settings: Mapping[str, Any], pairs: int, device: str) -> str:
    """As the user said, or as suits the corpus and the device."""
    size = size_of(pairs)
    return str(settings.get("preset") or (size.gpu_preset if device == "cuda" else size.cpu_preset))


def choose(settings: Mapping[str, Any], pairs: int, device: str) -> Config:
    """The full configuration; `settings` is what the user said, by section, and wins."""
    size = size_of(pairs)
    name = preset_name(settings, pairs, device)
    start = preset(name)
    suggested = {
        # A tiny model learns little by heart.
        "model": {"dropout": min(size.dropout, 0.1) if name == "tiny" else size.dropout},
        "tokenizer": {"vocab": min(size.vocab, start.tokenizer.vocab)},
        # A narrow model bears longer steps.
        "training": {"schedule": "cosine", "learning_rate": round(1e-3 * math.sqrt(512 / start.model.d_model), 5)},
    }
    return from_tree({**merge(suggested, settings), "preset": name}, "settings")


def tune(settings: Mapping[str, Any], start: Config) -> Config:
    """The configuration of a model that is fine-tuned: its own, a schedule that starts anew, and smaller steps."""
    if "preset" in settings:
        raise ConfigError("preset: expected none beside a model to start from, which has its shape", "leave it out")
    gentle = round(3e-4 * math.sqrt(512 / start.model.d_model), 5)
    # What is beside the matrices begins at nothing, and bears more.
    rate = 10 * gentle if settings.get("training", {}).get("lora") else gentle
    own = {
        "model": to_dict(start.model), "tokenizer": to_dict(start.tokenizer),
        "data": {"both_ways": start.data.both_ways},
        "training": {"schedule": "cosine", "learning_rate": rate, "compile": "off", "patience": 5},
    }  # fmt: skip
    return from_dict(merge(own, settings))


def is_packed(config: TrainingConfig, device: str) -> bool:
    """A CPU gains nothing from batches of one shape, and loses in attention what padding would cost."""
    return config.packing == "on" if config.packing != "auto" else device == "cuda" or config.compile == "on"


def complete(config: TrainingConfig, pairs: int, steps_in_a_pass: Callable[[int], int], device: str) -> TrainingConfig:
    """Fill in the zeros."""
    size = size_of(pairs)
    batch = config.batch_tokens or (size.batch_tokens if device == "cuda" else size.batch_tokens // 4)
    passes = size.passes if device == "cuda" else size.passes // 2
    steps = config.steps or max(500, steps_in_a_pass(batch) * passes)
    # Twenty validations in a run, but in a short one no more than one in 25 steps: each translates the dev set.
    validate = config.validate_every or max(min(steps, FEWEST_STEPS), min(steps // 20, 2000))
    return replace(
        config,
        batch_tokens=batch,
        steps=steps,
        warmup=config.warmup or max(1, min(4000, steps // 10)),
        validate_every=validate,
        checkpoint_every=config.checkpoint_every or validate,
    )
