"""What training minimises: cross-entropy with label smoothing, summed over the real tokens."""

from __future__ import annotations

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

NOTHING = -100  # a label that asks for nothing; not the id of <pad>, which published models share with <eos>


def smoothed_cross_entropy(
    logits: Float[Tensor, "rows length vocab"], labels: Int[Tensor, "rows length"], smoothing: float
) -> Float[Tensor, ""]:
    """The sum over labels that ask for a token; it wants 1 - smoothing, the rest is spread evenly (paper §5.4)."""
    return F.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=NOTHING, label_smoothing=smoothing, reduction="sum"
    )
