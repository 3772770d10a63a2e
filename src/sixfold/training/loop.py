"""The training loop: a generator of metrics that reads in the order of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sixfold.config import ModelConfig, TrainingConfig
from sixfold.training.loss import NOTHING, smoothed_cross_entropy
from sixfold.training.schedule import learning_rate


@dataclass(frozen=True)
class Batch:
    """What a model reads, in the order of its parameters, and what it should have said; NOTHING pads the labels."""

    inputs: tuple[Tensor, ...]
    labels: Int[Tensor, "rows length"]


@dataclass(frozen=True)
class Metrics:
    """One step. `loss` is nats a token, label smoothing included."""

    step: int
    loss: float
    learning_rate: float
    gradient_norm: float
    tokens: int


def train(
    model: nn.Module, batches: Iterable[Sequence[Batch]], shape: ModelConfig, config: TrainingConfig
) -> Iterator[Metrics]:
    """Each item of `batches` is one step: micro-batches whose gradients add up to that of the whole."""
    torch.manual_seed(config.seed)
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(
        weights, betas=(0.9, config.beta2), eps=1e-9, weight_decay=config.weight_decay, fused=True
    )
    model.train()
    for step, micro_batches in zip(range(1, config.steps + 1), batches, strict=False):
        rate = learning_rate(config, shape.d_model, step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        # Divided by the tokens of the whole step: a short micro-batch must not weigh as much as a long one.
        tokens = sum(int((batch.labels != NOTHING).sum()) for batch in micro_batches)
        total = 0.0
        for batch in micro_batches:
            logits = model(*batch.inputs)
            loss = smoothed_cross_entropy(logits, batch.labels, config.label_smoothing) / tokens
            loss.backward()
            total += loss.item()
        norm = nn.utils.clip_grad_norm_(weights, config.clip or float("inf"))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        yield Metrics(step, total, rate, float(norm), tokens)


def pair_batch(pairs: Sequence[tuple[Sequence[int], Sequence[int]]], shape: ModelConfig) -> Batch:
    """Teacher forcing: the decoder reads <bos> y1 … yn and should say y1 … yn <eos>; a source ends in <eos>."""
    source = pad_rows([[*source, shape.eos] for source, _ in pairs], shape.pad)
    target = pad_rows([[shape.bos, *target] for _, target in pairs], shape.pad)
    labels = pad_rows([[*target, shape.eos] for _, target in pairs], NOTHING)
    return Batch((source, target, lengths_to_padding([len(source) + 1 for source, _ in pairs])), labels)


def pad_rows(rows: Sequence[Sequence[int]], pad: int) -> Int[Tensor, "rows length"]:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows])


def lengths_to_padding(lengths: Sequence[int]) -> Tensor:
    """True = a real token."""
    return torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
