"""The logit lens: what a decoder would write if it stopped after each layer, from the residual stream at that point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from sixfold.config import ModelConfig
from sixfold.errors import RequestError
from sixfold.explorer.forward import Array, Forward, softmax
from sixfold.explorer.pieces import piece_text
from sixfold.explorer.trace import Trace


@dataclass(frozen=True)
class Lens:
    """The predictions after the embedding and after each layer; the last are those of the model itself."""

    layers: list[str]  # "embedding", "layer 0", …
    likeliest: Int[Array, "layers target"]  # the id of the likeliest next piece
    probabilities: Float[Array, "layers target"]  # of the likeliest piece
    ranks: Int[Array, "layers target"]  # of the piece that follows; 0 is the likeliest
    following: Float[Array, "layers target"]  # the probability of the piece that follows
    texts: list[list[str]]  # of the likeliest pieces
    note: str  # what was applied to the residual stream

    def to_dict(self) -> dict[str, Any]:
        """Return what the HTTP interface sends."""
        return {
            "layers": self.layers, "likeliest": self.likeliest.tolist(), "texts": self.texts, "note": self.note,
            "probabilities": self.probabilities.tolist(), "ranks": self.ranks.tolist(),
            "following": self.following.tolist(),
        }  # fmt: skip


def lens(trace: Trace) -> Lens:
    """Return the predictions after each layer of the decoder, at each position of a trace."""
    if trace.predicted is None:
        raise RequestError(
            f"lens: expected a model with a decoder; got one of the kind {trace.config.kind!r}",
            "the views attention, similarity and walk show an encoder",
        )
    following = np.array(trace.predicted.ids)
    likeliest, probabilities, ranks, shares = [], [], [], []
    for logits in layer_logits(trace):
        of_pieces = softmax(logits)
        best = logits.argmax(-1)
        position = np.arange(len(logits))
        likeliest.append(best)
        probabilities.append(of_pieces[position, best])
        ranks.append((logits > logits[position, following, None]).sum(-1))
        shares.append(of_pieces[position, following])
    texts = [[piece_text(trace.target_tokenizer, int(token)) for token in row] for row in likeliest]
    names = ["embedding", *(f"layer {layer}" for layer in range(trace.kinds["decoder"]))]
    return Lens(
        names, np.stack(likeliest), np.stack(probabilities), np.stack(ranks), np.stack(shares), texts,
        applied(trace.config),
    )  # fmt: skip


def layer_logits(trace: Trace) -> Iterator[Float[Array, "target vocab"]]:
    """Yield the logits after the embedding and after each layer of the decoder; the last are exactly the model's.

    The residual stream goes through the norm that the model has after its last layer, if it has one, and through its
    output layer, which is what happens to it after the last layer.
    """
    forward = Forward(trace.model)
    forward.weight = cache(trace.model.weight)  # int8 becomes float32 once, not once a layer
    for name in residual_names(trace.config):
        x = trace[name][None]
        forward.output(forward.norm("decoder.norm", x) if trace.config.ends_in_norm else x)
        yield forward.arrays["logits"][0]


def residual_names(config: ModelConfig) -> list[str]:
    """Return the arrays of a trace that hold the decoder's residual stream: after the embedding, and after each layer.

    In a post-norm model a layer ends in a norm, and its result is what the next layer reads.
    """
    last = "feed_forward.residual" if config.norm_position == "pre" else "feed_forward_norm"
    embedding = "decoder.embedding.norm" if config.embedding_norm else "decoder.embedding.sum"
    return [embedding, *(f"decoder.layers.{layer}.{last}" for layer in range(config.decoder_layers))]


def applied(config: ModelConfig) -> str:
    """Return what the lens does with the residual stream, in one sentence for the reader of a picture."""
    if config.norm_position == "pre":
        return "Each row: the final norm and the output projection, applied to the residual stream after that layer."
    if config.ends_in_norm:
        return "Each row: the final norm and the output projection, applied to what the layer's own norm returns."
    return "Each row: the output projection alone, because each layer of this post-norm model ends in its own norm."
