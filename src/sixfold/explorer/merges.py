"""How a text became pieces: the words that it is split into first, and the merges that joined their characters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from sixfold.errors import RequestError
from sixfold.text.tokenizer import BYTES, Tokenizer
from sixfold.text.vocabulary_tokenizer import VocabularyTokenizer
from sixfold.translation.prepare import replace_surrogates

MAX_CHARACTERS = 1000  # of a text: a foreign tokeniser may take it for one word, with as many stages


class Word(NamedTuple):
    """A word of the pre-tokeniser, with the space before it, and its pieces after each merge. No piece crosses words.

    Stages of "low": ["l", "o", "w"], ["lo", "w"], ["low"].
    """

    text: str
    stages: list[list[str]]


@dataclass(frozen=True)
class Bpe:
    """A byte-pair encoding as it was learnt."""

    vocab: Mapping[str, int]
    ranks: Mapping[tuple[str, str], int]  # of each merge; lower ranks were learnt earlier and are applied first
    ignores_merges: bool  # a word that is a piece is taken at once, as in LLaMA 3


_parsed_bpe: WeakKeyDictionary[Tokenizer, Bpe | None] = WeakKeyDictionary()


def merge_stages(tokenizer: Tokenizer, text: str) -> list[Word]:
    """Return each word of a text with its stages. The last stages of all words are the pieces that the model reads.

    In BPE the first stage is characters, or the bytes of a character that has no piece, and each following stage has
    one more merge: of all adjacent pairs the one that was learnt first, the leftmost of several. WordPiece takes the
    longest pieces and unigram the likeliest, without merges, so their stages are only characters and pieces.
    """
    if len(text) > MAX_CHARACTERS:
        raise RequestError(f"text: expected at most {MAX_CHARACTERS} characters; got {len(text)}", "use a sentence")
    text = tokenizer.normalise(replace_surrogates(text))
    if isinstance(tokenizer, VocabularyTokenizer):
        return [Word("".join(pieces), [list("".join(pieces)), pieces]) for pieces in tokenizer.words(text)]
    rust = tokenizer.rust
    if rust.normalizer is not None:
        text = rust.normalizer.normalize_str(text)
    words = [text] if rust.pre_tokenizer is None else [word for word, _ in rust.pre_tokenizer.pre_tokenize_str(text)]
    bpe = _bpe_of(tokenizer)
    return [Word(word, _stages(tokenizer, bpe, word)) for word in words if word]


def _stages(tokenizer: Tokenizer, bpe: Bpe | None, word: str) -> list[list[str]]:
    pieces = _pieces(tokenizer, word)
    if bpe is None or (bpe.ignores_merges and word in bpe.vocab):
        return [list(word), pieces] if pieces != list(word) else [pieces]
    stages = [[piece for char in word for piece in _initial_pieces(bpe, char)]]
    while True:
        current = stages[-1]
        pairs = [(bpe.ranks[pair], index) for index, pair in enumerate(pairwise(current)) if pair in bpe.ranks]
        if not pairs:
            break
        _, index = min(pairs)
        stages.append([*current[:index], current[index] + current[index + 1], *current[index + 2 :]])
    # A foreign tokeniser may have rules of its own, such as marks at the ends of words.
    is_reproduced = not tokenizer.is_foreign or stages[-1] == pieces
    return stages if is_reproduced else [list(word), pieces]


def _initial_pieces(bpe: Bpe, char: str) -> list[str]:
    return [char] if char in bpe.vocab else [BYTES[byte] for byte in char.encode()]


def _pieces(tokenizer: Tokenizer, word: str) -> list[str]:
    """Return the pieces of a word as the tokeniser's own code splits it."""
    pieces = [token.value for token in tokenizer.rust.model.tokenize(word)]
    is_unknown = tokenizer.algorithm == "wordpiece" and pieces == ["<unk>"]
    return [BYTES[byte] for byte in word.encode()] if is_unknown else pieces


def _bpe_of(tokenizer: Tokenizer) -> Bpe | None:
    """Return the merges of a tokeniser, or None of one without. They are parsed once, which takes a while."""
    if tokenizer not in _parsed_bpe:
        model: dict[str, Any] = json.loads(tokenizer.rust.to_str())["model"]
        _parsed_bpe[tokenizer] = _parse_bpe(model) if model["type"] == "BPE" else None
    return _parsed_bpe[tokenizer]


def _parse_bpe(model: dict[str, Any]) -> Bpe:
    pairs = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
    ranks = {(left, right): rank for rank, (left, right) in enumerate(pairs)}
    return Bpe(model["vocab"], ranks, bool(model.get("ignore_merges")))
