"""A start token for models that begin with a vector of zeros, as those of Marian do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sixfold.modelfile import ModelFile
from sixfold.tensorfile import Tensor

FORBIDDEN = -1e4  # the bias of a token that may never be written
START = "<pad>"  # transformers gives the same token to Marian's models


def forbidden_tokens(file: ModelFile) -> list[int]:
    """Return the tokens that the bias of a model keeps from ever being written."""
    if not file.config.model.output_bias:
        return []
    tokens: list[int] = np.flatnonzero(file.weight("output.projection.bias") <= FORBIDDEN / 2).tolist()
    return tokens


def add_start_token(file: ModelFile, tokens: Sequence[str]) -> tuple[ModelFile, list[str]]:
    """Return a model with one more target token, whose embedding is zero and which is never written, and the tokens.

    It is the <pad> and the <bos> of the model.
    """
    config = file.config.model
    weights = file.weights()
    last = "encoder" if config.share_embeddings else "decoder"
    names = [f"{last}.embedding.token.weight", *([] if config.tie_output else ["output.projection.weight"])]
    for name in names:
        weights[name] = np.concatenate([weights[name], np.zeros((1, config.d_model), np.float32)])
    bias = weights["output.projection.bias"] if config.output_bias else np.zeros(config.vocab, np.float32)
    weights["output.projection.bias"] = np.append(bias, np.float32(FORBIDDEN))
    start = config.vocab
    source_vocab = 0 if config.share_embeddings else config.vocab_read
    pad = start if config.share_embeddings else config.pad
    model = replace(config, vocab=start + 1, source_vocab=source_vocab, output_bias=True, bos=start, pad=pad)
    tensors = {name: Tensor("F32", array) for name, array in weights.items()}
    return replace(file, config=replace(file.config, model=model), tensors=tensors), [*tokens, START]
