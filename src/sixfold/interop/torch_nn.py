"""Export of weights to torch.nn.Transformer, which has the same layout under other names."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

# Our names: torch's names, inside a layer. torch.nn numbers its norms in the order of use.
ENCODER_LAYER = {
    "self_attention.query_key_value.weight": "self_attn.in_proj_weight",
    "self_attention.query_key_value.bias": "self_attn.in_proj_bias",
    "self_attention.output": "self_attn.out_proj",
    "self_attention_norm": "norm1",
    "feed_forward.up": "linear1",
    "feed_forward.down": "linear2",
    "feed_forward_norm": "norm2",
}
DECODER_LAYER = ENCODER_LAYER | {
    "cross_attention.query_key_value.weight": "multihead_attn.in_proj_weight",
    "cross_attention.query_key_value.bias": "multihead_attn.in_proj_bias",
    "cross_attention.output": "multihead_attn.out_proj",
    "cross_attention_norm": "norm2",
    "feed_forward_norm": "norm3",
}


def to_torch_nn(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights of an encoder-decoder under the names of torch.nn, except embeddings and output projection."""
    return {_their_name(name): array for name, array in weights.items() if re.match(r"\w+\.(layers|norm)\.", name)}


def _their_name(name: str) -> str:
    stack, kind, *rest = name.split(".")
    if kind == "norm":
        return name
    number, inner = rest[0], ".".join(rest[1:])
    table = DECODER_LAYER if stack == "decoder" else ENCODER_LAYER
    module, _, leaf = inner.rpartition(".")
    theirs = table[inner] if inner in table else f"{table[module]}.{leaf}"
    return f"{stack}.layers.{number}.{theirs}"
