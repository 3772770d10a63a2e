"""What training minimises: cross-entropy with label smoothing, summed over tokens, and never all logits at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from sixfold.model.transformer import Output

Hidden = Float[Tensor, "tokens_of_all_passes d_model"]
Labels = Int[Tensor, "tokens"]
Scalar = Float[Tensor, ""]
# Logits that exist at one time. A CPU likes them to stay in its cache, and its allocator to have them back at once.
PIECE = {"cpu": 2**22, "cuda": 2**28}


def smoothed_cross_entropy(logits: Float[Tensor, "tokens vocab"], labels: Labels, smoothing: float) -> Scalar:
    """A label is wanted with probability 1 - smoothing, the rest is spread over the vocabulary (paper §5.4)."""
    return _CrossEntropy.apply(logits, labels, smoothing)


def at_least_float32(x: Tensor) -> Tensor:
    """bf16 is too coarse to sum over a vocabulary; a model in double precision stays in it."""
    return x if x.dtype == torch.float64 else x.float()


class _CrossEntropy(torch.autograd.Function):
    """log Σ exp(x) - Σ wanted · x, whose gradient is softmax(x) - wanted: one pass over the logits each way.

    Written out because the compiler takes three passes for the library's version.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        x = at_least_float32(logits)
        normaliser = x.logsumexp(-1, keepdim=True)
        ctx.save_for_backward(logits, labels, normaliser)
        ctx.smoothing = smoothing
        label = x.gather(1, labels[:, None])
        return (normaliser - (1 - smoothing) * label - smoothing * x.mean(-1, keepdim=True)).sum()

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        logits, labels, normaliser = ctx.saved_tensors
        vocab = logits.size(1)
        is_label = torch.arange(vocab, device=labels.device) == labels[:, None]
        wanted = torch.where(is_label, 1 - ctx.smoothing + ctx.smoothing / vocab, ctx.smoothing / vocab)
        gradient = ((at_least_float32(logits) - normaliser).exp() - wanted) * scale
        return gradient.to(logits.dtype), None, None


def divergence(one: Float[Tensor, "tokens vocab"], other: Float[Tensor, "tokens vocab"]) -> Scalar:
    """R-Drop: the mean of the two Kullback-Leibler divergences between what two passes predict."""
    log_p, log_q = (at_least_float32(logits).log_softmax(-1) for logits in (one, other))
    return ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum() / 2


def loss_in_pieces(output: Output, hidden: Float[Tensor, "tokens d_model"], labels: Labels) -> Scalar:
    """For validation: without smoothing and without a gradient."""
    size = max(1, PIECE[hidden.device.type] // output.projection.out_features)
    parts = zip(hidden.split(size), labels.split(size), strict=True)
    return torch.stack([smoothed_cross_entropy(output(x), y, 0.0) for x, y in parts]).sum()


class Objective:
    """The loss of hidden states under an output projection.

    With `rdrop`, the hidden states are those of two passes over the same tokens, one after the other; the loss is then
    the mean of both passes, so that it stays comparable.
    """

    def __init__(self, smoothing: float, rdrop: float = 0.0, compiled: bool = False) -> None:
        self.smoothing = smoothing
        self.rdrop = rdrop
        self.passes = 2 if rdrop else 1
        self.of_piece: Callable[..., Scalar] = self._of_piece
        if compiled:
            self.of_piece = torch.compile(self._of_piece, dynamic=True)

    def __call__(self, hidden: Hidden, labels: Labels, projection: nn.Linear) -> Scalar:
        """A sum over `labels`. Its gradient is found piece by piece together with the loss, in bounded memory."""
        return _InPieces.apply(hidden, projection.weight, projection.bias, labels, self)

    def _of_piece(self, hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Scalar:
        logits = F.linear(hidden, weight, bias).unflatten(0, (self.passes, -1))
        each = [smoothed_cross_entropy(of_pass, labels, self.smoothing) for of_pass in logits]
        loss = torch.stack(each).mean()
        return loss + self.rdrop * divergence(logits[0], logits[1]) if self.rdrop else loss


class _InPieces(torch.autograd.Function):
    """Loss and gradients of one piece after another; nothing of a piece is kept but its gradients.

    A base model's logits for 64k tokens of a 32k vocabulary are 8 GB in float32, and their gradient as much again.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, objective: Objective
    ) -> Tensor:
        pieces = max(1, -(-objective.passes * len(labels) * len(weight) // PIECE[hidden.device.type]))
        size = max(1, -(-len(labels) // pieces))
        hidden_of_pass = hidden.unflatten(0, (objective.passes, -1))
        loss = at_least_float32(hidden.new_zeros(()))
        hidden_gradient = torch.empty_like(hidden_of_pass)
        leaves = [leaf.detach().requires_grad_() for leaf in (weight, bias) if leaf is not None]
        gradients = [torch.zeros_like(leaf) for leaf in leaves]
        for begin in range(0, len(labels), size):
            part = slice(begin, begin + size)
            with torch.enable_grad():
                piece = hidden_of_pass[:, part].flatten(0, 1).detach().requires_grad_()
                each = objective.of_piece(piece, leaves[0], leaves[1] if bias is not None else None, labels[part])
                found, *others = torch.autograd.grad(each, [piece, *leaves])
            loss += each.detach()
            hidden_gradient[:, part] = found.unflatten(0, (objective.passes, -1))
            for total, other in zip(gradients, others, strict=True):
                total += other
        ctx.save_for_backward(hidden_gradient.flatten(0, 1), *gradients)
        return loss

    @staticmethod
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, *bias = (scale * gradient for gradient in ctx.saved_tensors)
        return hidden, weight, bias[0] if bias else None, None, None
