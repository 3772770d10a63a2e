"""What a model has learnt words to mean: their vectors, what lies near them, and how alike words and sentences are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sixfold.errors import RequestError
from sixfold.explorer.forward import Array, Forward, causal_mask, unit
from sixfold.modelfile import ModelFile
from sixfold.text.languages import guess_language
from sixfold.text.tokenizer import Tokenizer
from sixfold.translation.direction import languages_of, tag_of
from sixfold.translation.plan import replace_surrogates

Vectors = Float[Array, "words d_model"]


class Neighbour(NamedTuple):
    """A piece whose vector points nearly the same way."""

    text: str
    id: int
    cosine: float


def vectors_of(model: ModelFile, words: Sequence[str]) -> Vectors:
    """The learnt vectors, before any layer; of a word of several pieces their mean."""
    table, tokenizer = _table(model), _tokenizer(model)
    return np.stack([table[_pieces(tokenizer, word)].mean(axis=0) for word in words])


def similar(model: ModelFile, one: str, other: str) -> float:
    """The cosine between two words: 1 of the same, about 0 of those that have nothing in common."""
    first, second = unit(vectors_of(model, [one, other]))
    return float(first @ second)


def similar_sentences(model: ModelFile, one: str, other: str) -> float:
    """The cosine between two sentences: of the means of what the encoder makes of their pieces, or a lone decoder."""
    first, second = (unit(_meaning(model, text)) for text in (one, other))
    return float(first @ second)


def neighbours(model: ModelFile, word: str, count: int = 10) -> list[Neighbour]:
    """The pieces nearest to a word, nearest first; with and without a space before it, a piece counts once."""
    if count < 1:
        raise RequestError(f"count: expected at least 1; got {count}")
    tokenizer = _tokenizer(model)
    (vector,) = unit(vectors_of(model, [word]))
    cosines = unit(_table(model)[: tokenizer.vocab]) @ vector
    own = _pieces(tokenizer, word)
    cosines[[*tokenizer.reserved, *tokenizer.byte_ids, *own]] = -np.inf
    seen = {"", word.strip(), *(tokenizer.decode([index]).strip() for index in own)}
    found: list[Neighbour] = []
    for index in map(int, np.argsort(-cosines, kind="stable")):
        text = tokenizer.decode([index]).strip()
        if cosines[index] == -np.inf or len(found) == count:
            break
        if text not in seen:
            seen.add(text)
            found.append(Neighbour(text, index, float(cosines[index])))
    return found


def plane(model: ModelFile, words: Sequence[str]) -> Float[Array, "words 2"]:
    """Words as points: their vectors in the two directions in which they differ most (principal components).

    A direction and its opposite are as good; the one is taken whose largest feature is positive.
    """
    if not words:
        raise RequestError("words: expected at least one; got none")
    vectors = vectors_of(model, words)
    centred = vectors - vectors.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(words), 2), np.float32)
    for axis, direction in enumerate(directions[:2]):
        points[:, axis] = centred @ direction * np.sign(direction[np.abs(direction).argmax()])
    return points


def _table(model: ModelFile) -> Vectors:
    return model.weight(f"{model.config.model.stacks[0]}.embedding.token.weight")


def _tokenizer(model: ModelFile) -> Tokenizer:
    if model.tokenizer is None:
        raise RequestError("model: expected one with a tokeniser; this one has none")
    return model.tokenizer


def _pieces(tokenizer: Tokenizer, text: str) -> list[int]:
    found = tokenizer.encode(replace_surrogates(text).strip()) if text.strip() else []
    if not found:
        raise RequestError("word: expected some text; got nothing", "give a word")
    return found


def _meaning(model: ModelFile, text: str) -> Float[Array, "d_model"]:
    """The mean over the pieces of the text; what stands around them is read, but not counted."""
    config, tokenizer = model.config.model, _tokenizer(model)
    ids = _pieces(tokenizer, text)
    before, after = _around(model, tokenizer, text)
    whole = np.array([[*before, *ids, *after]])
    if whole.size > config.max_length:
        raise RequestError(f"text: expected at most {config.max_length} tokens; got {whole.size}", "take a sentence")
    stack = config.stacks[0]
    mask = causal_mask(whole.size) if stack == "decoder" else None
    x = Forward(model).stack(stack, whole, mask)
    return np.asarray(x[0, len(before) : len(before) + len(ids)].mean(axis=0))


def _around(model: ModelFile, tokenizer: Tokenizer, text: str) -> tuple[list[int], list[int]]:
    """The specials before and after a text; a model of two directions reads each language as it would to translate."""
    config = model.config.model
    if config.kind == "decoder":
        return [], []
    if config.kind == "encoder":
        return [config.bos], [config.eos]
    pairs = languages_of(model)
    guess = guess_language([text])
    pair = next((each for each in pairs if each[0] == guess), pairs[0])
    return list(tag_of(model, tokenizer, pair)), [config.eos]
