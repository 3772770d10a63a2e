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
    """Heads of one decoder layer, both counted from 0, and the decoding step whose attention stands for a token.

    Step t reads token t - 1 (<bos> at step 0) and writes token t. Lower layers know little yet of the token that is to
    be written and look where the token that was just read comes from; there `reads_token` is true.
    """

    layer: int
    heads: tuple[int, ...]
    reads_token: bool

    def token_weights(self, attention: Float[np.ndarray, "steps source"]) -> Float[np.ndarray, "target source"]:
        """The rows that stand for the tokens of a target, of the rows of all its steps, that of <eos> included."""
        return attention[1:] if self.reads_token else attention[:-1]

    def to_card(self) -> dict[str, Any]:
        """The entry of a model's card that `aligning_heads` reads."""
        return {CARD_KEY: asdict(self) | {"heads": list(self.heads)}}


def aligning_heads(card: Mapping[str, Any], config: ModelConfig) -> AligningHeads:
    """The heads that a model's card names; without a valid entry, all heads of the last layer at the writing step."""
    entry = card.get(CARD_KEY)
    if isinstance(entry, Mapping):
        layer, heads, reads_token = (entry.get(name) for name in ("layer", "heads", "reads_token"))
        if type(layer) is int and isinstance(heads, Sequence) and type(reads_token) is bool:
            named = AligningHeads(layer, tuple(heads), reads_token)
            if fits(named, config):
                return named
    return AligningHeads(config.decoder_layers - 1, tuple(range(config.heads)), False)


def fits(chosen: AligningHeads, config: ModelConfig) -> bool:
    """Whether a model has these heads, and every engine can take their mean.

    CTranslate2 takes the mean of the first heads of a layer. Heads with keys of their own can be reordered freely;
    of heads that share keys, only those of one group, or all.
    """
    is_head = [type(head) is int and 0 <= head < config.heads for head in chosen.heads]
    if not is_head or not all(is_head) or len(set(chosen.heads)) < len(chosen.heads):
        return False
    shared = config.heads // config.groups
    is_reorderable = len({head // shared for head in chosen.heads}) == 1 or shared == 1
    return 0 <= chosen.layer < config.decoder_layers and (is_reorderable or len(chosen.heads) == config.heads)


def align(attention: Float[np.ndarray, "target source"], is_text: Sequence[bool]) -> Float[np.ndarray, "target source"]:
    """The share of each source token in each target token, from attention weights without tags and <eos>.

    `is_text` is false for source tokens that stand for no text, such as a mere space: they have no share.
    A weight counts by its share of its row and by its share of its column, so that a source token which every target
    token looks at a little is no word's origin. Rows of the result add up to 1, or to 0 where nothing was looked at.
    """
    weights = attention * np.asarray(is_text, attention.dtype)
    columns = weights.sum(axis=0, keepdims=True)
    both = weights * weights / np.where(columns > 0, columns, 1)
    rows = both.sum(axis=1, keepdims=True)
    return both / np.where(rows > 0, rows, 1)


def word_weights(
    weights: Float[np.ndarray, "target source"], targets: Sequence[Sequence[int]], sources: Sequence[Sequence[int]]
) -> Float[np.ndarray, "target_words source_words"]:
    """Weights of tokens as those of words, each a list of tokens: the mean of a word's rows, the sum of its columns."""
    rows, columns = _membership(targets, weights.shape[0]), _membership(sources, weights.shape[1])
    return rows / rows.sum(axis=1, keepdims=True) @ weights @ columns.T


def _membership(words: Sequence[Sequence[int]], count: int) -> Float[np.ndarray, "words tokens"]:
    rows = np.zeros((len(words), count), np.float32)
    for row, tokens in zip(rows, words, strict=True):
        row[list(tokens)] = 1
    return rows
