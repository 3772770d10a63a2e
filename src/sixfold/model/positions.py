"""Position encodings: sinusoids, a learned table, or rotations of queries and keys."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sixfold.config import Layout, RotaryScaling, Spacing


def angles(
    positions: Int[Tensor, "rows length"], width: int, base: float, spacing: Spacing = "open"
) -> Float[Tensor, "rows length pairs"]:
    """Return pos / base^(2i/width) for each pair i of features, in float64: float32 is inexact at large positions.

    With closed spacing the exponents are i/(pairs - 1), so that the last one is 1, as in tensor2tensor and Marian.
    """
    steps = width // 2 if spacing == "open" else max(1, width // 2 - 1)
    exponents = torch.arange(width // 2, dtype=torch.float64, device=positions.device) / steps
    return positions[..., None].double() * torch.pow(base, -exponents)


def pair_up(
    first: Float[Tensor, "*any pairs"], second: Float[Tensor, "*any pairs"], layout: Layout
) -> Float[Tensor, "*any width"]:
    """Arrange the two features of each pair as neighbours (0 1 0 1 …) or in halves (0 0 … 1 1 …)."""
    if layout == "interleaved":
        return torch.stack((first, second), dim=-1).flatten(-2)
    return torch.cat((first, second), dim=-1)


def unpair(x: Float[Tensor, "*any width"], layout: Layout) -> tuple[Tensor, Tensor]:
    """Return the first and the second features of all pairs: the inverse of `pair_up`."""
    if layout == "interleaved":
        return x[..., 0::2], x[..., 1::2]
    first, second = x.chunk(2, dim=-1)
    return first, second


class Sinusoid(nn.Module):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)) (paper §3.5)."""

    def __init__(self, d_model: int, layout: Layout, offset: int, spacing: Spacing = "open") -> None:
        super().__init__()
        self.d_model = d_model
        self.spacing = spacing
        self.layout = layout
        self.offset = offset

    def forward(self, positions: Int[Tensor, "rows length"]) -> Float[Tensor, "rows length d_model"]:
        angle = angles(positions + self.offset, self.d_model, 10000.0, self.spacing)
        return pair_up(angle.sin(), angle.cos(), self.layout).float()

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, layout={self.layout}, spacing={self.spacing}"


class VectorTable(nn.Embedding):
    """A table of vectors without torch's own initialisation: `initialise` or `load_model` sets its values.

    On the meta device torch's initialisation would do nothing but import a second's worth of modules.
    """

    def reset_parameters(self) -> None:
        """Leave the values as they are."""


class LearnedPositions(VectorTable):
    """A table with one learned vector for each position."""

    def __init__(self, d_model: int, max_length: int, offset: int) -> None:
        super().__init__(offset + max_length, d_model)
        self.offset = offset

    def forward(self, positions: Int[Tensor, "rows length"]) -> Float[Tensor, "rows length d_model"]:
        return super().forward(positions + self.offset)


class AngleScaling(NamedTuple):
    """How the angles of rotary positions are scaled, so that a model reads longer texts than it was trained on."""

    kind: RotaryScaling = "none"
    factor: float = 1.0
    low: float = 1.0
    high: float = 4.0
    original_length: int = 8192

    def factors(self, frequencies: Float[Tensor, "pairs"]) -> Float[Tensor, "pairs"]:
        """Return what each pair's angle is multiplied by, from its angle at position 1."""
        slow = torch.full_like(frequencies, 1 / self.factor)
        if self.kind == "none":
            return torch.ones_like(slow)
        if self.kind == "linear":
            return slow
        # Llama 3: pairs that turn often in the original length keep their angles; between the limits it is a mixture.
        turns = self.original_length * frequencies / (2 * math.pi)
        kept = ((turns - self.low) / (self.high - self.low)).clamp(0, 1)
        return (1 - kept) * slow + kept


UNSCALED = AngleScaling()


class Rotation(NamedTuple):
    """The cosine and sine of each feature's angle at each position."""

    cos: Float[Tensor, "#rows 1 length d_head"]
    sin: Float[Tensor, "#rows 1 length d_head"]
    layout: Layout


class Rotary(nn.Module):
    """Rotates each pair of features of queries and keys by an angle proportional to the position (RoFormer, eq. 14)."""

    def __init__(self, d_head: int, layout: Layout, base: float, scaling: AngleScaling = UNSCALED) -> None:
        super().__init__()
        self.scaling = scaling
        self.d_head = d_head
        self.layout = layout
        self.base = base

    def forward(self, positions: Int[Tensor, "rows length"]) -> Rotation:
        angle = angles(positions, self.d_head, self.base)[:, None]
        if self.scaling.kind != "none":
            angle = angle * self.scaling.factors(angles(positions.new_ones(1, 1), self.d_head, self.base)[0, 0])
        angle = pair_up(angle, angle, self.layout)
        return Rotation(angle.cos().float(), angle.sin().float(), self.layout)

    def extra_repr(self) -> str:
        scaling = f", scaling={self.scaling.kind}" if self.scaling.kind != "none" else ""
        return f"d_head={self.d_head}, layout={self.layout}, base={self.base:g}{scaling}"


def rotate(
    x: Float[Tensor, "rows heads length d_head"], rotation: Rotation
) -> Float[Tensor, "rows heads length d_head"]:
    """Rotate queries or keys by the angles of their positions."""
    first, second = unpair(x, rotation.layout)
    quarter_turn = pair_up(-second, first, rotation.layout)
    return (x * rotation.cos + quarter_turn * rotation.sin).to(x.dtype)


def positions_in_segments(segments: Int[Tensor, "rows length"]) -> Int[Tensor, "rows length"]:
    """Count positions from the first token of each segment, so that 1 1 2 2 2 0 gives 0 1 0 1 2 0.

    Padding (segment 0) has position 0, which every position table has.
    """
    columns = torch.arange(segments.size(1), device=segments.device).expand_as(segments)
    is_first = torch.ones_like(segments, dtype=torch.bool)
    is_first[:, 1:] = segments[:, 1:] != segments[:, :-1]
    return torch.where(segments == 0, 0, columns - torch.where(is_first, columns, 0).cummax(1).values)
