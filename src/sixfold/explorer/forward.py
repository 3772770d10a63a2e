"""The forward pass of every model in the family, written out in NumPy with every intermediate kept.

This is for reading, beside "Attention Is All You Need" (AIAYN), and for looking inside a model. It shares no code with
`sixfold.model` and needs no torch; tests hold the two together. Arrays begin with `rows`, one a sentence.
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
X = Float[Array, "rows length d_model"]
Memory = Float[Array, "rows source d_model"]
Heads = Float[Array, "rows heads length d_head"]
Keys = Float[Array, "rows some_heads keys d_head"]
Scores = Float[Array, "rows heads length keys"]
Mask = Bool[Array, "#rows 1 #length keys"]  # True = may look
MemoryMask = Bool[Array, "#rows 1 1 source"]
Trace = dict[str, Array]

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
) -> Trace:
    """Run the model and return every intermediate by name, `logits` and `probabilities` last.

    An encoder-decoder takes both texts, an encoder the source, a decoder the target. `padding` is the source's.
    """
    shape = model.config.model
    for name, tokens, stack in (("source", source, "encoder"), ("target", target, "decoder")):
        if (tokens is not None) != (stack in shape.stacks):
            raise RequestError(f"{name}: expected {'none' if tokens is not None else 'one'} for an {shape.kind} model")
        if tokens is not None:
            check_tokens(name, tokens, shape.vocab)
    for name, other in (("padding", padding), ("types", types)):
        if other is not None and (source is None or other.shape != source.shape):
            expected = "none without a source" if source is None else f"the shape of the source, {source.shape}"
            raise RequestError(f"{name}: expected {expected}; got {other.shape}")
    if source is not None and target is not None and len(source) != len(target):
        raise RequestError(f"target: expected as many rows as the source, {len(source)}; got {len(target)}")
    return Forward(model).run(source, target, padding, types)


def check_tokens(name: str, tokens: Array, vocab: int) -> None:
    if tokens.ndim != 2 or tokens.size == 0 or not np.issubdtype(tokens.dtype, np.integer):
        raise RequestError(f"{name}: expected whole numbers, rows × tokens; got {tokens.dtype} of shape {tokens.shape}")
    if tokens.min() < 0 or tokens.max() >= vocab:
        raise RequestError(f"{name}: expected ids from 0 to {vocab - 1}; got {tokens.min()} to {tokens.max()}")


class Forward:
    """One pass; `trace` fills up in the order of computation."""

    def __init__(self, model: ModelFile) -> None:
        self.config: ModelConfig = model.config.model
        self.rows = model.rows
        self.weight = lru_cache(2)(model.weight)  # int8 becomes float32 each time, and three roles share a matrix
        self.trace: Trace = {}

    def run(self, source: Source | None, target: Target | None, padding: Padding | None, types: Source | None) -> Trace:
        look_at_real_tokens = None if padding is None else padding[:, None, None, :]
        x = memory = None
        if source is not None:
            x = memory = self.stack("encoder", source, look_at_real_tokens, types=types)
        if target is not None:
            x = self.stack("decoder", target, causal_mask(target.shape[1]), memory, look_at_real_tokens)
        assert x is not None
        self.output(x)
        return self.trace

    def keep(self, name: str, array: Array) -> Array:
        self.trace[name] = array
        return array

    # --- AIAYN 3.4 and 3.5: embeddings and positions -----------------------------------------------------------------

    def embedding(self, stack: str, tokens: Tokens, types: Tokens | None) -> X:
        config, at = self.config, f"{stack}.embedding"
        scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        x = self.keep(f"{at}.token", self.rows(f"{at}.token.weight", tokens) * np.float32(scale))
        places = self.positions(tokens.shape[1])
        if config.positions == "sinusoidal":
            table = sinusoids(config.position_offset + places, config.d_model, config.position_layout)
            x = x + self.keep(f"{at}.position", table)
        if config.positions == "learned":
            length = int(places[-1]) + 1
            if length > config.max_length:
                raise RequestError(f"tokens: expected at most {config.max_length} (model.max_length); got {length}")
            table = self.weight(f"{at}.position.weight")[config.position_offset :]
            x = x + self.keep(f"{at}.position", table[places])
        if config.token_types and stack == "encoder":
            kinds = np.zeros_like(tokens) if types is None else types
            x = x + self.keep(f"{at}.segment", self.weight(f"{at}.segment.weight")[kinds])
        self.keep(f"{at}.sum", x)
        return self.norm(f"{at}.norm", x) if config.embedding_norm else x

    def positions(self, length: int) -> Int[Array, "length"]:
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
    ) -> X:
        x = self.embedding(name, tokens, types)
        layers = self.config.encoder_layers if name == "encoder" else self.config.decoder_layers
        for index in range(layers):
            at = f"{name}.layers.{index}"
            attend = partial(self.self_attention, f"{at}.self_attention", mask=mask)
            x = self.sublayer(f"{at}.self_attention", x, attend)
            if memory is not None:
                look = partial(self.cross_attention, f"{at}.cross_attention", memory=memory, mask=memory_mask)
                x = self.sublayer(f"{at}.cross_attention", x, look)
            x = self.sublayer(f"{at}.feed_forward", x, partial(self.feed_forward, f"{at}.feed_forward"))
        if self.config.ends_in_norm:
            x = self.norm(f"{name}.norm", x)
        return self.keep(f"{name}.output", x)

    def sublayer(self, at: str, x: X, compute: Callable[[X], X]) -> X:
        """LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)) in a pre-norm model."""
        if self.config.norm_position == "post":
            return self.norm(f"{at}_norm", self.keep(f"{at}.residual", x + compute(x)))
        return self.keep(f"{at}.residual", x + compute(self.norm(f"{at}_norm", x)))

    def norm(self, at: str, x: X) -> X:
        """LayerNorm: (x - mean) / sqrt(variance + eps) · gain + bias. RMSNorm leaves out the mean and the bias."""
        gain = self.weight(f"{at}.weight")
        if self.config.norm == "rms":
            size = np.sqrt((x**2).mean(-1, keepdims=True) + np.float32(self.config.norm_eps))
            return self.keep(at, x / size * gain)
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(self.config.norm_eps))
        return self.keep(at, centred / deviation * gain + self.weight(f"{at}.bias"))

    # --- AIAYN 3.2: attention ----------------------------------------------------------------------------------------

    def self_attention(self, at: str, x: X, mask: Mask | None) -> X:
        """Queries, keys and values all come from x."""
        query, key, value = self.project(at, x, x)
        if self.config.positions == "rotary":
            query = self.keep(f"{at}.query_rotated", self.rotate(query))
            key = self.keep(f"{at}.key_rotated", self.rotate(key))
        return self.attention(at, query, key, value, mask)

    def cross_attention(self, at: str, x: X, memory: Memory, mask: MemoryMask | None) -> X:
        """Queries come from the decoder, keys and values from the encoder's output."""
        return self.attention(at, *self.project(at, x, memory), mask)

    def project(self, at: str, x: X, memory: Memory) -> tuple[Heads, Keys, Keys]:
        """Q = x W_Q, K = m W_K, V = m W_V, cut into heads (AIAYN 3.2.2)."""
        return self.part(at, "query", x), self.part(at, "key", memory), self.part(at, "value", memory)

    def part(self, at: str, role: str, inputs: X) -> Keys:
        """One of the three, by its rows of the matrix that holds them all."""
        wide, narrow = self.config.heads * self.config.d_head, self.config.groups * self.config.d_head
        rows = {"query": (0, wide), "key": (wide, wide + narrow), "value": (wide + narrow, wide + 2 * narrow)}
        weight = self.weight(f"{at}.query_key_value.weight")
        bias = self.weight(f"{at}.query_key_value.bias") if self.config.bias else np.zeros(len(weight), np.float32)
        start, end = rows[role]
        flat = times(inputs, weight[start:end]) + bias[start:end]
        split = flat.reshape(*flat.shape[:2], -1, self.config.d_head).transpose(0, 2, 1, 3)
        return self.keep(f"{at}.{role}", split)

    def attention(self, at: str, query: Heads, key: Keys, value: Keys, mask: Mask | None) -> X:
        """Attention(Q, K, V) = softmax(Q Kᵀ / sqrt(d_k)) V (AIAYN eq. 1), then concatenation and W_O."""
        group = self.config.heads // self.config.groups  # grouped-query: several heads share keys and values
        key, value = key.repeat(group, axis=1), value.repeat(group, axis=1)
        scores = self.keep(f"{at}.scores", self.compatibility(at, query, key))
        masked = self.keep(f"{at}.masked_scores", scores if mask is None else np.where(mask, scores, -np.inf))
        weights = self.keep(f"{at}.weights", softmax(masked))
        heads = self.keep(f"{at}.heads", weights @ value)
        together = heads.transpose(0, 2, 1, 3).reshape(heads.shape[0], heads.shape[2], -1)
        return self.linear(f"{at}.output", self.keep(f"{at}.concatenation", together), self.config.bias)

    def compatibility(self, at: str, query: Heads, key: Keys) -> Scores:
        """How well each query fits each key."""
        d_k = query.shape[-1]
        if self.config.compatibility == "additive":  # wᵀ tanh(q + k)
            vector = self.weight(f"{at}.compatibility.weight")
            return np.einsum("rhqkd,hd->rhqk", np.tanh(query[:, :, :, None] + key[:, :, None]), vector)
        if self.config.compatibility == "cosine":  # cos(q, k) sqrt(d_k)
            return unit(query) @ unit(key).swapaxes(-1, -2) * np.float32(math.sqrt(d_k))
        return query @ key.swapaxes(-1, -2) / np.float32(math.sqrt(d_k))

    def rotate(self, x: Heads) -> Heads:
        """Turn feature pair i at position p by the angle p / base^(2i/d_head) (RoFormer eq. 15)."""
        angle = angles(self.positions(x.shape[2]), self.config.d_head, self.config.rotary_base)
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        first, second = pair_slices(self.config.d_head, self.config.position_layout)
        turned = np.empty_like(x)
        turned[..., first] = x[..., first] * cos - x[..., second] * sin
        turned[..., second] = x[..., first] * sin + x[..., second] * cos
        return turned

    # --- AIAYN 3.3 and 3.4: feed-forward and output ------------------------------------------------------------------

    def feed_forward(self, at: str, x: X) -> X:
        """FFN(x) = max(0, x W1 + b1) W2 + b2 (AIAYN eq. 2), or with another activation, or with a gate."""
        activate = ACTIVATIONS[self.config.feed_forward]
        hidden = self.linear(f"{at}.up", x, self.config.bias)
        if self.config.feed_forward == "swiglu":
            hidden = activate(self.linear(f"{at}.gate", x, self.config.bias)) * hidden
        else:
            hidden = activate(hidden)
        return self.linear(f"{at}.down", self.keep(f"{at}.hidden", hidden), self.config.bias)

    def output(self, x: X) -> None:
        if self.config.output_transform:
            x = ACTIVATIONS[self.config.feed_forward](self.linear("output.transform", x, bias=True))
            x = self.norm("output.norm", x)
        logits = self.linear("output.projection", x, self.config.output_bias)
        self.keep("logits", logits)
        self.keep("probabilities", softmax(logits))

    def linear(self, at: str, x: Array, bias: bool) -> Array:
        y = times(x, self.weight(f"{at}.weight"))
        return self.keep(at, y + self.weight(f"{at}.bias") if bias else y)


def times(x: Array, weight: Array) -> Array:
    """x Wᵀ, all rows as one matrix: NumPy would take a batch row by row, each time through all of W."""
    return (x.reshape(-1, x.shape[-1]) @ weight.T).reshape(*x.shape[:-1], len(weight))


def sinusoids(positions: Int[Array, "length"], d_model: int, layout: str) -> Float[Array, "length d_model"]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same)."""
    angle = angles(positions, d_model, 10000.0)
    table = np.empty((len(positions), d_model), np.float32)
    first, second = pair_slices(d_model, layout)
    table[:, first], table[:, second] = np.sin(angle), np.cos(angle)
    return table


def angles(positions: Int[Array, "length"], width: int, base: float) -> Float[Array, "length pairs"]:
    return np.asarray(positions[:, None] / base ** (np.arange(0, width, 2) / width))


def pair_slices(width: int, layout: str) -> tuple[slice, slice]:
    """Which features are the first and which the second of each pair."""
    if layout == "interleaved":
        return slice(0, None, 2), slice(1, None, 2)
    return slice(0, width // 2), slice(width // 2, None)


def causal_mask(length: int) -> Bool[Array, "1 1 length length"]:
    """Position i may look at positions up to i (AIAYN 3.2.3)."""
    return np.tri(length, dtype=bool)[None, None]


def softmax(scores: Array) -> Array:
    """Rows sum to 1. A row that may look at nothing is all zeros."""
    highest = scores.max(-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(highest), highest, 0))
    total = powers.sum(-1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def log_softmax(scores: Array) -> Array:
    """The logarithm of `softmax`, where a probability may be too small for a float. Each row needs a finite score."""
    lower = scores - scores.max(-1, keepdims=True)
    return np.asarray(lower - np.log(np.exp(lower).sum(-1, keepdims=True)))


def unit(x: Array) -> Array:
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-6)
