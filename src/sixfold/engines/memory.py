"""How much memory an open model takes on a CPU, estimated before it is opened.

The numbers of bytes were measured as growth of the resident memory of a process; `tests/engines/test_memory.py`
measures again.
"""

from __future__ import annotations

import math

from sixfold.config import Compute
from sixfold.modelfile import ModelFile
from sixfold.quantization import is_quantized_shape
from sixfold.weights import shapes

TOKENIZER_BYTES = 16  # for each character of a tokeniser's JSON
TOKEN_BYTES = 140  # for each entry of a vocabulary of CTranslate2, which has it as a string and in a map
CANDIDATE_BYTES = 8  # for each entry of a shortlist in CTranslate2


def file_memory(file: ModelFile) -> int:
    """Return the bytes that the contents of a model file take: its tokenisers and its shortlist, but no weights."""
    tokenizers = [each for each in (file.tokenizer, file.target_tokenizer) if each is not None]
    lists = file.shortlist
    shortlist = 0 if lists is None else lists.targets.nbytes + lists.begins.nbytes + lists.always.nbytes
    return sum(TOKENIZER_BYTES * len(each.to_json()) for each in tokenizers) + shortlist


def engine_memory(file: ModelFile, compute: Compute) -> int:
    """Return the bytes that an open engine takes: its weights, vocabularies and shortlist.

    What it computes with while it translates comes on top.
    """
    config = file.config.model
    weights = 0
    for name, shape in shapes(config).items():
        is_int8 = compute == "int8" and is_quantized_shape(name, shape)
        weights += math.prod(shape) + 4 * shape[0] if is_int8 else 4 * math.prod(shape)
    if config.positions == "sinusoidal":  # a table for each stack
        weights += 4 * config.max_length * config.d_model * len(config.stacks)
    tokens = config.vocab + (config.vocab_read if config.vocab_read != config.vocab else 0)
    candidates = 0 if file.shortlist is None else len(file.shortlist.targets)
    return weights + TOKEN_BYTES * tokens + CANDIDATE_BYTES * candidates


def writing_memory(file: ModelFile) -> int:
    """Return the bytes that both engines of a generator take when they are open, without keys and values."""
    return engine_memory(file, "int8" if file.storage == "int8" else "float32") + engine_memory(file, "float32")
