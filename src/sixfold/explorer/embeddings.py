"""The embeddings of a model: vectors of words, their nearest neighbours, and the similarity of words and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sixfold.errors import RequestError
from sixfold.explorer.forward import Array, Forward, causal_mask, normalise_vectors
from sixfold.modelfile import ModelFile
from sixfold.text.languages import guess_language
from sixfold.text.tokenizer import Tokenizer
from sixfold.translation.direction import languages_of, special_tokens
from sixfold.translation.prepare import replace_surrogates

Vectors = Float[Array, "words d_model"]


class Neighbour(NamedTuple):
    """A piece whose vector has nearly the direction of another."""

    text: str
    id: int
    cosine: float


def word_vectors(model: ModelFile, words: Sequence[str]) -> Vectors:
    """Return the embedding of each word, before any layer; a word of several pieces has the mean of theirs."""
    table, tokenizer = _embedding_table(model), _tokenizer(model)
    return np.stack([table[_encode(tokenizer, word)].mean(axis=0) for word in words])


def similar(model: ModelFile, first: str, second: str) -> float:
    """Return the cosine between two words: 1 for the same word, about 0 for words that have nothing in common."""
    vectors = normalise_vectors(word_vectors(model, [first, second]))
    return float(vectors[0] @ vectors[1])


def similar_sentences(model: ModelFile, first: str, second: str) -> float:
    """Return the cosine between the vectors of two sentences.

    The vector of a sentence is the mean output of the encoder over its pieces, or that of a decoder-only model.
    """
    vectors = [normalise_vectors(_sentence_vector(model, text)) for text in (first, second)]
    return float(vectors[0] @ vectors[1])


def neighbours(model: ModelFile, word: str, count: int = 10) -> list[Neighbour]:
    """Return the pieces with the highest cosine to a word, nearest first.

    Special tokens, bytes and the word itself are left out. A piece with and without a space before it counts once.
    """
    if count < 1:
        raise RequestError(f"count: expected at least 1; got {count}")
    tokenizer = _tokenizer(model)
    (vector,) = normalise_vectors(word_vectors(model, [word]))
    cosines = normalise_vectors(_embedding_table(model)[: tokenizer.vocab]) @ vector
    own = _encode(tokenizer, word)
    cosines[[*tokenizer.reserved, *tokenizer.byte_ids, *own]] = -np.inf
    listed = {"", word.strip(), *(tokenizer.decode([index]).strip() for index in own)}
    nearest: list[Neighbour] = []
    for index in map(int, np.argsort(-cosines, kind="stable")):
        text = tokenizer.decode([index]).strip()
        if cosines[index] == -np.inf or len(nearest) == count:
            break
        if text not in listed:
            listed.add(text)
            nearest.append(Neighbour(text, index, float(cosines[index])))
    return nearest


def pca_projection(model: ModelFile, words: Sequence[str]) -> Float[Array, "words 2"]:
    """Return words as points of a plane: their vectors projected onto their first two principal components.

    The sign of a component is arbitrary; here its largest feature is positive.
    """
    if not words:
        raise RequestError("words: expected at least one; got none")
    vectors = word_vectors(model, words)
    centred = vectors - vectors.mean(axis=0)
    _, _, components = np.linalg.svd(centred, full_matrices=False)
    points = np.zeros((len(words), 2), np.float32)
    for axis, component in enumerate(components[:2]):
        points[:, axis] = centred @ component * np.sign(component[np.abs(component).argmax()])
    return points


def _embedding_table(model: ModelFile) -> Vectors:
    return model.weight(f"{model.config.model.stacks[0]}.embedding.token.weight")


def _tokenizer(model: ModelFile) -> Tokenizer:
    if model.tokenizer is None:
        raise RequestError("model: expected a model with a tokeniser; this one has none")
    return model.tokenizer


def _encode(tokenizer: Tokenizer, text: str) -> list[int]:
    ids = tokenizer.encode(replace_surrogates(text).strip()) if text.strip() else []
    if not ids:
        raise RequestError("word: expected some text; got nothing", "give a word")
    return ids


def _sentence_vector(model: ModelFile, text: str) -> Float[Array, "d_model"]:
    """Return the mean output over the pieces of the text. Special tokens around them are read but not averaged."""
    config, tokenizer = model.config.model, _tokenizer(model)
    ids = _encode(tokenizer, text)
    before, after = _special_tokens(model, tokenizer, text)
    tokens = np.array([[*before, *ids, *after]])
    if tokens.size > config.max_length:
        raise RequestError(f"text: expected at most {config.max_length} tokens; got {tokens.size}", "use a sentence")
    stack = config.stacks[0]
    mask = causal_mask(tokens.size) if stack == "decoder" else None
    x = UnrecordedForward(model).stack(stack, tokens, mask)
    return np.asarray(x[0, len(before) : len(before) + len(ids)].mean(axis=0))


class UnrecordedForward(Forward):
    """A forward pass that keeps no arrays: those of attention grow with the square of the length."""

    def record(self, name: str, array: Array) -> Array:  # noqa: ARG002 -- the signature of `Forward`
        return array


def _special_tokens(model: ModelFile, tokenizer: Tokenizer, text: str) -> tuple[list[int], list[int]]:
    """Return the special tokens before and after a text.

    A model of two directions gets the tag that it would get to translate a text of this language.
    """
    config = model.config.model
    if config.kind == "decoder":
        return list(model.prompts.before), []
    if config.kind == "encoder":
        return [config.bos], [config.eos]
    pairs = languages_of(model)
    guess = guess_language([text])
    pair = next((pair for pair in pairs if pair[0] == guess), pairs[0])
    special = special_tokens(model, tokenizer, pair)
    return list(special.before_source), list(special.after_source)
