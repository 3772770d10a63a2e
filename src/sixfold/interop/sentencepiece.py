"""Export of a tokeniser to SentencePiece: the same pieces under the same ids.

A SentencePiece model is one protocol-buffer message. This module writes the few fields that a reader needs itself, so
that neither library is required.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from sixfold.errors import RequestError
from sixfold.text.protobuf import float_field, integer_field, message_field
from sixfold.text.sentencepiece_file import BYTE, CONTROL, NORMAL, SPACE, UNKNOWN, USER_DEFINED
from sixfold.text.tokenizer import BYTES, SPECIALS, Tokenizer, span_tokens

MODEL_TYPES = {"unigram": 1, "bpe": 2}


def to_sentencepiece(tokenizer: Tokenizer) -> bytes:
    """Return the bytes of an `.spm` file that encodes any text into the ids of `tokenizer`.

    Three things are different, because SentencePiece cannot express them: U+2581 in a text counts as a space,
    characters of `Tokenizer.character_map` must be replaced before, and runs of more than 256 letters are not cut.
    """
    if tokenizer.algorithm not in MODEL_TYPES:
        raise RequestError(
            f"tokeniser: expected the algorithm bpe or unigram, which SentencePiece has; got {tokenizer.algorithm!r}"
        )
    pieces = b"".join(message_field(1, _piece(*piece)) for piece in _pieces(tokenizer))
    trainer = (
        integer_field(3, MODEL_TYPES[tokenizer.algorithm]) + integer_field(4, tokenizer.vocab) + integer_field(35, 1)
    )
    for offset, name in enumerate(("<unk>", "<bos>", "<eos>", "<pad>")):  # ids are fields 40 to 43, names 45 to 48
        trainer += integer_field(40 + offset, SPECIALS.index(name)) + message_field(45 + offset, name.encode())
    # No characters are changed and no spaces are dropped. A space is put before every text and encoded as U+2581.
    normalizer = message_field(1, b"identity") + integer_field(3, 1) + integer_field(4, 0) + integer_field(5, 1)
    return pieces + message_field(2, trainer) + message_field(3, normalizer)


def _pieces(tokenizer: Tokenizer) -> Iterator[tuple[str, float, int]]:
    """Yield name, score and type of every piece, in the order of the ids."""
    model = json.loads(tokenizer.rust.to_str())["model"]
    scores = [score for _, score in model["vocab"]] if tokenizer.algorithm == "unigram" else None
    spans, byte_pieces = set(span_tokens(tokenizer.spans)), set(BYTES)
    for index, token in enumerate(tokenizer.tokens):
        if token == "<unk>":
            kind = UNKNOWN
        elif index in tokenizer.reserved:
            kind = CONTROL
        elif token in byte_pieces:
            kind = BYTE
        else:
            kind = USER_DEFINED if token in spans else NORMAL
        # BPE merges in the order of the scores, so the pieces that were learned first have the highest.
        score = 0.0 if kind != NORMAL else scores[index] if scores else -float(index)
        yield token.replace(" ", SPACE), score, kind


def _piece(name: str, score: float, kind: int) -> bytes:
    return message_field(1, name.encode()) + float_field(2, score) + integer_field(3, kind)
