"""The name and shape of every weight of a model, from its config alone and without a tensor library."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sixfold.config import ModelConfig
from sixfold.errors import ModelFileError

Shape = tuple[int, ...]


def shapes(config: ModelConfig) -> dict[str, Shape]:
    """Return the shapes of the weights in a model file of this config; shared weights appear once."""
    result: dict[str, Shape] = {}
    for stack in config.stacks:
        result.update(_embedding(config, stack))
        for index in range(depth(config, stack)):
            for name, shape in _layer(config, cross=has_cross_attention(config, stack)):
                result[f"{stack}.layers.{index}.{name}"] = shape
        if config.ends_in_norm:
            result.update(_norm(config, f"{stack}.norm"))
    result.update(_output(config))
    return {name: shape for name, shape in result.items() if canonical(config, name) == name}


def canonical(config: ModelConfig, name: str) -> str:
    """Return the name that a weight is stored under; a shared weight has several names."""
    if name == "output.projection.weight" and config.tie_output:
        name = f"{config.stacks[-1]}.embedding.token.weight"
    if name == "decoder.embedding.token.weight" and config.kind == "encoder-decoder" and config.share_embeddings:
        name = "encoder.embedding.token.weight"
    if config.share_layers:
        name = re.sub(r"\.layers\.\d+\.", ".layers.0.", name)
    return name


def check_weights(where: str, expected: Mapping[str, tuple[int, ...]], got: Mapping[str, tuple[int, ...]]) -> None:
    """Raise one ModelFileError that names every weight that is missing, unexpected or of another shape."""
    faults = [f"missing {name}" for name in expected if name not in got]
    faults += [f"unexpected {name}" for name in got if name not in expected]
    faults += [
        f"{name} is {tuple(got[name])}, expected {expected[name]}"
        for name in expected
        if name in got and tuple(got[name]) != tuple(expected[name])
    ]
    if faults:
        raise ModelFileError(f"{where}: the weights do not fit the config: {'; '.join(faults)}")


def depth(config: ModelConfig, stack: str) -> int:
    """Return the number of layers of a stack."""
    return config.encoder_layers if stack == "encoder" else config.decoder_layers


def has_cross_attention(config: ModelConfig, stack: str) -> bool:
    """Return whether the layers of a stack have cross-attention."""
    return config.kind == "encoder-decoder" and stack == "decoder"


def has_token_types(config: ModelConfig, stack: str) -> bool:
    """Return whether a stack has an embedding of token types, which only encoders can have."""
    return config.token_types > 0 and stack == "encoder"


def _embedding(config: ModelConfig, stack: str) -> Iterator[tuple[str, Shape]]:
    prefix = f"{stack}.embedding"
    vocab = config.vocab_read if stack == "encoder" else config.vocab
    yield f"{prefix}.token.weight", (vocab, config.d_model)
    if config.positions == "learned":
        yield f"{prefix}.position.weight", (config.position_offset + config.max_length, config.d_model)
    if has_token_types(config, stack):
        yield f"{prefix}.segment.weight", (config.token_types, config.d_model)
    if config.embedding_norm:
        yield from _norm(config, f"{prefix}.norm")


def _layer(config: ModelConfig, cross: bool) -> Iterator[tuple[str, Shape]]:
    for attention in ("self_attention", "cross_attention") if cross else ("self_attention",):
        yield from _attention(config, attention)
        yield from _norm(config, f"{attention}_norm")
    ups = ("gate", "up") if config.feed_forward == "swiglu" else ("up",)
    for up in ups:
        yield from _linear(f"feed_forward.{up}", config.d_model, config.d_ff, config.bias)
    yield from _linear("feed_forward.down", config.d_ff, config.d_model, config.bias)
    yield from _norm(config, "feed_forward_norm")


def _attention(config: ModelConfig, name: str) -> Iterator[tuple[str, Shape]]:
    width = (config.heads + 2 * config.groups) * config.d_head
    yield from _linear(f"{name}.query_key_value", config.d_model, width, config.has_query_key_value_bias)
    if config.compatibility == "additive":
        yield f"{name}.compatibility.weight", (config.heads, config.d_head)
    yield from _linear(f"{name}.output", config.heads * config.d_head, config.d_model, config.bias)


def _output(config: ModelConfig) -> Iterator[tuple[str, Shape]]:
    if config.output_transform:
        yield from _linear("output.transform", config.d_model, config.d_model, bias=True)
        yield from _norm(config, "output.norm")
    yield from _linear("output.projection", config.d_model, config.vocab, config.output_bias)


def _linear(name: str, inputs: int, outputs: int, bias: bool) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (outputs, inputs)
    if bias:
        yield f"{name}.bias", (outputs,)


def _norm(config: ModelConfig, name: str) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", (config.d_model,)
    if config.norm == "layer":
        yield f"{name}.bias", (config.d_model,)


PARTS = ("embedding", "attention", "feed-forward", "norm", "output")


def part_of(name: str) -> str:
    """Return the part of the model, as the paper divides it, that a weight belongs to."""
    if "norm." in name:
        return "norm"
    if "attention." in name:
        return "attention"
    if "feed_forward." in name:
        return "feed-forward"
    return "embedding" if ".embedding." in name else "output"


def counts(config: ModelConfig) -> dict[str, int]:
    """Return the number of parameters of each part."""
    totals = dict.fromkeys(PARTS, 0)
    for name, shape in shapes(config).items():
        totals[part_of(name)] += math.prod(shape)
    return totals


@dataclass(frozen=True)
class Cost:
    """The floating-point operations for one token in a forward pass."""

    encoder: int
    decoder: int
    output: int

    @property
    def total(self) -> int:
        return self.encoder + self.decoder + self.output


def cost(config: ModelConfig, length: int) -> Cost:
    """Return the cost of one token in a sequence of `length` tokens.

    A multiply-add counts as two operations. Attention covers all `length` keys, and half of them if it is causal; with
    a sliding window, those of the window.
    """
    per_stack = {}
    for stack in config.stacks:
        cross = has_cross_attention(config, stack)
        weights = sum(math.prod(s) for name, s in _layer(config, cross) if name.endswith("weight") and len(s) == 2)
        keys = causal_keys(config, length) if stack == "decoder" else length
        keys += length if cross else 0
        per_stack[stack] = round(depth(config, stack) * (2 * weights + 4 * keys * config.heads * config.d_head))
    head = sum(math.prod(s) for name, s in _output(config) if len(s) == 2)
    return Cost(per_stack.get("encoder", 0), per_stack.get("decoder", 0), 2 * head)


def causal_keys(config: ModelConfig, length: int) -> float:
    """Return how many keys a position attends to in the mean of a sequence of `length` tokens."""
    window = config.sliding_window
    if not window or length <= window:
        return length / 2
    return (window * window / 2 + (length - window) * window) / length
