"""All that a run changes from step to step: weights, their average, the optimizer, and a guard against bad steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from sixfold.config import Precision, TrainingConfig
from sixfold.model.layers import Layer
from sixfold.model.transformer import Embedding, Transformer
from sixfold.training import lora
from sixfold.training.distributed import ALONE, Group, share_out, whole
from sixfold.training.loss import Objective


class State:
    """`steady` says that all batches have one shape; then layers can be `compiled`, and those of a stack share it."""

    def __init__(
        self,
        model: Transformer,
        config: TrainingConfig,
        steady: bool = False,
        compiled: bool = False,
        group: Group = ALONE,
    ) -> None:
        self.model = model
        self.steady = steady
        self.group = group
        device = next(model.parameters()).device
        self.lora = config.lora
        if config.lora:
            lora.attach(model, config.lora, config.seed)
        if config.recompute:
            recompute_layers(model)
        if compiled:
            compile_layers(model)
        objective = Objective(config.label_smoothing, config.rdrop, compiled)
        self.module = share_out(Loss(model, objective), group, config.sharded, device)
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
        """Young averages forget faster, so that they do not remember the random start."""
        if self.average:
            decay = min(self.decay, (1 + self.step) / (10 + self.step))
            torch._foreach_lerp_(list(self.average.values()), list(self.weights.values()), 1 - decay)

    @property
    def kept_weights(self) -> dict[str, Tensor]:
        """What is validated and kept: the average where there is one. All processes must ask for it."""
        learned = {name: whole(weight.detach()) for name, weight in (self.average or self.weights).items()}
        return lora.merge(self.model, learned) if self.lora else learned


def decay_groups(model: Transformer, weights: Iterable[nn.Parameter], decay: float) -> list[dict[str, Any]]:
    """Parameter groups for AdamW: matrices decay; norms, biases and tables of embeddings or positions do not.

    A norm or a bias has no scale that decay could keep small, and a row of a table whose token is rare would be
    forgotten between two batches that hold it. A table that is also the output projection counts as a table.
    """
    tables = {part.weight for part in model.modules() if isinstance(part, nn.Embedding)}
    rates: dict[float, list[nn.Parameter]] = {decay: [], 0.0: []}
    for weight in weights:
        rates[0.0 if weight.dim() < 2 or weight in tables else decay].append(weight)
    groups = [{"params": group, "weight_decay": rate} for rate, group in rates.items()]
    return [group for group in groups if group["params"]]


class Loss(nn.Module):
    """A model and what it should minimise: what processes that train together share."""

    def __init__(self, model: Transformer, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(
        self, inputs: Sequence[Tensor | None], places: Int[Tensor, "tokens"], labels: Int[Tensor, "tokens"]
    ) -> Float[Tensor, ""]:
        """The sum over the tokens of a batch; padding never reaches the output projection."""
        passes = self.objective.passes
        read: list[Any] = [None if each is None else torch.cat([each] * passes) for each in inputs]
        hidden = self.model.hidden(*read).unflatten(0, (passes, -1)).flatten(1, 2)
        output = self.model.output
        return self.objective(output.prepare(hidden.index_select(1, places).flatten(0, 1)), labels, output.projection)


class Guard:
    """Tells a step that would do harm from a good one, on the device, so that nobody waits."""

    def __init__(self, device: torch.device) -> None:
        self.mean = torch.zeros((), device=device)  # of the loss of recent good steps
        self.seen = torch.zeros((), device=device)

    @torch.no_grad()
    def judge(self, loss: Float[Tensor, ""], norm: Float[Tensor, ""]) -> Float[Tensor, ""]:
        """1 for a loss or gradient that is not finite, or a loss far above what it was; else 0."""
        exploded = (self.seen >= 20) & (loss > torch.maximum(2 * self.mean, self.mean + 2))
        bad = exploded | ~loss.isfinite() | ~norm.isfinite()
        rate = torch.clamp(1 / (self.seen + 1), min=0.02)
        self.mean = torch.where(bad, self.mean, self.mean.lerp(loss, rate))
        self.seen = self.seen + (~bad).float()
        return bad.float()


@contextmanager
def library_settings(precision: Precision, device: torch.device) -> Iterator[None]:
    """Set what torch keeps for the whole process as training needs it, and afterwards as it was.

    TF32, which keeps 10 of the 23 bits of a float32 factor, is used on a GPU unless `precision` is float32.
    """
    matmul, attention = torch.get_float32_matmul_precision(), torch.backends.cuda.cudnn_sdp_enabled()
    rounded = device.type == "cuda" and precision != "float32"
    torch.set_float32_matmul_precision("high" if rounded else "highest")
    # cuDNN's attention plans anew for every shape: with it, padded batches of real text, which have hundreds of
    # shapes, ran four times slower than without (benchmarks/RESULTS.md). `attention` below lets it in again.
    torch.backends.cuda.enable_cudnn_sdp(attention and device.type != "cuda")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cuda.enable_cudnn_sdp(attention)


def compute_type(precision: Precision, device: str, has_bf16: bool) -> torch.dtype:
    """The type that matrices are multiplied in; weights and their updates are float32 always.

    bf16 has the range of float32, so that no loss must be scaled; float16 has not, and is never chosen.
    """
    chosen = precision == "bf16" or (precision == "auto" and device == "cuda" and has_bf16)
    return torch.bfloat16 if chosen else torch.float32


def compute_type_on(device: torch.device, precision: Precision) -> torch.dtype:
    """The same for a device of this machine. A GPU that only emulates bf16 counts as one without."""
    has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return compute_type(precision, device.type, has_bf16)


def attention(state: State) -> AbstractContextManager[None]:
    """Where all batches have one shape, cuDNN plans once, and is faster than the others with a mask."""
    if state.steady and state.device.type == "cuda":
        return sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
    return nullcontext()


def compile_layers(model: Transformer) -> None:
    """Layer by layer, so that all layers of a stack share what was compiled: seconds instead of minutes."""
    options: dict[str, Any] = {}
    # A fusion that newer versions try for the backward pass of norms made a base step 7% slower.
    if "triton.mix_order_reduction" in torch._inductor.list_options():
        options["triton.mix_order_reduction"] = False
    for part in model.modules():
        if isinstance(part, (Embedding, Layer)):
            part.compile(dynamic=False, options=options)


def recompute_layers(model: Transformer) -> None:
    """Keep only what flows between layers; the backward pass computes the rest again."""
    for part in model.modules():
        if isinstance(part, Layer):
            part.forward = _recomputed(part.forward)  # type: ignore[method-assign]


def _recomputed(forward: Any) -> Any:
    def call(*arguments: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(forward, *arguments, use_reentrant=False)

    return call
