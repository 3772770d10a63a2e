"""LoRA: weights stay as they are, and a product of two thin matrices beside each of them learns (Hu et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from sixfold.model.attention import Attention
from sixfold.model.layers import FeedForward
from sixfold.model.transformer import Transformer

ORIGINAL = "parametrizations.weight.original"
UP, DOWN = "parametrizations.weight.0.up", "parametrizations.weight.0.down"


class LowRank(nn.Module):
    """W + up · down. `up` begins as zeros, so that the model begins as it was."""

    def __init__(self, weight: Float[Tensor, "out inside"], rank: int) -> None:
        super().__init__()
        out, inside = weight.shape
        self.up = nn.Parameter(weight.new_zeros(out, rank))
        self.down = nn.Parameter(weight.new_empty(rank, inside))
        nn.init.normal_(self.down, std=inside**-0.5)

    def forward(self, weight: Float[Tensor, "out inside"]) -> Float[Tensor, "out inside"]:
        return weight + self.up @ self.down


def attach(model: Transformer, rank: int, seed: int) -> None:
    """To every matrix of attention and feed-forward; all else is frozen."""
    torch.manual_seed(seed)
    for weight in model.parameters():
        weight.requires_grad_(False)
    for part in model.modules():
        if isinstance(part, (Attention, FeedForward)):
            for linear in part.children():
                if isinstance(linear, nn.Linear):
                    parametrize.register_parametrization(linear, "weight", LowRank(linear.weight, rank))


def merge(model: Transformer, learned: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """All weights under their plain names, with what was `learned` added in."""
    merged = {}
    for name, weight in model.named_parameters():
        if name.endswith(ORIGINAL):
            place = name.removesuffix(ORIGINAL)
            merged[f"{place}weight"] = weight.detach() + learned[place + UP] @ learned[place + DOWN]
        elif not name.endswith((UP, DOWN)):
            merged[name] = learned.get(name, weight.detach())
    return merged
