"""How a text became pieces: the words that it is cut into first, and the merges that joined their characters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sixfold.errors import RequestError
from sixfold.text.tokenizer import BYTES, Tokenizer
from sixfold.translation.plan import replace_surrogates

LONGEST = 1000  # characters of a text: a foreign tokeniser may take it for one word, of as many stages


class Word(NamedTuple):
    """What no piece crosses the borders of, with the space before it, and its pieces from stage to stage."""

    text: str
    stages: list[list[str]]


@dataclass(frozen=True)
class Bpe:
    """What byte-pair encoding has learnt."""

    vocab: Mapping[str, int]
    ranks: Mapping[tuple[str, str], int]  # the lower, the earlier
    is_whole: bool  # a word that is a piece is taken at once, as LLaMA 3 does


_read: WeakKeyDictionary[Tokenizer, Bpe | None] = WeakKeyDictionary()


def merges(tokenizer: Tokenizer, text: str) -> list[Word]:
    """Each word of a text as it was put together; the last stages together are the pieces that the model reads.

    In BPE the first stage is characters, or the bytes of one that has no piece, and each next stage has one more
    merge: of all pairs side by side the one that was learnt first, the leftmost of several. WordPiece takes the
    longest pieces and unigram the likeliest, with no merges, so that their stages are only characters and pieces.
    """
    if len(text) > LONGEST:
        raise RequestError(f"text: expected at most {LONGEST} characters; got {len(text)}", "take a sentence")
    text, rust = tokenizer.read(replace_surrogates(text)), tokenizer.rust
    if rust.normalizer is not None:
        text = rust.normalizer.normalize_str(text)
    words = [text] if rust.pre_tokenizer is None else [word for word, _ in rust.pre_tokenizer.pre_tokenize_str(text)]
    bpe = _bpe_of(tokenizer)
    return [Word(word, _stages(tokenizer, bpe, word)) for word in words if word]


def _stages(tokenizer: Tokenizer, bpe: Bpe | None, word: str) -> list[list[str]]:
    pieces = _pieces(tokenizer, word)
    if bpe is None or (bpe.is_whole and word in bpe.vocab):
        return [list(word), pieces] if pieces != list(word) else [pieces]
    stages = [[part for char in word for part in _spelt(bpe, char)]]
    while True:
        before = stages[-1]
        pairs = [(bpe.ranks[pair], place) for place, pair in enumerate(pairwise(before)) if pair in bpe.ranks]
        if not pairs:
            break
        _, place = min(pairs)
        stages.append([*before[:place], before[place] + before[place + 1], *before[place + 2 :]])
    # A foreign tokeniser may have rules of its own, such as marks at the ends of words.
    is_explained = tokenizer.algorithm != "foreign" or stages[-1] == pieces
    return stages if is_explained else [list(word), pieces]


def _spelt(bpe: Bpe, char: str) -> list[str]:
    return [char] if char in bpe.vocab else [BYTES[byte] for byte in char.encode()]


def _pieces(tokenizer: Tokenizer, word: str) -> list[str]:
    """As the tokeniser cuts it."""
    found = [token.value for token in tokenizer.rust.model.tokenize(word)]
    unknown = tokenizer.algorithm == "wordpiece" and found == ["<unk>"]
    return [BYTES[byte] for byte in word.encode()] if unknown else found


def _bpe_of(tokenizer: Tokenizer) -> Bpe | None:
    """Read once: the JSON of a vocabulary of 32,000 takes a while."""
    if tokenizer not in _read:
        model: dict[str, Any] = json.loads(tokenizer.rust.to_str())["model"]
        _read[tokenizer] = _parsed(model) if model["type"] == "BPE" else None
    return _read[tokenizer]


def _parsed(model: dict[str, Any]) -> Bpe:
    pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
    ranks = {(one, other): rank for rank, (one, other) in enumerate(pairs)}
    return Bpe(model["vocab"], ranks, bool(model.get("ignore_merges")))
