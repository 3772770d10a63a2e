"""The forward pass of every model of this project, written out in NumPy, with every intermediate array recorded.

Read it beside the paper, "Attention Is All You Need" (AIAYN below): the sections of this file are those of the paper,
and an option of another paper names that paper. Everything that looks inside a model uses this pass.
It shares no code with `sixfold.model` and needs no torch; tests compare the two.

The first axis of every array is `rows`, one row a sentence. Names of recorded arrays begin with the path of their
module, as in the weights: `encoder.layers.0.self_attention.scores`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from jaxtyping import Bool, Float, Int

from sixfold.config import ModelConfig
from sixfold.errors import RequestError
from sixfold.modelfile import ModelFile

Array = np.ndarray
Tokens = Int[Array, "rows length"]
Source = Int[Array, "rows source"]
Target = Int[Array, "rows target"]
Padding = Bool[Array, "rows source"]  # True = a real token
Hidden = Float[Array, "rows length d_model"]
Memory = Float[Array, "rows source d_model"]  # the encoder's output, which the decoder attends to
Queries = Float[Array, "rows heads length d_head"]
Keys = Float[Array, "rows kv_heads keys d_head"]  # and values, of the same shape
Projection = Float[Array, "rows any_heads length d_head"]
Scores = Float[Array, "rows heads length keys"]
Mask = Bool[Array, "#rows 1 #length keys"]  # True = may look
MemoryMask = Bool[Array, "#rows 1 1 source"]
Arrays = dict[str, Array]

_erf = np.vectorize(math.erf, otypes=[np.float32])

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "gelu-tanh": lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    "silu": lambda x: x * (1 + np.tanh(x / 2)) / 2,  # x / (1 + exp(-x)), which would overflow
    "swiglu": lambda x: x * (1 + np.tanh(x / 2)) / 2,
}


def forward(
    model: ModelFile,
    source: Array | None = None,
    target: Array | None = None,
    padding: Array | None = None,
    types: Array | None = None,
) -> Arrays:
    """Run the model and return every intermediate array by name, in the order of computation.

    `logits` and `probabilities` come last. `source` and `target` are token ids, rows × length. An encoder-decoder
    takes both, an encoder only the source, a decoder only the target. `padding` belongs to the source and is True for
    real tokens; `types` are the token types (segments) of BERT. A RequestError says which input does not fit.
    """
    shape = model.config.model
    for name, tokens, stack in (("source", source, "encoder"), ("target", target, "decoder")):
        if (tokens is not None) != (stack in shape.stacks):
            raise RequestError(f"{name}: expected {'none' if tokens is not None else 'one'} for an {shape.kind} model")
        if tokens is not None:
            check_tokens(name, tokens, shape.vocab_read if stack == "encoder" else shape.vocab)
    for name, companion in (("padding", padding), ("types", types)):
        if companion is not None and (source is None or companion.shape != source.shape):
            expected = "none without a source" if source is None else f"the shape of the source, {source.shape}"
            raise RequestError(f"{name}: expected {expected}; got {companion.shape}")
    if source is not None and target is not None and len(source) != len(target):
        raise RequestError(f"target: expected as many rows as the source, {len(source)}; got {len(target)}")
    return Forward(model).run(source, target, padding, types)


def check_tokens(name: str, tokens: Array, vocab: int) -> None:
    """Raise a RequestError unless `tokens` is a matrix of ids of this vocabulary."""
    if tokens.ndim != 2 or tokens.size == 0 or not np.issubdtype(tokens.dtype, np.integer):
        raise RequestError(f"{name}: expected whole numbers, rows × tokens; got {tokens.dtype} of shape {tokens.shape}")
    if tokens.min() < 0 or tokens.max() >= vocab:
        raise RequestError(f"{name}: expected ids from 0 to {vocab - 1}; got {tokens.min()} to {tokens.max()}")


class Forward:
    """One forward pass. `arrays` holds what has been computed, in the order of computation."""

    def __init__(self, model: ModelFile) -> None:
        self.config: ModelConfig = model.config.model
        self.rows = model.rows
        self.weight = lru_cache(2)(model.weight)  # int8 becomes float32 each time, and three roles share a matrix
        self.arrays: Arrays = {}

    def run(
        self, source: Source | None, target: Target | None, padding: Padding | None, types: Source | None
    ) -> Arrays:
        """Run the stacks that the model has, then the output layer (AIAYN figure 1)."""
        source_mask = None if padding is None else padding[:, None, None, :]
        x = memory = None
        if source is not None:
            x = memory = self.stack("encoder", source, source_mask, types=types)
        if target is not None:
            mask = causal_mask(target.shape[1], self.config.sliding_window)
            x = self.stack("decoder", target, mask, memory, source_mask)
        assert x is not None
        self.output(x)
        return self.arrays

    def record(self, name: str, array: Array) -> Array:
        """Store an array under its name and return it."""
        self.arrays[name] = array
        return array

    # --- AIAYN 3.4 and 3.5: embeddings and positional encoding ------------------------------------------------------

    def embedding(self, stack: str, tokens: Tokens, types: Tokens | None) -> Hidden:
        """E[token] · sqrt(d_model) + PE(position); BERT adds a segment embedding and a norm."""
        config, name = self.config, f"{stack}.embedding"
        scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        x = self.record(f"{name}.token", self.rows(f"{name}.token.weight", tokens) * np.float32(scale))
        positions = self.positions(tokens.shape[1])
        if config.positions == "sinusoidal":
            table = sinusoids(
                config.position_offset + positions, config.d_model, config.position_layout, config.position_spacing
            )
            x = x + self.record(f"{name}.position", table)
        if config.positions == "learned":
            length = int(positions[-1]) + 1
            if length > config.max_length:
                raise RequestError(f"tokens: expected at most {config.max_length} (model.max_length); got {length}")
            table = self.weight(f"{name}.position.weight")[config.position_offset :]
            x = x + self.record(f"{name}.position", table[positions])
        if config.token_types and stack == "encoder":
            segments = np.zeros_like(tokens) if types is None else types
            x = x + self.record(f"{name}.segment", self.weight(f"{name}.segment.weight")[segments])
        self.record(f"{name}.sum", x)
        return self.norm(f"{name}.norm", x) if config.embedding_norm else x

    def positions(self, length: int) -> Int[Array, "length"]:
        """Return the positions of the tokens of this pass, counted from 0."""
        return np.arange(length)

    # --- AIAYN 3.1: encoder and decoder stacks -----------------------------------------------------------------------

    def stack(
        self,
        name: str,
        tokens: Tokens,
        mask: Mask | None,
        memory: Memory | None = None,
        memory_mask: MemoryMask | None = None,
        types: Tokens | None = None,
    ) -> Hidden:
        """Run the stack called "encoder" or "decoder". Only a decoder that is given `memory` has cross-attention."""
        x = self.embedding(name, tokens, types)
        layers = self.config.encoder_layers if name == "encoder" else self.config.decoder_layers
        for index in range(layers):
            layer = f"{name}.layers.{index}"
            self_attention = partial(self.self_attention, f"{layer}.self_attention", mask=mask)
            x = self.sublayer(f"{layer}.self_attention", x, self_attention)
            if memory is not None:
                cross_attention = partial(
                    self.cross_attention, f"{layer}.cross_attention", memory=memory, mask=memory_mask
                )
                x = self.sublayer(f"{layer}.cross_attention", x, cross_attention)
            x = self.sublayer(f"{layer}.feed_forward", x, partial(self.feed_forward, f"{layer}.feed_forward"))
        if self.config.ends_in_norm:
            x = self.norm(f"{name}.norm", x)
        return self.record(f"{name}.output", x)

    def sublayer(self, name: str, x: Hidden, function: Callable[[Hidden], Hidden]) -> Hidden:
        """LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)) in a pre-norm model."""
        if self.config.norm_position == "post":
            return self.norm(f"{name}_norm", self.record(f"{name}.residual", x + function(x)))
        return self.record(f"{name}.residual", x + function(self.norm(f"{name}_norm", x)))

    def norm(self, name: str, x: Hidden) -> Hidden:
        """LayerNorm: (x - mean) / sqrt(variance + eps) · gain + bias. RMSNorm has neither the mean nor the bias."""
        gain = self.weight(f"{name}.weight")
        if self.config.norm == "rms":
            root_mean_square = np.sqrt((x**2).mean(-1, keepdims=True) + np.float32(self.config.norm_eps))
            return self.record(name, x / root_mean_square * gain)
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(self.config.norm_eps))
        return self.record(name, centred / deviation * gain + self.weight(f"{name}.bias"))

    # --- AIAYN 3.2: attention ----------------------------------------------------------------------------------------

    def self_attention(self, name: str, x: Hidden, mask: Mask | None) -> Hidden:
        """Attention whose queries, keys and values all come from x."""
        query, key, value = self.project_all(name, x, x)
        if self.config.positions == "rotary":
            query = self.record(f"{name}.query_rotated", self.rotate(query))
            key = self.record(f"{name}.key_rotated", self.rotate(key))
        return self.attention(name, query, key, value, mask)

    def cross_attention(self, name: str, x: Hidden, memory: Memory, mask: MemoryMask | None) -> Hidden:
        """Attention whose queries come from the decoder, and keys and values from the encoder's output."""
        return self.attention(name, *self.project_all(name, x, memory), mask)

    def project_all(self, name: str, x: Hidden, memory: Memory) -> tuple[Queries, Keys, Keys]:
        """Q = x W_Q, K = m W_K, V = m W_V, each split into heads (AIAYN 3.2.2)."""
        return self.project(name, "query", x), self.project(name, "key", memory), self.project(name, "value", memory)

    def project(self, name: str, role: str, x: Hidden) -> Projection:
        """Q, K or V, by `role`. The rows of one stored matrix are those of W_Q, then W_K, then W_V.

        rows × length × (heads · d_head)  →  rows × heads × length × d_head
        """
        width, kv_width = self.config.heads * self.config.d_head, self.config.groups * self.config.d_head
        ranges = {
            "query": (0, width),
            "key": (width, width + kv_width),
            "value": (width + kv_width, width + 2 * kv_width),
        }
        weight = self.weight(f"{name}.query_key_value.weight")
        has_bias = self.config.has_query_key_value_bias
        bias = self.weight(f"{name}.query_key_value.bias") if has_bias else np.zeros(len(weight), np.float32)
        start, end = ranges[role]
        projected = matmul_transposed(x, weight[start:end]) + bias[start:end]
        split = projected.reshape(*projected.shape[:2], -1, self.config.d_head).transpose(0, 2, 1, 3)
        return self.record(f"{name}.{role}", split)

    def attention(self, name: str, query: Queries, key: Keys, value: Keys, mask: Mask | None) -> Hidden:
        """Attention(Q, K, V) = softmax(Q Kᵀ / sqrt(d_k)) V (AIAYN eq. 1), then Concat(head_1, …, head_h) W_O."""
        group = self.config.heads // self.config.groups  # grouped-query: several heads share keys and values
        key, value = key.repeat(group, axis=1), value.repeat(group, axis=1)
        scores = self.record(f"{name}.scores", self.compatibility(name, query, key))
        masked = self.record(f"{name}.masked_scores", scores if mask is None else np.where(mask, scores, -np.inf))
        weights = self.record(f"{name}.weights", softmax(masked))
        heads = self.record(f"{name}.heads", weights @ value)
        # rows × heads × length × d_head  →  rows × length × (heads · d_head)
        concatenation = heads.transpose(0, 2, 1, 3).reshape(heads.shape[0], heads.shape[2], -1)
        return self.linear(f"{name}.output", self.record(f"{name}.concatenation", concatenation), self.config.bias)

    def compatibility(self, name: str, query: Queries, key: Keys) -> Scores:
        """Return the score of every query with every key: Q Kᵀ / sqrt(d_k), or another compatibility function."""
        d_k = query.shape[-1]
        if self.config.compatibility == "additive":  # wᵀ tanh(q + k)
            vector = self.weight(f"{name}.compatibility.weight")
            return np.einsum("rhqkd,hd->rhqk", np.tanh(query[:, :, :, None] + key[:, :, None]), vector)
        if self.config.compatibility == "cosine":  # cos(q, k) sqrt(d_k)
            return normalise_vectors(query) @ normalise_vectors(key).swapaxes(-1, -2) * np.float32(math.sqrt(d_k))
        return query @ key.swapaxes(-1, -2) / np.float32(math.sqrt(d_k))

    def rotate(self, x: Queries) -> Queries:
        """Rotate feature pair i at position p by the angle p / base^(2i/d_head) (RoFormer eq. 15)."""
        angle = rotary_angles(self.config, self.positions(x.shape[2]))
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        first, second = pair_slices(self.config.d_head, self.config.position_layout)
        rotated = np.empty_like(x)
        rotated[..., first] = x[..., first] * cos - x[..., second] * sin
        rotated[..., second] = x[..., first] * sin + x[..., second] * cos
        return rotated

    # --- AIAYN 3.3 and 3.4: feed-forward network and output ----------------------------------------------------------

    def feed_forward(self, name: str, x: Hidden) -> Hidden:
        """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2 (AIAYN eq. 2), or with another activation, or with a gate (SwiGLU)."""
        activation = ACTIVATIONS[self.config.feed_forward]
        hidden = self.linear(f"{name}.up", x, self.config.bias)
        if self.config.feed_forward == "swiglu":
            hidden = activation(self.linear(f"{name}.gate", x, self.config.bias)) * hidden
        else:
            hidden = activation(hidden)
        return self.linear(f"{name}.down", self.record(f"{name}.hidden", hidden), self.config.bias)

    def output(self, x: Hidden) -> None:
        """Record the logits of every piece of the vocabulary, and their softmax. BERT transforms x first."""
        if self.config.output_transform:
            x = ACTIVATIONS[self.config.feed_forward](self.linear("output.transform", x, bias=True))
            x = self.norm("output.norm", x)
        logits = self.linear("output.projection", x, self.config.output_bias)
        self.record("logits", logits)
        self.record("probabilities", softmax(logits))

    def linear(self, name: str, x: Array, bias: bool) -> Array:
        """x Wᵀ + b; weights are stored as outputs × inputs."""
        y = matmul_transposed(x, self.weight(f"{name}.weight"))
        return self.record(name, y + self.weight(f"{name}.bias") if bias else y)


def matmul_transposed(x: Array, weight: Array) -> Array:
    """x Wᵀ, with all rows as one matrix: NumPy would take a batch row by row, each time through all of W."""
    return (x.reshape(-1, x.shape[-1]) @ weight.T).reshape(*x.shape[:-1], len(weight))


def sinusoids(
    positions: Int[Array, "length"], d_model: int, layout: str, spacing: str = "open"
) -> Float[Array, "length d_model"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)) (AIAYN 3.5)."""
    angle = angles(positions, d_model, 10000.0, spacing)
    table = np.empty((len(positions), d_model), np.float32)
    first, second = pair_slices(d_model, layout)
    table[:, first], table[:, second] = np.sin(angle), np.cos(angle)
    return table


def angles(
    positions: Int[Array, "length"] | Float[Array, "length"], width: int, base: float, spacing: str = "open"
) -> Float[Array, "length pairs"]:
    """pos / base^(2i/width), for every position and pair i of features; if closed, pos / base^(i/(width/2 - 1))."""
    steps = width // 2 if spacing == "open" else max(1, width // 2 - 1)
    return np.asarray(positions[:, None] / base ** (np.arange(width // 2) / steps))


def rotary_angles(config: ModelConfig, positions: Int[Array, "length"]) -> Float[Array, "length pairs"]:
    """pos / base^(2i/d_head), scaled for texts that are longer than those a model was trained on.

    "linear" divides all angles by the factor (position interpolation). "llama3" divides those of pairs that turn less
    than `rotary_low` times in the original length, and leaves those that turn more than `rotary_high` times.
    """
    angle = angles(positions, config.d_head, config.rotary_base)
    if config.rotary_scaling == "none":
        return angle
    if config.rotary_scaling == "linear":
        return angle / config.rotary_factor
    turns = config.rotary_original_length * angles(np.ones(1), config.d_head, config.rotary_base)[0] / (2 * math.pi)
    share = np.clip((turns - config.rotary_low) / (config.rotary_high - config.rotary_low), 0, 1)
    return np.asarray(angle * (share + (1 - share) / config.rotary_factor))


def pair_slices(width: int, layout: str) -> tuple[slice, slice]:
    """Return which features are the first and which the second of each pair.

    Width 6, "interleaved": 0, 2, 4 and 1, 3, 5; "halves": 0, 1, 2 and 3, 4, 5.
    """
    if layout == "interleaved":
        return slice(0, None, 2), slice(1, None, 2)
    return slice(0, width // 2), slice(width // 2, None)


def position_table(model: ModelFile, count: int) -> Array:
    """Return what the forward pass uses for the first `count` positions, a row each.

    Of sinusoidal and learned positions these are the vectors that are added to the embeddings; of rotary positions
    the cosines and then the sines of the angles.
    """
    config = model.config.model
    if config.positions == "sinusoidal":
        return sinusoids(
            config.position_offset + np.arange(count), config.d_model, config.position_layout, config.position_spacing
        )
    if config.positions == "learned":
        rows = model.weight(f"{config.stacks[0]}.embedding.position.weight")[config.position_offset :]
        return np.ascontiguousarray(rows[:count])
    if config.positions == "rotary":
        angle = rotary_angles(config, np.arange(count))
        return np.concatenate([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    raise RequestError("positions: expected a model with positions; this one has none")


def causal_mask(length: int, window: int = 0) -> Bool[Array, "1 1 length length"]:
    """Return the mask by which position i may look at positions up to i (AIAYN 3.2.3).

    With a window, these are the last `window` positions (Longformer 3.1; Mistral 7B 2).
    """
    mask = np.tri(length, dtype=bool)
    return (mask & ~np.tri(length, k=-window, dtype=bool) if window else mask)[None, None]


def softmax(scores: Array) -> Array:
    """Return probabilities: rows sum to 1. A row of which every score is masked (-inf) is all zeros."""
    highest = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(highest), highest, 0))
    total = powers.sum(-1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def log_softmax(scores: Array) -> Array:
    """Return the logarithm of `softmax`, also where the probability underflows. Each row needs a finite score."""
    shifted = scores - scores.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))


def normalise_vectors(x: Array) -> Array:
    """Divide each vector of the last axis by its length."""
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-6)
