"""Kernels for a step of decoding, in Triton, where the library's own are made for long rows of queries.

A step has one to a few queries a sentence, and a mask that leaves most keys out: what it may not see is not read.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor, nn

from sixfold.decoding import device_beam
from sixfold.model.attention import Attention, KeyValue, ScaledDot

MOST_QUERIES = 8  # a row; more are left to the library
KEYS = 64  # that a program looks at together, at most
VOCABULARY = 4096  # logits that a program looks at together
CHUNK = 128  # neighbours among them of which only the highest is looked at first


class FewQueries(nn.Module):
    """As `attention.ScaledDot`, for a few queries a row."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        scale = 1 / math.sqrt(query.size(-1))
        rows, heads, queries, width = query.shape
        fits = query.is_cuda and mask is not None and not causal and queries <= MOST_QUERIES
        if not fits or key.stride(3) != 1 or value.stride(3) != 1 or key.stride() != value.stride():
            grouped = heads != key.size(1)
            return F.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=grouped
            )
        assert mask is not None
        mask = mask.expand(rows, 1, queries, key.size(2)).view(torch.uint8)
        found = query.new_empty(rows, queries, heads, width)
        keys, square = key.size(2), 16  # the least that a product of tiles may have
        _attend[(rows, heads)](
            query, key, value, mask, found, *query.stride()[:3], *key.stride()[:3], *mask.stride()[::2], mask.stride(3),
            keys, scale, heads, heads // key.size(1), queries, width, square,
            max(square, triton.next_power_of_2(width)), min(KEYS, max(square, triton.next_power_of_2(keys))),
            num_warps=1,
        )  # fmt: skip
        return found.transpose(1, 2)


@triton.jit
def _attend(
    query, key, value, mask, found, query_row, query_head, query_step, key_row, key_head, key_step,
    mask_row, mask_query, mask_step, keys, scale, heads, group, QUERIES: tl.constexpr, WIDTH: tl.constexpr,
    QUERY_BLOCK: tl.constexpr, WIDTH_BLOCK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One head of one row: softmax(q kᵀ) v over the keys that any query may see, a block at a time."""
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    queries, width = tl.arange(0, QUERY_BLOCK), tl.arange(0, WIDTH_BLOCK)
    is_query, is_width = queries < QUERIES, width < WIDTH
    here = query + row * query_row + head * query_head + queries[:, None] * query_step + width[None, :]
    q = tl.load(here, mask=is_query[:, None] & is_width[None, :], other=0.0)
    start = row * key_row + (head // group) * key_head
    best = tl.full([QUERY_BLOCK], -1e30, tl.float32)
    total = tl.zeros([QUERY_BLOCK], tl.float32)
    mixed = tl.zeros([QUERY_BLOCK, WIDTH_BLOCK], tl.float32)
    for first in range(0, keys, BLOCK):
        times = first + tl.arange(0, BLOCK)
        there = mask + row * mask_row + queries[:, None] * mask_query + times[None, :] * mask_step
        seen = tl.load(there, mask=is_query[:, None] & (times < keys)[None, :], other=0).to(tl.int32)
        read = (tl.max(seen, axis=0) > 0)[:, None] & is_width[None, :]
        places = start + times[:, None] * key_step + width[None, :]
        k = tl.load(key + places, mask=read, other=0.0)
        v = tl.load(value + places, mask=read, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(seen > 0, scores, -1e30)
        top = tl.maximum(best, tl.max(scores, axis=1))
        shares = tl.where(seen > 0, tl.exp(scores - top[:, None]), 0.0)
        fade = tl.exp(best - top)
        mixed = mixed * fade[:, None] + tl.dot(shares.to(v.dtype), v, input_precision="ieee")
        total = total * fade + tl.sum(shares, axis=1)
        best = top
    mixed = mixed / tl.maximum(total, 1e-30)[:, None]
    out = found + ((row * QUERIES + queries[:, None]) * heads + head) * WIDTH + width[None, :]
    tl.store(out, mixed.to(found.dtype.element_ty), mask=is_query[:, None] & is_width[None, :])


def likeliest(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Compute `device_beam.likeliest` while reading the logits once: the likeliest tokens are in the chunks with the
    highest maxima."""
    rows, vocab = logits.shape
    chunks = -(-vocab // CHUNK)
    if not logits.is_cuda or count >= chunks:
        return device_beam.likeliest(logits, count)
    norms = torch.empty(rows, dtype=torch.float32, device=logits.device)
    if count == 1:
        tokens = torch.empty(rows, dtype=torch.long, device=logits.device)
        _first[(rows,)](logits, tokens, norms, logits.stride(0), vocab, VOCABULARY, num_warps=8)
        return norms[:, None], tokens[:, None]
    tops = torch.empty(rows, chunks, dtype=torch.float32, device=logits.device)
    _tops[(rows,)](logits, tops, norms, logits.stride(0), vocab, chunks, VOCABULARY, CHUNK, num_warps=8)
    highest = tops.topk(count, dim=1).indices
    places = (highest[:, :, None] * CHUNK + torch.arange(CHUNK, device=logits.device)).flatten(1)
    if vocab % CHUNK:
        values = logits.gather(1, places.clamp(max=vocab - 1)).masked_fill(places >= vocab, -torch.inf)
    else:
        values = logits.gather(1, places)
    best, order = values.topk(count, dim=1)
    return best.float() - norms[:, None], places.gather(1, order)


@triton.jit
def _first(logits, tokens, logprobs, step, vocab, BLOCK: tl.constexpr):
    """The likeliest token of a row and its log-probability."""
    row = tl.program_id(0).to(tl.int64)
    top, total, token = -1e30, 0.0, 0
    for first in range(0, vocab, BLOCK):
        places = first + tl.arange(0, BLOCK)
        x = tl.load(logits + row * step + places, mask=places < vocab, other=-1e30).to(tl.float32)
        here = tl.max(x, axis=0)
        token = tl.where(here > top, first + tl.argmax(x, axis=0), token)
        higher = tl.maximum(top, here)
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher), axis=0)
        top = higher
    tl.store(tokens + row, token)
    tl.store(logprobs + row, -tl.log(total))


@triton.jit
def _tops(logits, tops, norms, step, vocab, chunks, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    """The highest of every chunk of a row, and the logarithm of the sum of all exponentials."""
    row = tl.program_id(0).to(tl.int64)
    top, total = -1e30, 0.0
    for first in range(0, vocab, BLOCK):
        places = first + tl.arange(0, BLOCK)
        x = tl.load(logits + row * step + places, mask=places < vocab, other=-1e30).to(tl.float32)
        each = tl.max(tl.reshape(x, [BLOCK // CHUNK, CHUNK]), axis=1)
        numbers = first // CHUNK + tl.arange(0, BLOCK // CHUNK)
        tl.store(tops + row * chunks + numbers, each, mask=numbers < chunks)
        higher = tl.maximum(top, tl.max(each, axis=0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher), axis=0)
        top = higher
    tl.store(norms + row, top + tl.log(total))


def write(kept: KeyValue, new: KeyValue, slots: Tensor) -> None:
    """Keys and values of new positions to their slots: `kept` is rows × slots × heads × width."""
    rows, heads, count, width = new[0].shape
    block = triton.next_power_of_2(heads * width)
    _write[(rows, count)](
        *kept, *new, slots, kept[0].stride(0), kept[0].stride(1), *new[0].stride()[:3], *new[1].stride()[:3],
        slots.stride(0), slots.stride(1), heads, width, block, num_warps=4,
    )  # fmt: skip


@triton.jit
def _write(
    kept_key, kept_value, key, value, slots, kept_row, kept_step, key_row, key_head, key_step,
    value_row, value_head, value_step, slot_row, slot_step, heads, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, count = tl.program_id(0).to(tl.int64), tl.program_id(1)
    index = tl.arange(0, BLOCK)
    inside = index < heads * WIDTH
    head, width = index // WIDTH, index % WIDTH
    slot = tl.load(slots + row * slot_row + count * slot_step)
    to = row * kept_row + slot * kept_step + index
    k = tl.load(key + row * key_row + head * key_head + count * key_step + width, mask=inside)
    tl.store(kept_key + to, k, mask=inside)
    v = tl.load(value + row * value_row + head * value_head + count * value_step + width, mask=inside)
    tl.store(kept_value + to, v, mask=inside)


def few_queries(model: nn.Module) -> None:
    """Let the attentions of a model use these kernels where they fit."""
    for part in model.modules():
        if isinstance(part, Attention) and isinstance(part.compatibility, ScaledDot):
            part.compatibility = FewQueries()
