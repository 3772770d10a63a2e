"""Attention heads by name, and a model in which some of them are switched off."""

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
PLACES: dict[Kind, str] = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "cross": "decoder.layers.{}.cross_attention",
}


class Head(NamedTuple):
    """One head; layers and heads are counted from 0, as in the names of the weights."""

    kind: Kind
    layer: int
    head: int

    @classmethod
    def parse(cls, name: str) -> Head:
        """From what it is called: cross.1.3 is head 3 of the cross-attention of layer 1."""
        kind, *numbers = name.split(".")
        if kind not in get_args(Kind) or len(numbers) != 2 or not all(each.isdecimal() for each in numbers):
            raise RequestError(f"head: expected a name such as encoder.0.3, decoder.0.3 or cross.1.3; got {name!r:.60}")
        found: Kind = next(each for each in PLACES if each == kind)
        return cls(found, int(numbers[0]), int(numbers[1]))

    @property
    def place(self) -> str:
        """Of its layer's attention, in the names of weights and of what a trace holds."""
        return PLACES[self.kind].format(self.layer)

    def __str__(self) -> str:
        return f"{self.kind}.{self.layer}.{self.head}"


def kinds_of(config: ModelConfig) -> dict[Kind, int]:
    """The kinds of attention that a model has, each with its layers."""
    found: dict[Kind, int] = {}
    for stack in config.stacks:
        found["encoder" if stack == "encoder" else "decoder"] = depth(config, stack)
        if has_cross_attention(config, stack):
            found["cross"] = depth(config, stack)
    return found


def check_head(config: ModelConfig, head: Head) -> None:
    """Complain of one that the model does not have."""
    known = kinds_of(config)
    if head.kind not in known:
        raise RequestError(f"head: expected {', '.join(known)} in a model of the kind {config.kind}; got {head.kind}")
    for name, number, count in (("layer", head.layer, known[head.kind]), ("head", head.head, config.heads)):
        if not 0 <= number < count:
            raise RequestError(f"{name}: expected 0 to {count - 1}; got {number}")


def without(model: ModelFile, heads: Iterable[Head]) -> ModelFile:
    """The same model, but what these heads find is multiplied by 0: their columns of W_O are.

    It is a model like any other, so that every forward pass and every engine leaves the same heads out. Where layers
    share their weights, a head is off in all of them.
    """
    config, tensors = model.config.model, dict(model.tensors)
    for head in heads:
        check_head(config, head)
        name = canonical(config, f"{head.place}.output.weight")
        stored = tensors[name].data.copy()
        stored[:, head.head * config.d_head : (head.head + 1) * config.d_head] = 0
        tensors[name] = Tensor(tensors[name].dtype, stored)
    return replace(model, tensors=tensors, checksum="")
