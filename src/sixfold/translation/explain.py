"""The probability of each token of a translation, and the word alignment: one more pass through the model."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sixfold.alignment_heads import align, word_weights
from sixfold.text.languages import UNSPACED, letters
from sixfold.text.tokenizer import Encoding, Tokenizer
from sixfold.translation.direction import Direction, collapse_whitespace
from sixfold.translation.protection import Edit, move_span
from sixfold.translation.result import Details, Link, Sentence, Span, Token

_UNSPACED_LETTER = letters(*UNSPACED)


class TranslatedSentence(NamedTuple):
    """A sentence, its translation, and the tokens of that; no tokens if the translation is not the model's."""

    source: str
    target: str
    tokens: Sequence[int]


def explain(direction: Direction, sentences: Sequence[TranslatedSentence]) -> list[Details]:
    """Return the tokens and links of each sentence, with spans in that sentence, from one call of the engine."""
    encodings = [direction.tokenizer.encode_with_offsets(source) for source, _, _ in sentences]
    indices = [index for index, (_, _, ids) in enumerate(sentences) if ids and encodings[index].ids]
    results = [Details()] * len(sentences)
    if not indices:
        return results
    sources = [direction.encoder_input(encodings[index].ids) for index in indices]
    targets = [sentences[index][2] for index in indices]
    logprobs, attention = direction.engine.score(sources, targets), direction.engine.align(sources, targets)
    for index, token_logprobs, weights in zip(indices, logprobs, attention, strict=True):
        results[index] = _explain_sentence(direction, sentences[index], encodings[index], token_logprobs, weights)
    return results


def join_details(sentences: Sequence[Sentence], details: Sequence[Details]) -> Details:
    """Return the details of sentences as those of their text, with spans in the whole texts."""
    tokens: list[Token] = []
    links: list[Link] = []
    for (source, target, *_), of_sentence in zip(sentences, details, strict=True):
        tokens += [
            token._replace(span=_shift(token.span, target[0]), source=_shift(token.source, source[0]))
            for token in of_sentence.tokens
        ]
        links += [
            link._replace(target=_shift(link.target, target[0]), source=_shift(link.source, source[0]))
            for link in of_sentence.alignment
        ]
    return Details(tuple(tokens), tuple(links))


def move_details(
    details: Details, source_edits: Sequence[Edit], target_edits: Sequence[Edit], translation: str
) -> Details:
    """Return the details of what a model read and wrote as those of a sentence and its `translation` after edits."""
    if not source_edits and not target_edits:
        return details
    tokens = []
    for token in details.tokens:
        start, end = move_span(token.span, target_edits)
        source = move_span(token.source, source_edits)
        tokens.append(token._replace(text=translation[start:end], span=(start, end), source=source))
    links = [
        link._replace(target=move_span(link.target, target_edits), source=move_span(link.source, source_edits))
        for link in details.alignment
    ]
    return Details(tuple(tokens), tuple(links))


def _shift(span: Span, offset: int) -> Span:
    return span[0] + offset, span[1] + offset


def _explain_sentence(
    direction: Direction,
    sentence: TranslatedSentence,
    encoding: Encoding,
    logprobs: Sequence[float],
    attention: np.ndarray,  # target tokens × source tokens with the special tokens around them
) -> Details:
    source, target, ids = sentence
    source_spans = [_without_spaces(source, offsets) for offsets in encoding.offsets]
    weights = align(
        attention[:, direction.text_columns(attention.shape[1])], [start < end for start, end in source_spans]
    )
    target_spans = piece_spans(direction.target_tokenizer, ids, target)
    tokens = [
        Token(target[start:end], (start, end), min(1.0, float(np.exp(logprob))), source_spans[best])
        for (start, end), logprob, best in zip(target_spans, logprobs[: len(ids)], weights.argmax(axis=1), strict=True)
    ]
    links = _links(weights, _words(target, target_spans), _words(source, source_spans))
    return Details(tuple(tokens), tuple(links))


def _words(text: str, spans: Sequence[Span]) -> list[tuple[list[int], Span]]:
    """Return the pieces of each word, and its span; words of white space only are left out."""
    words = [(pieces, (spans[pieces[0]][0], spans[pieces[-1]][1])) for pieces in group_into_words(text, spans)]
    return [(pieces, (start, end)) for pieces, (start, end) in words if start < end]


def _links(
    weights: np.ndarray, targets: Sequence[tuple[list[int], Span]], sources: Sequence[tuple[list[int], Span]]
) -> list[Link]:
    """Link each target word to the source word with the largest weight."""
    if not targets or not sources:
        return []
    words = word_weights(weights, [pieces for pieces, _ in targets], [pieces for pieces, _ in sources])
    return [
        Link(span, sources[best][1], float(row[best]))
        for (_, span), row, best in zip(targets, words, words.argmax(axis=1), strict=True)
    ]


def _without_spaces(text: str, span: Span) -> Span:
    """Return a span without the white space at its start."""
    start, end = span
    return end - len(text[start:end].lstrip()), end


def piece_spans(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[Span]:
    """Return the span of each piece in the text that the pieces make.

    Of the pieces that are bytes of one character, only the last has a width.
    """
    spans: list[Span] = []
    end = 0
    for count in range(1, len(ids) + 1):
        # A character that lacks bytes is decoded to U+FFFD until they come.
        decoded = collapse_whitespace(tokenizer.decode(ids[:count]).rstrip("\ufffd")) if count < len(ids) else text
        length = max(end, min(len(decoded), len(text)))
        spans.append(_without_spaces(text, (end, length)))
        end = length
    return spans


def group_into_words(text: str, spans: Sequence[Span]) -> list[list[int]]:
    """Return the indices of the pieces of each word.

    A piece continues the word before it if no space is between them and their letters belong to one word.
    """
    words: list[list[int]] = []
    previous: Span = (-1, -1)
    for index, (start, end) in enumerate(spans):
        is_same_character = start == previous[0]
        if words and (
            is_same_character
            or (previous[1] == start and _belong_together(text[start - 1 : start], text[start : start + 1]))
        ):
            words[-1].append(index)
        else:
            words.append([index])
        previous = start, end
    return words


def _belong_together(left: str, right: str) -> bool:
    """Return whether two neighbouring characters are in one word.

    They are if both are letters or digits of scripts with spaces between words; a combining mark joins anything.
    """
    if not left or not right or unicodedata.category(right)[0] == "M":
        return True
    joins = left.isalnum() or unicodedata.category(left)[0] == "M"
    return joins and right.isalnum() and not _UNSPACED_LETTER.match(left) and not _UNSPACED_LETTER.match(right)
