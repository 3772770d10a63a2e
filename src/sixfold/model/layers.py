"""Sublayers and layers: attention and feed-forward, each with its residual connection and norm (paper §3.1, §3.3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from sixfold.config import ModelConfig
from sixfold.model.attention import Attention, KeyValueCache, Mask, Memory
from sixfold.model.positions import Rotation

Activations = Float[Tensor, "rows length d_model"]


class LayerNorm(nn.LayerNorm):
    """Autocast computes a norm in float32; handing it on in the type it came in halves the traffic of a bf16 stack."""

    def forward(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows d_model"]:
        return super().forward(x).to(x.dtype)


class RMSNorm(nn.RMSNorm):
    """As LayerNorm, without the mean and the bias. Autocast does not know it, so the type is said here."""

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
    """Self-attention, cross-attention where there is a memory to look at, and feed-forward."""

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
        return Attention(config.d_model, config.heads, config.groups, config.compatibility, config.bias)

    def forward(
        self,
        x: Activations,
        mask: Mask | None,
        causal: bool,
        rotation: Rotation | None = None,
        cache: KeyValueCache | None = None,
        memory: Memory | None = None,
    ) -> Activations:
        x = self.attend(x, mask, causal, rotation, cache)
        if self.cross_attention is not None and self.cross_attention_norm is not None:
            assert memory is not None, "a layer with cross-attention needs a memory"
            look = partial(self.cross_attention.look_at, memory=memory)
            x = self._around(look, self.cross_attention_norm, x)
        return self._around(self.feed_forward, self.feed_forward_norm, x)

    def attend(
        self,
        x: Activations,
        mask: Mask | None,
        causal: bool,
        rotation: Rotation | None = None,
        cache: KeyValueCache | None = None,
    ) -> Activations:
        """The first sublayer alone."""
        attend = partial(self.self_attention, mask=mask, causal=causal, rotation=rotation, cache=cache)
        return self._around(attend, self.self_attention_norm, x)

    def looks(
        self, x: Activations, memory: Memory, rotation: Rotation | None
    ) -> Float[Tensor, "rows heads length keys"]:
        """What the cross-attention of this layer looks at, given what comes into the layer."""
        assert self.cross_attention is not None
        assert self.cross_attention_norm is not None
        x = self.attend(x, None, True, rotation)
        return self.cross_attention.weights(x if self.post_norm else self.cross_attention_norm(x), memory)

    def _around(self, sublayer: Callable[[Tensor], Tensor], norm: nn.Module, x: Activations) -> Activations:
        """LayerNorm(x + Sublayer(x)) as in the paper, or x + Sublayer(LayerNorm(x))."""
        return self.add(x, sublayer(x if self.post_norm else norm(x)), norm)

    def add(self, x: Activations, y: Activations, norm: nn.Module) -> Activations:
        """The residual connection, with the norm that may follow it."""
        x = x + self.dropout(y)
        return norm(x) if self.post_norm else x

    def extra_repr(self) -> str:
        return "post-norm" if self.post_norm else "pre-norm"
