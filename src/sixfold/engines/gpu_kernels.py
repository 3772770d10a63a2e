"""Triton kernels for a decoding step: attention of a few queries, the likeliest tokens, and writing to the cache.

The kernels of torch are made for many queries. A step has one to a few queries for each sentence, and a mask that
excludes most keys. These kernels do not read masked keys.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from sixfold.decoding import device_beam
from sixfold.model.attention import KeyValue

MAX_QUERIES = 8  # of a row; torch computes the attention of more
KEY_BLOCK = 64  # keys that a program reads at once, at most
VOCAB_BLOCK = 4096  # logits that a program reads at once
CHUNK = 128  # neighbouring logits that are first represented by the highest of them
TILE = 16  # the smallest side of a product of matrices in Triton


def attend_few_queries(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """Compute what `attention.ScaledDot` computes, with a kernel for few queries where it can be used."""
    scale = 1 / math.sqrt(query.size(-1))
    rows, heads, queries, width = query.shape
    fits = query.is_cuda and mask is not None and not causal and queries <= MAX_QUERIES
    if not fits or key.stride(3) != 1 or value.stride(3) != 1 or key.stride() != value.stride():
        grouped = heads != key.size(1)
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=grouped
        )
    assert mask is not None
    mask = mask.expand(rows, 1, queries, key.size(2)).view(torch.uint8)
    mixed = query.new_empty(rows, queries, heads, width)
    keys = key.size(2)
    _attend[(rows, heads)](
        query, key, value, mask, mixed, *query.stride()[:3], *key.stride()[:3], *mask.stride()[::2], mask.stride(3),
        keys, scale, heads, heads // key.size(1), queries, width, TILE,
        max(TILE, triton.next_power_of_2(width)), min(KEY_BLOCK, max(TILE, triton.next_power_of_2(keys))),
        num_warps=1,
    )  # fmt: skip
    return mixed.transpose(1, 2)


@triton.jit
def _attend(
    query, key, value, mask, output, query_row, query_head, query_step, key_row, key_head, key_step,
    mask_row, mask_query, mask_step, keys, scale, heads, group, QUERIES: tl.constexpr, WIDTH: tl.constexpr,
    QUERY_BLOCK: tl.constexpr, WIDTH_BLOCK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute one head of one row: softmax(q kᵀ) v over the keys that any query may attend to, block by block."""
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    queries, width = tl.arange(0, QUERY_BLOCK), tl.arange(0, WIDTH_BLOCK)
    is_query, is_width = queries < QUERIES, width < WIDTH
    query_at = query + row * query_row + head * query_head + queries[:, None] * query_step + width[None, :]
    q = tl.load(query_at, mask=is_query[:, None] & is_width[None, :], other=0.0)
    start = row * key_row + (head // group) * key_head
    best = tl.full([QUERY_BLOCK], -1e30, tl.float32)
    total = tl.zeros([QUERY_BLOCK], tl.float32)
    mixed = tl.zeros([QUERY_BLOCK, WIDTH_BLOCK], tl.float32)
    for first in range(0, keys, BLOCK):
        steps = first + tl.arange(0, BLOCK)
        mask_at = mask + row * mask_row + queries[:, None] * mask_query + steps[None, :] * mask_step
        allowed = tl.load(mask_at, mask=is_query[:, None] & (steps < keys)[None, :], other=0).to(tl.int32)
        is_read = (tl.max(allowed, axis=0) > 0)[:, None] & is_width[None, :]
        offsets = start + steps[:, None] * key_step + width[None, :]
        k = tl.load(key + offsets, mask=is_read, other=0.0)
        v = tl.load(value + offsets, mask=is_read, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(allowed > 0, scores, -1e30)
        maximum = tl.maximum(best, tl.max(scores, axis=1))
        weights = tl.where(allowed > 0, tl.exp(scores - maximum[:, None]), 0.0)
        correction = tl.exp(best - maximum)  # rescales earlier blocks, whose maximum was lower
        mixed = mixed * correction[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        total = total * correction + tl.sum(weights, axis=1)
        best = maximum
    mixed = mixed / tl.maximum(total, 1e-30)[:, None]
    output_at = output + ((row * QUERIES + queries[:, None]) * heads + head) * WIDTH + width[None, :]
    tl.store(output_at, mixed.to(output.dtype.element_ty), mask=is_query[:, None] & is_width[None, :])


def top_tokens(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Compute what `device_beam.top_tokens` computes, reading the logits once.

    1. Take the maximum of each chunk of 128 logits: rows × chunks. The `count` likeliest tokens are in the `count`
       chunks with the highest maxima.
    2. Gather these chunks: rows × (count · 128), and rank their logits.
    3. Subtract the logarithm of the sum of all exponentials, to get log-probabilities.
    """
    rows, vocab = logits.shape
    chunks = -(-vocab // CHUNK)
    if not logits.is_cuda or count >= chunks:
        return device_beam.top_tokens(logits, count)
    norms = torch.empty(rows, dtype=torch.float32, device=logits.device)
    if count == 1:
        tokens = torch.empty(rows, dtype=torch.long, device=logits.device)
        _top_token[(rows,)](logits, tokens, norms, logits.stride(0), vocab, VOCAB_BLOCK, num_warps=8)
        return norms[:, None], tokens[:, None]
    maxima = torch.empty(rows, chunks, dtype=torch.float32, device=logits.device)
    _chunk_maxima[(rows,)](logits, maxima, norms, logits.stride(0), vocab, chunks, VOCAB_BLOCK, CHUNK, num_warps=8)
    highest = maxima.topk(count, dim=1).indices
    tokens = (highest[:, :, None] * CHUNK + torch.arange(CHUNK, device=logits.device)).flatten(1)
    if vocab % CHUNK:
        values = logits.gather(1, tokens.clamp(max=vocab - 1)).masked_fill(tokens >= vocab, -torch.inf)
    else:
        values = logits.gather(1, tokens)
    best, order = values.topk(count, dim=1)
    return best.float() - norms[:, None], tokens.gather(1, order)


@triton.jit
def _top_token(logits, tokens, logprobs, row_stride, vocab, BLOCK: tl.constexpr):
    """Find the likeliest token of a row and its log-probability."""
    row = tl.program_id(0).to(tl.int64)
    top, total, token = -1e30, 0.0, 0
    for first in range(0, vocab, BLOCK):
        ids = first + tl.arange(0, BLOCK)
        x = tl.load(logits + row * row_stride + ids, mask=ids < vocab, other=-1e30).to(tl.float32)
        maximum = tl.max(x, axis=0)
        token = tl.where(maximum > top, first + tl.argmax(x, axis=0), token)
        higher = tl.maximum(top, maximum)
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher), axis=0)
        top = higher
    tl.store(tokens + row, token)
    tl.store(logprobs + row, -tl.log(total))


@triton.jit
def _chunk_maxima(logits, maxima, norms, row_stride, vocab, chunks, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    """Find the highest logit of every chunk of a row, and the logarithm of the sum of all exponentials."""
    row = tl.program_id(0).to(tl.int64)
    top, total = -1e30, 0.0
    for first in range(0, vocab, BLOCK):
        ids = first + tl.arange(0, BLOCK)
        x = tl.load(logits + row * row_stride + ids, mask=ids < vocab, other=-1e30).to(tl.float32)
        block_maxima = tl.max(tl.reshape(x, [BLOCK // CHUNK, CHUNK]), axis=1)
        indices = first // CHUNK + tl.arange(0, BLOCK // CHUNK)
        tl.store(maxima + row * chunks + indices, block_maxima, mask=indices < chunks)
        higher = tl.maximum(top, tl.max(block_maxima, axis=0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher), axis=0)
        top = higher
    tl.store(norms + row, top + tl.log(total))


def write_cache(stored: KeyValue, new: KeyValue, entries: Tensor) -> None:
    """Write keys and values (rows × heads × count × width) into a cache (rows × capacity × heads × width).

    `entries` (rows × count) says at which entry of its row each of them is stored.
    """
    rows, heads, count, width = new[0].shape
    block = triton.next_power_of_2(heads * width)
    _write[(rows, count)](
        *stored, *new, entries, stored[0].stride(0), stored[0].stride(1), *new[0].stride()[:3], *new[1].stride()[:3],
        entries.stride(0), entries.stride(1), heads, width, block, num_warps=4,
    )  # fmt: skip


@triton.jit
def _write(
    stored_key, stored_value, key, value, entries, stored_row, stored_step, key_row, key_head, key_step,
    value_row, value_head, value_step, entry_row, entry_step, heads, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write one new position of one row."""
    row, count = tl.program_id(0).to(tl.int64), tl.program_id(1)
    index = tl.arange(0, BLOCK)
    inside = index < heads * WIDTH
    head, width = index // WIDTH, index % WIDTH
    entry = tl.load(entries + row * entry_row + count * entry_step)
    to = row * stored_row + entry * stored_step + index
    k = tl.load(key + row * key_row + head * key_head + count * key_step + width, mask=inside)
    tl.store(stored_key + to, k, mask=inside)
    v = tl.load(value + row * value_row + head * value_head + count * value_step + width, mask=inside)
    tl.store(stored_value + to, v, mask=inside)
