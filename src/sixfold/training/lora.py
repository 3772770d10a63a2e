"""LoRA: weights are frozen, and a low-rank product that is added to each of them is learnt (Hu et al., 2021)."""

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
    """The parametrization W + up · down. `up` starts as zeros, so that the model starts unchanged."""

    def __init__(self, weight: Float[Tensor, "d_out d_in"], rank: int) -> None:
        super().__init__()
        d_out, d_in = weight.shape
        self.up = nn.Parameter(weight.new_zeros(d_out, rank))
        self.down = nn.Parameter(weight.new_empty(rank, d_in))
        nn.init.normal_(self.down, std=d_in**-0.5)

    def forward(self, weight: Float[Tensor, "d_out d_in"]) -> Float[Tensor, "d_out d_in"]:
        return weight + self.up @ self.down


def attach(model: Transformer, rank: int, seed: int) -> None:
    """Add low-rank matrices to every matrix of attention and feed-forward, and freeze all other weights."""
    torch.manual_seed(seed)
    for weight in model.parameters():
        weight.requires_grad_(False)
    for part in model.modules():
        if isinstance(part, (Attention, FeedForward)):
            for linear in part.children():
                if isinstance(linear, nn.Linear):
                    parametrize.register_parametrization(linear, "weight", LowRank(linear.weight, rank))


def merge(model: Transformer, learned: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return all weights under their names in the model, with the `learned` products added."""
    merged = {}
    for name, weight in model.named_parameters():
        if name.endswith(ORIGINAL):
            prefix = name.removesuffix(ORIGINAL)
            merged[f"{prefix}weight"] = weight.detach() + learned[prefix + UP] @ learned[prefix + DOWN]
        elif not name.endswith((UP, DOWN)):
            merged[name] = learned.get(name, weight.detach())
    return merged
