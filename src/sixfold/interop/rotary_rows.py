"""The order of the rows of query and key projections: rotary pairs as neighbours (0 1 0 1 …) or halves (0 0 … 1 1 …).

A model computes the same with either order, if its positions have the same layout. transformers has halves; llama2.c
and GGUF files of LLaMA have neighbours.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int


def rows_in_halves(heads: int, d_head: int) -> Int[np.ndarray, "width"]:  # noqa: F821
    """Return where each row of a projection in halves is in one of neighbours.

    One head of width 6: 0 2 4 1 3 5.
    """
    order = np.r_[0:d_head:2, 1:d_head:2]
    return (np.arange(heads)[:, None] * d_head + order).reshape(-1)
