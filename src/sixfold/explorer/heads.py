"""Attention heads by name, and a copy of a model in which some of them are switched off."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

from sixfold.config import ModelConfig
from sixfold.errors import RequestError
from sixfold.modelfile import ModelFile
from sixfold.tensorfile import Tensor
from sixfold.weights import canonical, depth, has_cross_attention

Kind = Literal["encoder", "decoder", "cross"]
MODULE_PATHS: dict[Kind, str] = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "cross": "decoder.layers.{}.cross_attention",
}


class Head(NamedTuple):
    """One attention head. Layers and heads are counted from 0, as in the names of the weights."""

    kind: Kind
    layer: int
    head: int

    @classmethod
    def parse(cls, name: str) -> Head:
        """Return the head of this name: "cross.1.3" is head 3 of the cross-attention of layer 1."""
        prefix, *numbers = name.split(".")
        if prefix not in get_args(Kind) or len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
            raise RequestError(f"head: expected a name such as encoder.0.3, decoder.0.3 or cross.1.3; got {name!r:.60}")
        kind: Kind = next(kind for kind in MODULE_PATHS if kind == prefix)
        return cls(kind, int(numbers[0]), int(numbers[1]))

    @property
    def module_path(self) -> str:
        """The attention module that the head is in, as in the names of weights and of the arrays of a trace."""
        return MODULE_PATHS[self.kind].format(self.layer)

    def __str__(self) -> str:
        return f"{self.kind}.{self.layer}.{self.head}"


def kinds_of(config: ModelConfig) -> dict[Kind, int]:
    """Return the kinds of attention that a model has, each with its number of layers."""
    layers: dict[Kind, int] = {}
    for stack in config.stacks:
        layers["encoder" if stack == "encoder" else "decoder"] = depth(config, stack)
        if has_cross_attention(config, stack):
            layers["cross"] = depth(config, stack)
    return layers


def check_head(config: ModelConfig, head: Head) -> None:
    """Raise a RequestError if the model does not have this head."""
    kinds = kinds_of(config)
    if head.kind not in kinds:
        raise RequestError(f"head: expected {', '.join(kinds)} in a model of the kind {config.kind}; got {head.kind}")
    for name, number, count in (("layer", head.layer, kinds[head.kind]), ("head", head.head, config.heads)):
        if not 0 <= number < count:
            raise RequestError(f"{name}: expected 0 to {count - 1}; got {number}")


def ablate_heads(model: ModelFile, heads: Iterable[Head]) -> ModelFile:
    """Return the model with these heads switched off: their columns of W_O are zero.

    The result is a model like any other, so every forward pass and every engine leaves out the same heads. Where
    layers share their weights, a head is switched off in all of them.
    """
    config, tensors = model.config.model, dict(model.tensors)
    for head in heads:
        check_head(config, head)
        name = canonical(config, f"{head.module_path}.output.weight")
        stored = tensors[name].data.copy()
        stored[:, head.head * config.d_head : (head.head + 1) * config.d_head] = 0
        tensors[name] = Tensor(tensors[name].dtype, stored)
    return replace(model, tensors=tensors, checksum="")
