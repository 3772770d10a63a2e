"""The masks of a batch: which places of each text are real, and which of them each place may look at."""

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
    """Texts as rows of one length, filled up with <pad>. True: may be looked at."""

    pieces: list[Pieces]
    padding: Bool[Array, "rows length"]  # of an encoder: all that is real
    causal: Bool[Array, "length length"]  # of a decoder: what stands before, and itself
    both: Bool[Array, "rows length length"]  # of a decoder over this batch

    def to_dict(self) -> dict[str, Any]:
        return {
            "ids": [each.ids for each in self.pieces], "texts": [each.texts for each in self.pieces],
            "padding": self.padding.tolist(), "causal": self.causal.tolist(), "both": self.both.tolist(),
        }  # fmt: skip


def masks(
    tokenizer: Tokenizer, texts: Sequence[str], tag: Sequence[int] = (), *, eos: int, most: int | None = None
) -> Masks:
    """Of these texts as a model reads them: the tag, the pieces, <eos>, and padding up to the longest.

    A text of more than `most` pieces is refused before any mask is made, as masks grow by the square of its length.
    """
    if not texts:
        raise RequestError("texts: expected at least one; got none")
    lengths = np.array([len(tag) + len(ids) + 1 for ids in tokenizer.encode_batch(texts)])
    longest = int(lengths.max())
    if most is not None and longest > most:
        raise RequestError(f"texts: expected at most {most} pieces each; got {longest}", "take shorter texts")
    pad = tokenizer.specials.get("pad", eos)
    pieces = [
        pieces_of_text(tokenizer, text, tag, [eos, *[pad] * (longest - length)])
        for text, length in zip(texts, lengths.tolist(), strict=True)
    ]
    padding, causal = np.arange(longest)[None] < lengths[:, None], causal_mask(longest)[0, 0]
    return Masks(pieces, padding, causal, padding[:, None, :] & causal)
