"""Everything that changes from step to step: weights, their average, the optimizer, and a guard against bad steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from sixfold.config import TrainingConfig
from sixfold.model.transformer import Execution, Transformer, call_module
from sixfold.tasks.task import Batch
from sixfold.training import lora
from sixfold.training.distributed import SINGLE_PROCESS, Group, distribute, full_tensor

LossFunction = Callable[[nn.Module, Batch, Execution], Float[Tensor, ""]]  # summed over the labels of a batch


class State:
    """The state of a run on one device.

    `fixed_shapes` says that all batches have one shape. Then layers can be `compiled`, and the layers of a stack share
    the compiled code.
    """

    def __init__(
        self,
        model: Transformer,
        config: TrainingConfig,
        loss: LossFunction,
        fixed_shapes: bool = False,
        compiled: bool = False,
        group: Group = SINGLE_PROCESS,
    ) -> None:
        self.model = model
        self.fixed_shapes = fixed_shapes
        self.group = group
        device = next(model.parameters()).device
        self.lora = config.lora
        if config.lora:
            lora.attach(model, config.lora, config.seed)
        execution = Execution(recompute=config.recompute, call=compile_layer_calls() if compiled else call_module)
        self.module = distribute(ModelWithLoss(model, loss, execution), group, config.sharded, device)
        self.step = 0
        self.weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.optimizer = torch.optim.AdamW(
            decay_groups(model, self.weights.values(), config.weight_decay),
            betas=(0.9, config.beta2),
            eps=1e-9,
            fused=True,
        )
        self.decay = config.ema
        self.average = {name: weight.detach().clone() for name, weight in self.weights.items()} if config.ema else {}
        self.guard = Guard(self.device)

    @property
    def device(self) -> torch.device:
        return next(iter(self.weights.values())).device

    @torch.no_grad()
    def update_average(self) -> None:
        """Move the average towards the weights; a young average moves faster, so that it forgets the random start."""
        if self.average:
            decay = min(self.decay, (1 + self.step) / (10 + self.step))
            torch._foreach_lerp_(list(self.average.values()), list(self.weights.values()), 1 - decay)

    @property
    def kept_weights(self) -> dict[str, Tensor]:
        """Return the weights to validate and save: the average where there is one. All processes must call this."""
        learned = {name: full_tensor(weight.detach()) for name, weight in (self.average or self.weights).items()}
        return lora.merge(self.model, learned) if self.lora else learned


def decay_groups(model: Transformer, weights: Iterable[nn.Parameter], decay: float) -> list[dict[str, Any]]:
    """Return parameter groups for AdamW: matrices decay; norms, biases and embedding or position tables do not.

    Decay has nothing to keep small in a norm or a bias, and the row of a rare token would fade between two batches
    that hold it. A table that is also the output projection counts as a table.
    """
    tables = {part.weight for part in model.modules() if isinstance(part, nn.Embedding)}
    rates: dict[float, list[nn.Parameter]] = {decay: [], 0.0: []}
    for weight in weights:
        rates[0.0 if weight.dim() < 2 or weight in tables else decay].append(weight)
    groups = [{"params": group, "weight_decay": rate} for rate, group in rates.items()]
    return [group for group in groups if group["params"]]


class ModelWithLoss(nn.Module):
    """A model and the loss of its task as one module, whose gradients processes that train together exchange."""

    def __init__(self, model: Transformer, loss: LossFunction, execution: Execution) -> None:
        super().__init__()
        self.model = model
        self.loss = loss
        self.execution = execution

    def forward(self, batch: Batch) -> Float[Tensor, ""]:
        """Return the loss of a batch."""
        return self.loss(self.model, batch, self.execution)


class Guard:
    """Detects steps that would do harm, on the device, so that the host does not wait for it."""

    def __init__(self, device: torch.device) -> None:
        self.mean = torch.zeros((), device=device)  # of the loss of recent good steps
        self.good_steps = torch.zeros((), device=device)

    @torch.no_grad()
    def judge(self, loss: Float[Tensor, ""], norm: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """Return 1 for a loss or gradient that is not finite or a loss far above the recent mean, and 0 otherwise."""
        exploded = (self.good_steps >= 20) & (loss > torch.maximum(2 * self.mean, self.mean + 2))
        bad = exploded | ~loss.isfinite() | ~norm.isfinite()
        rate = torch.clamp(1 / (self.good_steps + 1), min=0.02)
        self.mean = torch.where(bad, self.mean, self.mean.lerp(loss, rate))
        self.good_steps = self.good_steps + (~bad).float()
        return bad.float()


def attention_backend(state: State) -> AbstractContextManager[None]:
    """Return a context that prefers cuDNN's attention, the fastest with a mask, where all batches have one shape."""
    if state.fixed_shapes and state.device.type == "cuda":
        return sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
    return nullcontext()


def compile_layer_calls() -> Callable[..., Any]:
    """Return a compiled `call_module`: layer by layer, all layers of a stack share what was compiled.

    That takes seconds, where compiling a whole model takes minutes. The modules themselves are not changed.
    """
    options: dict[str, Any] = {}
    # A fusion that newer versions try for the backward pass of norms made a base step 7% slower.
    if "triton.mix_order_reduction" in torch._inductor.list_options():
        options["triton.mix_order_reduction"] = False
    return torch.compile(call_module, dynamic=False, options=options)
