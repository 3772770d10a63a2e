"""Sublayers and layers: attention and feed-forward, each with its residual connection and norm (paper §3.1, §3.3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
import torch.utils.checkpoint
from jaxtyping import Float
from torch import Tensor, nn

from sixfold.config import ModelConfig
from sixfold.model.attention import (
    Attention,
    AttentionFunction,
    AttentionShape,
    KeyValueCache,
    Mask,
    ProjectedMemory,
)
from sixfold.model.positions import Rotation

Activations = Float[Tensor, "rows length d_model"]


class LayerNorm(nn.LayerNorm):
    """Layer normalisation that returns the type of its input.

    Autocast computes a norm in float32. Returning bfloat16 halves the memory traffic of a bfloat16 stack.
    """

    def forward(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows d_model"]:
        return super().forward(x).to(x.dtype)


class RMSNorm(nn.RMSNorm):
    """Root-mean-square normalisation, without mean and bias.

    Autocast has no rule for it, so it computes in the type of its weight and returns the type of its input.
    """

    def forward(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows d_model"]:
        return super().forward(x.to(self.weight.dtype)).to(x.dtype)


NORMS: dict[str, Callable[[int, float], nn.Module]] = {"layer": LayerNorm, "rms": RMSNorm}

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "swiglu": F.silu,
}
GATED = ("swiglu",)


def make_norm(config: ModelConfig) -> nn.Module:
    """Return a new norm of the kind that the config names."""
    return NORMS[config.norm](config.d_model, config.norm_eps)


class FeedForward(nn.Module):
    """activation(x W1 + b1) W2 + b2 (paper eq. 2), or with a gate: (activation(x Wg) ⊙ x W1) W2."""

    def __init__(self, d_model: int, d_ff: int, activation: str, bias: bool) -> None:
        super().__init__()
        self.activation = activation
        self.gate = nn.Linear(d_model, d_ff, bias) if activation in GATED else None
        self.up = nn.Linear(d_model, d_ff, bias)
        self.down = nn.Linear(d_ff, d_model, bias)

    def forward(self, x: Activations) -> Activations:
        activate = ACTIVATIONS[self.activation]
        hidden = activate(self.up(x)) if self.gate is None else activate(self.gate(x)) * self.up(x)
        return self.down(hidden)

    def extra_repr(self) -> str:
        return self.activation


class Layer(nn.Module):
    """One layer of a stack: self-attention, cross-attention in a decoder with an encoder, and feed-forward."""

    def __init__(self, config: ModelConfig, cross: bool) -> None:
        super().__init__()
        self.post_norm = config.norm_position == "post"
        self.self_attention = self._make_attention(config)
        self.self_attention_norm = make_norm(config)
        self.cross_attention = self._make_attention(config) if cross else None
        self.cross_attention_norm = make_norm(config) if cross else None
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.feed_forward, config.bias)
        self.feed_forward_norm = make_norm(config)
        self.dropout = nn.Dropout(config.dropout)

    @staticmethod
    def _make_attention(config: ModelConfig) -> Attention:
        shape = AttentionShape(config.d_model, config.heads, config.groups, config.d_head)
        return Attention(shape, config.compatibility, (config.has_query_key_value_bias, config.bias))

    def forward(
        self,
        x: Activations,
        mask: Mask | None,
        causal: bool,
        rotation: Rotation | None = None,
        cache: KeyValueCache | None = None,
        memory: ProjectedMemory | None = None,
        attend: AttentionFunction | None = None,
        recompute: bool = False,
    ) -> Activations:
        """Run all sublayers.

        With `recompute`, the activations inside the layer are not stored for the backward pass but computed again.
        """
        if recompute:
            arguments = (x, mask, causal, rotation, cache, memory, attend)
            return torch.utils.checkpoint.checkpoint(self._sublayers, *arguments, use_reentrant=False)
        return self._sublayers(x, mask, causal, rotation, cache, memory, attend)

    def _sublayers(
        self,
        x: Activations,
        mask: Mask | None,
        causal: bool,
        rotation: Rotation | None,
        cache: KeyValueCache | None,
        memory: ProjectedMemory | None,
        attend: AttentionFunction | None,
    ) -> Activations:
        x = self.self_attend(x, mask, causal, rotation, cache, attend)
        if self.cross_attention is not None and self.cross_attention_norm is not None:
            assert memory is not None, "a layer with cross-attention needs a memory"
            cross_attend = partial(self.cross_attention.cross_attend, memory=memory, attend=attend)
            x = self._residual(cross_attend, self.cross_attention_norm, x)
        return self._residual(self.feed_forward, self.feed_forward_norm, x)

    def self_attend(
        self,
        x: Activations,
        mask: Mask | None,
        causal: bool,
        rotation: Rotation | None = None,
        cache: KeyValueCache | None = None,
        attend: AttentionFunction | None = None,
    ) -> Activations:
        """Run the self-attention sublayer alone."""
        sublayer = partial(self.self_attention, mask=mask, causal=causal, rotation=rotation, cache=cache, attend=attend)
        return self._residual(sublayer, self.self_attention_norm, x)

    def cross_attention_weights(
        self, x: Activations, memory: ProjectedMemory
    ) -> Float[Tensor, "rows heads length keys"]:
        """Return the weights of the cross-attention, where `x` is the output of its self-attention sublayer."""
        assert self.cross_attention is not None
        assert self.cross_attention_norm is not None
        query = x if self.post_norm else self.cross_attention_norm(x)
        return self.cross_attention.cross_attention_weights(query, memory)

    def _residual(self, sublayer: Callable[[Tensor], Tensor], norm: nn.Module, x: Activations) -> Activations:
        """Return LayerNorm(x + Sublayer(x)) as in the paper, or x + Sublayer(LayerNorm(x)) with pre-norm."""
        return self.add(x, sublayer(x if self.post_norm else norm(x)), norm)

    def add(self, x: Activations, y: Activations, norm: nn.Module) -> Activations:
        """Add the residual connection. With post-norm, normalise the sum."""
        x = x + self.dropout(y)
        return norm(x) if self.post_norm else x

    def extra_repr(self) -> str:
        return "post-norm" if self.post_norm else "pre-norm"
