"""The training loop: a generator of metrics that reads in the order of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from sixfold.config import ModelConfig, TrainingConfig
from sixfold.errors import DataError
from sixfold.training.batch import Batch
from sixfold.training.distributed import waiting, whole
from sixfold.training.schedule import learning_rate
from sixfold.training.state import State, attention, compute_type_on


@dataclass(frozen=True)
class Metrics:
    """One step. `loss` is nats a token, label smoothing included; to read a tensor is to wait for the device."""

    step: int
    loss: Float[Tensor, ""]
    gradient_norm: Float[Tensor, ""]
    skipped: Float[Tensor, ""]  # 1: the update was not made
    learning_rate: float
    tokens: int
    rows: tuple[np.ndarray, ...] = ()


def train(
    state: State, batches: Iterable[Sequence[Batch]], shape: ModelConfig, config: TrainingConfig
) -> Iterator[Metrics]:
    """Each item of `batches` is one step: micro-batches whose gradients add up to that of the whole."""
    weights = list(state.weights.values())
    state.model.train()
    for _, micro_batches in zip(range(state.step, config.steps), batches, strict=False):
        state.step += 1
        rate = learning_rate(config, shape.d_model, state.step)
        for group in state.optimizer.param_groups:
            group["lr"] = rate
        # Divided by the tokens of the whole step: a short micro-batch must not weigh as much as a long one.
        tokens = int(state.group.total(torch.tensor(sum(batch.tokens for batch in micro_batches))))
        loss = state.group.total(
            add_gradients(state, [batch.to(state.device) for batch in micro_batches], tokens, config)
        )
        norm = whole(nn.utils.clip_grad_norm_(weights, config.clip or float("inf")))
        skipped = state.guard.judge(loss, norm)
        # With this set, the fused update does nothing in a bad step, and nobody has to wait to know.
        vars(state.optimizer)["found_inf"] = skipped
        state.optimizer.step()
        state.optimizer.zero_grad(set_to_none=True)
        state.update_average()
        rows = tuple(batch.rows for batch in micro_batches if batch.rows is not None)
        yield Metrics(state.step, loss, norm, skipped, rate, tokens, rows)


def add_gradients(
    state: State, micro_batches: Sequence[Batch], tokens: int, config: TrainingConfig
) -> Float[Tensor, ""]:
    """Forward and backward; where memory does not suffice, again from the start in smaller pieces."""
    try:
        # One call each: what a failed one holds is gone when it is left.
        last = len(micro_batches) - 1
        each = [
            add_gradient(state, batch, tokens, config, number == last) for number, batch in enumerate(micro_batches)
        ]
        return torch.stack(each).sum()
    except torch.OutOfMemoryError:
        if state.group.ranks > 1:  # the others wait for what this one cannot give
            raise DataError(
                "out of memory: a step of several processes cannot be made in smaller pieces",
                "lower training.micro_tokens",
            ) from None
        if all(batch.shape[0] == 1 for batch in micro_batches):
            longest = max(batch.shape[1] for batch in micro_batches)
            raise DataError(
                f"out of memory: a single pair of {longest} tokens does not fit this device",
                "lower data.max_tokens, choose a smaller preset, or set training.recompute=true",
            ) from None
    # Outside of the handler, whose traceback keeps the tensors alive.
    state.optimizer.zero_grad(set_to_none=True)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    smaller = [half for batch in micro_batches for half in (batch.halves() if batch.shape[0] > 1 else [batch])]
    return add_gradients(state, smaller, tokens, config)


def add_gradient(
    state: State, batch: Batch, tokens: int, config: TrainingConfig, last: bool = True
) -> Float[Tensor, ""]:
    """Of one micro-batch, whose share of the loss is returned."""
    # Dropout follows from the seed, the step and the micro-batch: there is no random state to save, and it is the same
    # whichever process makes it.
    torch.manual_seed((config.seed * 1_000_003 + state.step) * 8191 + batch.number)
    with waiting(state.module, last):
        with precision(config, state.device), attention(state):
            loss = loss_of(state, batch) / tokens
        # Gradients are averaged over the processes; what is wanted is their sum.
        (loss * state.group.ranks).backward()
    return loss.detach()


def loss_of(state: State, batch: Batch) -> Float[Tensor, ""]:
    """The sum over the tokens of a batch."""
    return state.module(batch.inputs, batch.places, batch.labels)


def precision(config: TrainingConfig, device: torch.device) -> torch.autocast:
    """Autocast to bf16, where that is chosen."""
    wanted = compute_type_on(device, config.precision) == torch.bfloat16
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted)
