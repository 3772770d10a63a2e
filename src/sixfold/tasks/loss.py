"""The loss of tokens: cross-entropy with label smoothing and R-Drop, in chunks that bound the memory of logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sixfold.model.transformer import PLAIN, Execution, Output
from sixfold.tasks.task import Batch

Hidden = Float[Tensor, "tokens_of_all_passes d_model"]
Labels = Int[Tensor, "tokens"]
Scalar = Float[Tensor, ""]
# Logits that exist at one time. On a CPU they should stay in its cache.
LOGITS_PER_CHUNK = {"cpu": 2**22, "cuda": 2**28}


def smoothed_cross_entropy(
    logits: Float[Tensor, "tokens vocab"],
    labels: Labels,
    smoothing: float,
    forbidden: Int[Tensor, " forbidden"] | None = None,
) -> Scalar:
    """Return the cross-entropy with 1 - smoothing for the label, the rest spread over the vocabulary (paper §5.4).

    Nothing is spread over the `forbidden` tokens, which a bias keeps from ever being written.
    """
    return _CrossEntropy.apply(logits, labels, smoothing, forbidden)


def at_least_float32(x: Tensor) -> Tensor:
    """Return float32 for bf16, which is too coarse to sum over a vocabulary; double precision stays as it is."""
    return x if x.dtype == torch.float64 else x.float()


class _CrossEntropy(torch.autograd.Function):
    """log Σ exp(x) - Σ p · x for a target distribution p, and its gradient softmax(x) - p, each in one pass.

    It is written out because the compiler makes three passes for the library's version.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, smoothing: float, forbidden: Tensor | None) -> Tensor:
        x = at_least_float32(logits)
        normaliser = x.logsumexp(-1, keepdim=True)
        ctx.save_for_backward(logits, labels, normaliser, forbidden)
        ctx.smoothing = smoothing
        label = x.gather(1, labels[:, None])
        if forbidden is None:
            mean = x.mean(-1, keepdim=True)
        else:
            total = x.sum(-1, keepdim=True) - x[:, forbidden].sum(-1, keepdim=True)
            mean = total / (x.size(1) - len(forbidden))
        return (normaliser - (1 - smoothing) * label - smoothing * mean).sum()

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        logits, labels, normaliser, forbidden = ctx.saved_tensors
        vocab = logits.size(1)
        share = ctx.smoothing / (vocab if forbidden is None else vocab - len(forbidden))
        is_label = torch.arange(vocab, device=labels.device) == labels[:, None]
        target = torch.where(is_label, 1 - ctx.smoothing + share, share)
        if forbidden is not None:
            target.index_fill_(1, forbidden, 0.0)
        gradient = ((at_least_float32(logits) - normaliser).exp() - target) * scale
        return gradient.to(logits.dtype), None, None, None


def divergence(first: Float[Tensor, "tokens vocab"], second: Float[Tensor, "tokens vocab"]) -> Scalar:
    """Return the mean of the two Kullback-Leibler divergences between the predictions of two passes (R-Drop)."""
    log_p, log_q = (at_least_float32(logits).log_softmax(-1) for logits in (first, second))
    return ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum() / 2


def chunked_cross_entropy(output: Output, hidden: Float[Tensor, "tokens d_model"], labels: Labels) -> Scalar:
    """Return the cross-entropy for validation: without smoothing and without a gradient."""
    size = max(1, LOGITS_PER_CHUNK[hidden.device.type] // output.projection.out_features)
    chunks = zip(hidden.split(size), labels.split(size), strict=True)
    return torch.stack([smoothed_cross_entropy(output(x), y, 0.0) for x, y in chunks]).sum()


class TokenLoss:
    """The loss of a model that predicts tokens: smoothed cross-entropy, summed over the labels of a batch.

    With `rdrop`, two passes with different dropout are made over the same batch. The loss is then the mean of both
    passes, so that it stays comparable, plus `rdrop` times the divergence of their predictions. `forbidden` are tokens
    that the bias of an imported model forbids; label smoothing leaves them out.
    """

    def __init__(
        self, smoothing: float = 0.0, rdrop: float = 0.0, compiled: bool = False, forbidden: Sequence[int] = ()
    ) -> None:
        self.smoothing = smoothing
        self.rdrop = rdrop
        self.forbidden = torch.tensor(forbidden, dtype=torch.long) if forbidden else None
        self.passes = 2 if rdrop else 1
        self.chunk_loss: Callable[..., Scalar] = self._chunk_loss
        if compiled:
            self.chunk_loss = torch.compile(self._chunk_loss, dynamic=True)

    def __call__(self, model: Any, batch: Batch, execution: Execution = PLAIN) -> Scalar:
        """Return the loss of a batch; padding never reaches the output projection."""
        inputs: dict[str, Any] = {
            name: None if tensor is None else torch.cat([tensor] * self.passes) for name, tensor in batch.inputs.items()
        }
        hidden = model.hidden(**inputs, execution=execution).unflatten(0, (self.passes, -1)).flatten(1, 2)
        hidden = hidden.index_select(1, batch.label_positions).flatten(0, 1)
        return self.of_hidden(model.output.prepare(hidden), batch.labels, model.output.projection)

    def of_hidden(self, hidden: Hidden, labels: Labels, projection: nn.Linear) -> Scalar:
        """Return the loss of hidden states, computed together with its gradient chunk by chunk in bounded memory."""
        return _ChunkedLoss.apply(hidden, projection.weight, projection.bias, labels, self)

    def _chunk_loss(self, hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Scalar:
        logits = F.linear(hidden, weight, bias).unflatten(0, (self.passes, -1))
        forbidden = None if self.forbidden is None else self.forbidden.to(labels.device)
        losses = [smoothed_cross_entropy(of_pass, labels, self.smoothing, forbidden) for of_pass in logits]
        loss = torch.stack(losses).mean()
        return loss + self.rdrop * divergence(logits[0], logits[1]) if self.rdrop else loss


class _ChunkedLoss(torch.autograd.Function):
    """Loss and gradients of one chunk after another; nothing of a chunk is kept but its gradients.

    A base model's logits for 64k tokens of a 32k vocabulary are 8 GB in float32, and their gradient as much again.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, token_loss: TokenLoss
    ) -> Tensor:
        passes = token_loss.passes
        chunks = max(1, -(-passes * len(labels) * len(weight) // LOGITS_PER_CHUNK[hidden.device.type]))
        size = max(1, -(-len(labels) // chunks))
        hidden_of_pass = hidden.unflatten(0, (passes, -1))
        loss = at_least_float32(hidden.new_zeros(()))
        hidden_gradient = torch.empty_like(hidden_of_pass)
        leaves = [leaf.detach().requires_grad_() for leaf in (weight, bias) if leaf is not None]
        gradients = [torch.zeros_like(leaf) for leaf in leaves]
        for begin in range(0, len(labels), size):
            chunk = slice(begin, begin + size)
            with torch.enable_grad():
                states = hidden_of_pass[:, chunk].flatten(0, 1).detach().requires_grad_()
                chunk_loss = token_loss.chunk_loss(
                    states, leaves[0], leaves[1] if bias is not None else None, labels[chunk]
                )
                states_gradient, *leaf_gradients = torch.autograd.grad(chunk_loss, [states, *leaves])
            loss += chunk_loss.detach()
            hidden_gradient[:, chunk] = states_gradient.unflatten(0, (passes, -1))
            for total, gradient in zip(gradients, leaf_gradients, strict=True):
                total += gradient
        ctx.save_for_backward(hidden_gradient.flatten(0, 1), *gradients)
        return loss

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, *bias = (scale * gradient for gradient in ctx.saved_tensors)
        return hidden, weight, bias[0] if bias else None, None, None
