"""The number type that matrices are multiplied in, and the torch settings that go with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sixfold.config import Precision


def compute_type(precision: Precision, device: str, has_bf16: bool) -> torch.dtype:
    """Return the type of matrix products; weights and their updates are always float32.

    bf16 has the range of float32, so that no loss must be scaled. float16 has not, and is never chosen.
    """
    chosen = precision == "bf16" or (precision == "auto" and device == "cuda" and has_bf16)
    return torch.bfloat16 if chosen else torch.float32


def compute_type_on(device: torch.device, precision: Precision) -> torch.dtype:
    """Return `compute_type` for a device of this machine. A GPU that only emulates bf16 counts as one without it."""
    has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return compute_type(precision, device.type, has_bf16)


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """Return a context that multiplies matrices in bf16 where `compute_type_on` chooses it."""
    enabled = compute_type_on(device, precision) == torch.bfloat16
    return torch.autocast(device.type, torch.bfloat16, enabled=enabled)


@contextmanager
def library_settings(precision: Precision, device: torch.device) -> Iterator[None]:
    """Set torch's process-wide options as training needs them, and restore them afterwards.

    TF32, which keeps 10 of the 23 bits of a float32 factor, is used on a GPU unless `precision` is float32.
    """
    matmul, attention = torch.get_float32_matmul_precision(), torch.backends.cuda.cudnn_sdp_enabled()
    allows_tf32 = device.type == "cuda" and precision != "float32"
    torch.set_float32_matmul_precision("high" if allows_tf32 else "highest")
    # cuDNN's attention makes a plan for every shape: with it, padded batches of real text, which have hundreds of
    # shapes, ran four times slower than without (benchmarks/RESULTS.md). `attention_backend` enables it again.
    torch.backends.cuda.enable_cudnn_sdp(attention and device.type != "cuda")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(matmul)
        torch.backends.cuda.enable_cudnn_sdp(attention)
