"""Multi-head attention: each query gets a mean of the values, weighted by how well the keys fit it (paper §3.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sixfold.config import Compatibility
from sixfold.model.positions import Rotation, rotate

Heads = Float[Tensor, "rows heads length d_head"]
Keys = Float[Tensor, "rows kv_heads keys d_head"]
Values = Float[Tensor, "rows kv_heads keys d_value"]  # d_value is d_head, except in `cross_attention_weights`
Mixed = Float[Tensor, "rows heads length d_value"]
KeyValue = tuple[Keys, Values]
Mask = Bool[Tensor, "#rows 1 #length keys"]  # True: the query may attend to the key
MemoryMask = Bool[Tensor, "#rows 1 #queries keys"]  # a Mask whose queries come from the other stack
# softmax(score(query, key)) value, given a mask and whether it is causal; every compatibility below is one.
AttentionFunction = Callable[[Heads, Keys, Values, Mask | None, bool], Mixed]


class ProjectedMemory(NamedTuple):
    """The encoder's output as the keys and values of one cross-attention, and a mask over its positions."""

    key: Keys
    value: Values
    mask: MemoryMask | None


@runtime_checkable
class KeyValueCache(Protocol):
    """The keys and values of earlier positions of one layer. The caller owns it; the model stores nothing."""

    def extend(self, key: Tensor, value: Tensor) -> KeyValue:
        """Store the keys and values of new positions. Return those of all positions that may be attended to."""
        ...


class ScaledDot(nn.Module):
    """softmax(Q Kᵀ / sqrt(d_k)) V (paper eq. 1)."""

    def forward(self, query: Heads, key: Keys, value: Values, mask: Mask | None, causal: bool) -> Mixed:
        return _dot(query, key, value, mask, causal, 1 / math.sqrt(query.size(-1)))


class Cosine(nn.Module):
    """Dot products of vectors of length 1: softmax(cos(q, k) · sqrt(d_k)) V. The scores have variance 1, too."""

    def forward(self, query: Heads, key: Keys, value: Values, mask: Mask | None, causal: bool) -> Mixed:
        query, key = F.normalize(query, dim=-1, eps=1e-6), F.normalize(key, dim=-1, eps=1e-6)
        return _dot(query, key, value, mask, causal, math.sqrt(query.size(-1)))


class Additive(nn.Module):
    """softmax(wᵀ tanh(q + k)) V (Bahdanau et al.). Its two matrices are the query and key projections."""

    def __init__(self, heads: int, d_head: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, d_head))

    def forward(self, query: Heads, key: Keys, value: Values, mask: Mask | None, causal: bool) -> Mixed:
        groups = query.size(1) // key.size(1)
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
        hidden = torch.tanh(query[:, :, :, None] + key[:, :, None])
        scores = torch.einsum("rhqkd,hd->rhqk", hidden, self.weight)
        allowed = _combine(mask, causal, query, key)
        if allowed is None:
            return scores.softmax(dim=-1).to(value.dtype) @ value
        # Not -inf: a query that may attend to no key must give zeros with finite gradients, as in ScaledDot and Cosine.
        weights = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(dim=-1)
        return weights.masked_fill(~allowed, 0.0).to(value.dtype) @ value


def _dot(query: Heads, key: Keys, value: Values, mask: Mask | None, causal: bool, scale: float) -> Mixed:
    if mask is not None and causal:
        mask, causal = _combine(mask, causal, query, key), False
    grouped = query.size(1) != key.size(1)
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=grouped
    )


def _combine(mask: Mask | None, causal: bool, query: Heads, key: Keys) -> Tensor | None:
    """Combine the padding mask with the causal mask. Return None if neither applies."""
    if not causal:
        return mask
    sequence = causal_mask(query.size(2), key.size(2), query.device)
    return sequence if mask is None else mask & sequence


def causal_mask(
    length: int, keys: int, device: torch.device | None = None, window: int = 0
) -> Bool[Tensor, "length keys"]:
    """Return a mask that lets position i attend to positions 0 to i, or with a window to the last `window` of them."""
    mask = torch.ones(length, keys, dtype=torch.bool, device=device).tril()
    return mask.triu(1 - window) if window else mask


def padding_mask(padding: Bool[Tensor, "rows keys"] | None) -> Mask | None:
    """Reshape padding (True: a real token) so that attention broadcasts it over heads and queries."""
    return None if padding is None else padding[:, None, None, :]


def same_segment_mask(queries: Int[Tensor, "rows length"], keys: Int[Tensor, "rows keys"]) -> Mask:
    """Let each token of a packed row attend to the tokens of its own segment; both arguments number the segments.

    Padding (segment 0) attends to the first segment: attention to nothing would be NaN.
    """
    segments = torch.where(queries == 0, queries[:, :1], queries)
    return (segments[:, :, None] == keys[:, None, :])[:, None]


class AttentionShape(NamedTuple):
    """The width of the activations, the numbers of heads for queries and for keys and values, and their width."""

    d_model: int
    heads: int
    kv_heads: int
    d_head: int


class Attention(nn.Module):
    """Multi-head attention for all three uses: encoder self-attention, causal self-attention and cross-attention.

    The three projections are one matrix, so that self-attention needs a single product. Cross-attention uses its
    first rows for queries and the others for keys and values. With fewer key heads than query heads it is
    grouped-query attention. Methods take `attend`, a function that computes what `compatibility` computes in a
    faster way; without it they call `compatibility`.
    """

    def __init__(self, shape: AttentionShape, compatibility: Compatibility, biases: tuple[bool, bool]) -> None:
        """`biases` says whether the first three projections have biases, and whether the output projection has one."""
        super().__init__()
        d_model, self.heads, self.kv_heads, self.d_head = shape
        self.query_key_value = nn.Linear(d_model, (self.heads + 2 * self.kv_heads) * self.d_head, biases[0])
        self.compatibility = COMPATIBILITIES[compatibility](self.heads, self.d_head)
        self.output = nn.Linear(self.heads * self.d_head, d_model, biases[1])

    def forward(
        self,
        x: Float[Tensor, "rows length d_model"],
        mask: Mask | None,
        causal: bool,
        rotation: Rotation | None = None,
        cache: KeyValueCache | None = None,
        attend: AttentionFunction | None = None,
    ) -> Float[Tensor, "rows length d_model"]:
        """Compute self-attention. With a cache, the keys of earlier positions are attended to as well."""
        width = self.heads * self.d_head
        query, key, value = self.query_key_value(x).split((width, *self._kv_widths), dim=-1)
        query, key, value = self._split(query), self._split(key), self._split(value)
        if rotation is not None:
            query, key = rotate(query, rotation), rotate(key, rotation)
        if cache is not None:
            key, value = cache.extend(key, value)
        return self._join((attend or self.compatibility)(query, key, value, mask, causal))

    def cross_attend(
        self,
        x: Float[Tensor, "rows length d_model"],
        memory: ProjectedMemory,
        attend: AttentionFunction | None = None,
    ) -> Float[Tensor, "rows length d_model"]:
        """Compute cross-attention over a memory that `project_memory` has projected."""
        query = self._query(x)
        return self._join((attend or self.compatibility)(query, memory.key, memory.value, memory.mask, False))

    def cross_attention_weights(
        self, x: Float[Tensor, "rows length d_model"], memory: ProjectedMemory
    ) -> Float[Tensor, "rows heads length keys"]:
        """Return the weight of each key for each query.

        Attention returns its own weights when value j is the unit vector j, so no other formula is needed.
        """
        query = self._query(x)
        rows, _, keys, _ = memory.key.shape
        units = torch.eye(keys, dtype=x.dtype, device=x.device).expand(rows, self.kv_heads, keys, keys)
        return self.compatibility(query, memory.key, units, memory.mask, False)

    def project_memory(self, memory: Float[Tensor, "rows keys d_model"], mask: MemoryMask | None) -> ProjectedMemory:
        """Return the keys and values of the encoder's output. They do not depend on the target."""
        width = self.heads * self.d_head
        projected = F.linear(memory, self.query_key_value.weight[width:], self._bias(slice(width, None)))
        key, value = projected.split(self._kv_widths, dim=-1)
        return ProjectedMemory(self._split(key), self._split(value), mask)

    def _query(self, x: Float[Tensor, "rows length d_model"]) -> Heads:
        width = self.heads * self.d_head
        return self._split(F.linear(x, self.query_key_value.weight[:width], self._bias(slice(None, width))))

    @property
    def _kv_widths(self) -> tuple[int, int]:
        return self.kv_heads * self.d_head, self.kv_heads * self.d_head

    def _bias(self, rows: slice) -> Tensor | None:
        return None if self.query_key_value.bias is None else self.query_key_value.bias[rows]

    def _split(self, x: Float[Tensor, "rows length width"]) -> Float[Tensor, "rows some_heads length d_head"]:
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)

    def _join(self, heads: Mixed) -> Float[Tensor, "rows length d_model"]:
        return self.output(heads.transpose(1, 2).flatten(2))

    def extra_repr(self) -> str:
        grouped = f", kv_heads={self.kv_heads}" if self.kv_heads != self.heads else ""
        return f"heads={self.heads}{grouped}, d_head={self.d_head}"


COMPATIBILITIES = {
    "scaled-dot": lambda heads, d_head: ScaledDot(),
    "cosine": lambda heads, d_head: Cosine(),
    "additive": Additive,
}
