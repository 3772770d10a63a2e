"""The masks of a batch: which tokens are padding, and which tokens each position may look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool

from sixfold.errors import RequestError
from sixfold.explorer.forward import Array, causal_mask
from sixfold.explorer.pieces import Pieces, pieces_of_text
from sixfold.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Masks:
    """Texts padded to one length, and the masks over them. True = may look."""

    pieces: list[Pieces]
    padding: Bool[Array, "rows length"]  # what an encoder may look at: all real tokens
    causal: Bool[Array, "length length"]  # what a decoder may look at: itself and earlier positions
    combined: Bool[Array, "rows length length"]  # both conditions, for a decoder over this batch

    def to_dict(self) -> dict[str, Any]:
        """Return what the HTTP interface sends."""
        return {
            "ids": [row.ids for row in self.pieces], "texts": [row.texts for row in self.pieces],
            "padding": self.padding.tolist(), "causal": self.causal.tolist(), "both": self.combined.tolist(),
        }  # fmt: skip


def batch_masks(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    before: Sequence[int] = (),
    after: Sequence[int] = (),
    max_pieces: int | None = None,
) -> Masks:
    """Return the masks of these texts as a model reads them: pieces with special tokens around them, then padding.

    Masks grow with the square of the length, so a text of more than `max_pieces` pieces is refused before any mask is
    made.
    """
    if not texts:
        raise RequestError("texts: expected at least one; got none")
    lengths = np.array([len(before) + len(ids) + len(after) for ids in tokenizer.encode_batch(texts)])
    longest = int(lengths.max())
    if max_pieces is not None and longest > max_pieces:
        raise RequestError(f"texts: expected at most {max_pieces} pieces each; got {longest}", "use shorter texts")
    pad = tokenizer.specials.get("pad", 0)
    pieces = [
        pieces_of_text(tokenizer, text, before, [*after, *[pad] * (longest - length)])
        for text, length in zip(texts, lengths.tolist(), strict=True)
    ]
    padding, causal = np.arange(longest)[None] < lengths[:, None], causal_mask(longest)[0, 0]
    return Masks(pieces, padding, causal, padding[:, None, :] & causal)
