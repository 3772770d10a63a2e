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
from sixfold.model.precision import autocast
from sixfold.tasks.task import Batch
from sixfold.training.distributed import full_tensor, gradient_sync
from sixfold.training.schedule import learning_rate
from sixfold.training.state import State, attention_backend


@dataclass(frozen=True)
class Metrics:
    """One step. `loss` is nats a token, label smoothing included. Reading a tensor waits for the device."""

    step: int
    loss: Float[Tensor, ""]
    gradient_norm: Float[Tensor, ""]
    skipped: Float[Tensor, ""]  # 1: the update was not made
    learning_rate: float
    tokens: int
    examples: tuple[np.ndarray, ...] = ()  # the numbers of the examples of each micro-batch


def train(
    state: State, steps: Iterable[Sequence[Batch]], shape: ModelConfig, config: TrainingConfig
) -> Iterator[Metrics]:
    """Train until `config.steps`; each item of `steps` is a list of micro-batches whose gradients add up."""
    weights = list(state.weights.values())
    state.model.train()
    for _, micro_batches in zip(range(state.step, config.steps), steps, strict=False):
        state.step += 1
        rate = learning_rate(config, shape.d_model, state.step)
        for group in state.optimizer.param_groups:
            group["lr"] = rate
        # Divided by the tokens of the whole step: a short micro-batch must not weigh as much as a long one.
        tokens = int(state.group.all_reduce(torch.tensor(sum(len(batch.labels) for batch in micro_batches))))
        loss = state.group.all_reduce(
            add_gradients(state, [batch.to(state.device) for batch in micro_batches], tokens, config)
        )
        norm = full_tensor(nn.utils.clip_grad_norm_(weights, config.clip or float("inf")))
        skipped = state.guard.judge(loss, norm)
        # With this set, the fused update does nothing in a bad step, and the host does not wait for the verdict.
        vars(state.optimizer)["found_inf"] = skipped
        state.optimizer.step()
        state.optimizer.zero_grad(set_to_none=True)
        state.update_average()
        examples = tuple(batch.examples for batch in micro_batches if batch.examples is not None)
        yield Metrics(state.step, loss, norm, skipped, rate, tokens, examples)


def add_gradients(
    state: State, micro_batches: Sequence[Batch], tokens: int, config: TrainingConfig
) -> Float[Tensor, ""]:
    """Add the gradients of all micro-batches; where memory does not suffice, start again with smaller ones."""
    try:
        # One call for each: the memory of a failed call is free when it is left.
        last = len(micro_batches) - 1
        losses = [
            add_gradient(state, batch, tokens, config, number == last) for number, batch in enumerate(micro_batches)
        ]
        return torch.stack(losses).sum()
    except torch.OutOfMemoryError:
        if state.group.ranks > 1:  # the other processes would wait for ever
            raise DataError(
                "out of memory: a step of several processes cannot be made in smaller pieces",
                "lower training.micro_tokens",
            ) from None
        if all(batch.output_shape[0] == 1 for batch in micro_batches):
            longest = max(batch.output_shape[1] for batch in micro_batches)
            raise DataError(
                f"out of memory: a single example of {longest} tokens does not fit this device",
                "lower data.max_tokens, choose a smaller preset, or set training.recompute=true",
            ) from None
    # Outside of the handler, whose traceback keeps the tensors alive.
    state.optimizer.zero_grad(set_to_none=True)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    smaller = [half for batch in micro_batches for half in (batch.halves() if batch.output_shape[0] > 1 else [batch])]
    return add_gradients(state, smaller, tokens, config)


def add_gradient(
    state: State, batch: Batch, tokens: int, config: TrainingConfig, is_last: bool = True
) -> Float[Tensor, ""]:
    """Add the gradient of one micro-batch, and return its share of the loss of the step."""
    # Dropout follows from the seed, the step and the micro-batch: there is no random state to save, and it is the same
    # whichever process computes the micro-batch.
    torch.manual_seed((config.seed * 1_000_003 + state.step) * 8191 + batch.micro_batch)
    with gradient_sync(state.module, is_last):
        with autocast(config.precision, state.device), attention_backend(state):
            loss = state.module(batch) / tokens
        # Gradients are averaged over the processes; this makes the average a sum.
        (loss * state.group.ranks).backward()
    return loss.detach()
