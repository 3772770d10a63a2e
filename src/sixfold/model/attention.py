"""Multi-head attention: queries look at keys and bring back a weighted mean of the values (paper §3.2)."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sixfold.config import Compatibility
from sixfold.model.positions import Rotation, rotate

Heads = Float[Tensor, "rows heads length d_head"]
Keys = Float[Tensor, "rows kv_heads keys d_head"]
Values = Float[Tensor, "rows kv_heads keys d_value"]  # d_value is d_head in our models; the formula does not care
Mixed = Float[Tensor, "rows heads length d_value"]
KeyValue = tuple[Keys, Values]
Mask = Bool[Tensor, "#rows 1 #length keys"]
MemoryMask = Bool[Tensor, "#rows 1 #queries keys"]  # as Mask, where the length is that of whoever will look


class Memory(NamedTuple):
    """What one cross-attention looks at: the encoder's output as keys and values, and which of them it may see."""

    key: Keys
    value: Values
    mask: MemoryMask | None


@runtime_checkable
class KeyValueCache(Protocol):
    """What a caller hands in to decode step by step; it keeps the past, the model keeps nothing."""

    def extend(self, key: Tensor, value: Tensor) -> KeyValue:
        """Store the keys and values of new positions; return all that may be looked at."""
        ...


class ScaledDot(nn.Module):
    """softmax(Q Kᵀ / sqrt(d_k)) V (paper eq. 1)."""

    def forward(self, query: Heads, key: Keys, value: Values, mask: Mask | None, causal: bool) -> Mixed:
        return _dot(query, key, value, mask, causal, 1 / math.sqrt(query.size(-1)))


class Cosine(nn.Module):
    """As ScaledDot, with vectors of length 1: cos(q, k) · sqrt(d_k), whose variance is 1 as well."""

    def forward(self, query: Heads, key: Keys, value: Values, mask: Mask | None, causal: bool) -> Mixed:
        query, key = F.normalize(query, dim=-1, eps=1e-6), F.normalize(key, dim=-1, eps=1e-6)
        return _dot(query, key, value, mask, causal, math.sqrt(query.size(-1)))


class Additive(nn.Module):
    """wᵀ tanh(q + k), the small network of Bahdanau et al.; its two matrices are the query and key projections."""

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
        # Not -inf: a row that may look at nothing must be zeros, with gradients, as it is in the other two.
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
    """Padding and sequence mask in one; True = may look."""
    if not causal:
        return mask
    sequence = causal_mask(query.size(2), key.size(2), query.device)
    return sequence if mask is None else mask & sequence


def causal_mask(length: int, keys: int, device: torch.device | None = None) -> Bool[Tensor, "length keys"]:
    """Position i may look at positions up to i."""
    return torch.ones(length, keys, dtype=torch.bool, device=device).tril()


class Attention(nn.Module):
    """One module for all three uses: encoder self-attention, masked self-attention and cross-attention.

    The three projections are one matrix, so that self-attention needs a single product; cross-attention uses its
    first rows for queries and the rest for keys and values. Fewer key than query heads is grouped-query attention.
    """

    def __init__(self, d_model: int, heads: int, kv_heads: int, compatibility: Compatibility, bias: bool) -> None:
        super().__init__()
        self.heads = heads
        self.kv_heads = kv_heads
        self.d_head = d_model // heads
        self.query_key_value = nn.Linear(d_model, (heads + 2 * kv_heads) * self.d_head, bias)
        self.compatibility = COMPATIBILITIES[compatibility](heads, self.d_head)
        self.output = nn.Linear(d_model, d_model, bias)

    def forward(
        self,
        x: Float[Tensor, "rows length d_model"],
        mask: Mask | None,
        causal: bool,
        rotation: Rotation | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "rows length d_model"]:
        """Self-attention."""
        width = self.heads * self.d_head
        query, key, value = self.query_key_value(x).split((width, *self._kv_widths), dim=-1)
        query, key, value = self._split(query), self._split(key), self._split(value)
        if rotation is not None:
            query, key = rotate(query, rotation), rotate(key, rotation)
        if cache is not None:
            key, value = cache.extend(key, value)
        return self._join(self.compatibility(query, key, value, mask, causal))

    def look_at(self, x: Float[Tensor, "rows length d_model"], memory: Memory) -> Float[Tensor, "rows length d_model"]:
        """Cross-attention over a memory that `remember` has projected."""
        width = self.heads * self.d_head
        query = F.linear(x, self.query_key_value.weight[:width], self._bias(slice(None, width)))
        return self._join(self.compatibility(self._split(query), memory.key, memory.value, memory.mask, False))

    def weights(
        self, x: Float[Tensor, "rows length d_model"], memory: Memory
    ) -> Float[Tensor, "rows heads length keys"]:
        """How much each position looks at each key: what attention brings back when the values are unit vectors."""
        width = self.heads * self.d_head
        query = self._split(F.linear(x, self.query_key_value.weight[:width], self._bias(slice(None, width))))
        rows, _, keys, _ = memory.key.shape
        units = torch.eye(keys, dtype=x.dtype, device=x.device).expand(rows, self.kv_heads, keys, keys)
        return self.compatibility(query, memory.key, units, memory.mask, False)

    def remember(self, memory: Float[Tensor, "rows keys d_model"], mask: MemoryMask | None) -> Memory:
        """The keys and values of the encoder's output. They depend on nothing the decoder does."""
        width = self.heads * self.d_head
        both = F.linear(memory, self.query_key_value.weight[width:], self._bias(slice(width, None)))
        key, value = both.split(self._kv_widths, dim=-1)
        return Memory(self._split(key), self._split(value), mask)

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
