"""Which heads of the cross-attention align a target with its source, and how their weights become an alignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from sixfold.config import ModelConfig

CARD_KEY = "alignment"


@dataclass(frozen=True)
class AligningHeads:
    """Heads of one decoder layer, and which decoding step gives the attention of a token; all count from 0.

    Step t reads token t - 1 (<bos> at step 0) and writes token t. In lower layers, attention follows the token that was
    read rather than the one to be written; for these layers `reads_token` is true.
    """

    layer: int
    heads: tuple[int, ...]
    reads_token: bool

    def token_weights(self, attention: Float[np.ndarray, "steps source"]) -> Float[np.ndarray, "target source"]:
        """Select the rows of the target tokens from the rows of all steps, that of <eos> included."""
        return attention[1:] if self.reads_token else attention[:-1]

    def to_card(self) -> dict[str, Any]:
        """Return the entry of a model's card that `aligning_heads` reads."""
        return {CARD_KEY: asdict(self) | {"heads": list(self.heads)}}


def aligning_heads(card: Mapping[str, Any], config: ModelConfig) -> AligningHeads:
    """Return the heads in a model's card, or all heads of the last layer at the writing step without a valid entry."""
    entry = card.get(CARD_KEY)
    if isinstance(entry, Mapping):
        layer, heads, reads_token = (entry.get(name) for name in ("layer", "heads", "reads_token"))
        if type(layer) is int and isinstance(heads, Sequence) and type(reads_token) is bool:
            stored = AligningHeads(layer, tuple(heads), reads_token)
            if fits(stored, config):
                return stored
    return AligningHeads(config.decoder_layers - 1, tuple(range(config.heads)), False)


def fits(chosen: AligningHeads, config: ModelConfig) -> bool:
    """Return whether a model has these heads, and every engine can average them.

    CTranslate2 averages the first heads of a layer. Heads with their own keys can be reordered freely; of heads that
    share keys, only those of one group, or all.
    """
    is_head = [type(head) is int and 0 <= head < config.heads for head in chosen.heads]
    if not is_head or not all(is_head) or len(set(chosen.heads)) < len(chosen.heads):
        return False
    heads_per_group = config.heads // config.groups
    is_reorderable = len({head // heads_per_group for head in chosen.heads}) == 1 or heads_per_group == 1
    return 0 <= chosen.layer < config.decoder_layers and (is_reorderable or len(chosen.heads) == config.heads)


def align(attention: Float[np.ndarray, "target source"], is_text: Sequence[bool]) -> Float[np.ndarray, "target source"]:
    """Return the share of each source token in each target token, from attention weights without tags and <eos>.

    `is_text` is false for source tokens without text, such as a single space: their share is 0. Each weight is
    multiplied by its share of its column, so that a source token that gets a little attention from every target token
    counts little. Rows of the result add up to 1, or to 0 if all their weights are 0.
    """
    weights = attention * np.asarray(is_text, attention.dtype)
    columns = weights.sum(axis=0, keepdims=True)
    scaled = weights * weights / np.where(columns > 0, columns, 1)
    rows = scaled.sum(axis=1, keepdims=True)
    return scaled / np.where(rows > 0, rows, 1)


def word_weights(
    weights: Float[np.ndarray, "target source"], targets: Sequence[Sequence[int]], sources: Sequence[Sequence[int]]
) -> Float[np.ndarray, "target_words source_words"]:
    """Return weights of words, each a list of tokens: the mean of the rows and the sum of the columns of its tokens."""
    rows, columns = _membership(targets, weights.shape[0]), _membership(sources, weights.shape[1])
    return rows / rows.sum(axis=1, keepdims=True) @ weights @ columns.T


def _membership(words: Sequence[Sequence[int]], count: int) -> Float[np.ndarray, "words tokens"]:
    """Return a matrix that is 1 where a token belongs to a word."""
    rows = np.zeros((len(words), count), np.float32)
    for row, tokens in zip(rows, words, strict=True):
        row[list(tokens)] = 1
    return rows
