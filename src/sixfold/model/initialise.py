"""The initial values of all weights, for every kind of module."""

from __future__ import annotations

import math

import torch
from torch import nn

from sixfold.model.attention import Additive, Attention
from sixfold.model.positions import LearnedPositions


def initialise(model: nn.Module, seed: int) -> None:
    """Set every weight at random from a seed. The values are the same on every device.

    Linear layers preserve the variance of their input (Glorot & Bengio). The query, key and value projections count
    as three matrices. Embeddings have standard deviation d_model^-0.5, so that a vector times sqrt(d_model) has
    variance 1, and the logits of a tied output projection start near 0.
    """
    random = torch.Generator().manual_seed(seed)
    fused = {module.query_key_value for module in model.modules() if isinstance(module, Attention)}
    embeddings = {module for module in model.modules() if isinstance(module, nn.Embedding)}
    tied = {id(module.weight) for module in embeddings}
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, Attention):
                for block in module.query_key_value.weight.split(module.d_head * module.kv_heads):
                    _glorot(block, module.output.in_features, random)
            elif isinstance(module, nn.Linear) and module not in fused and id(module.weight) not in tied:
                _glorot(module.weight, module.out_features, random)
            elif isinstance(module, LearnedPositions):
                _normal(module.weight, 0.02, random)
            elif isinstance(module, nn.Embedding):
                _normal(module.weight, module.embedding_dim**-0.5, random)
            elif isinstance(module, Additive):
                _normal(module.weight, module.weight.size(-1) ** -0.5, random)
            elif isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
                module.weight.fill_(1.0)
            if isinstance(module, (nn.Linear, nn.LayerNorm)) and module.bias is not None:
                module.bias.zero_()


def _glorot(weight: torch.Tensor, outputs: int, random: torch.Generator) -> None:
    bound = math.sqrt(6 / (weight.size(1) + outputs))
    weight.copy_(torch.empty(weight.shape).uniform_(-bound, bound, generator=random))


def _normal(weight: torch.Tensor, deviation: float, random: torch.Generator) -> None:
    weight.copy_(torch.empty(weight.shape).normal_(0.0, deviation, generator=random))
