"""Which piece of a translation is how sure, and which word comes from which: one more pass through the model."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

from sixfold.alignment_heads import align, word_weights
from sixfold.text.languages import UNSPACED, letters
from sixfold.text.tokenizer import Encoding, Tokenizer
from sixfold.translation.direction import Direction, collapse_whitespace
from sixfold.translation.result import Details, Link, Sentence, Span, Token

_ALONE = letters(*UNSPACED)


Said = tuple[str, str, Sequence[int]]  # a sentence, what it became, and the tokens of that; none: not by the model


def explain(direction: Direction, source: str, translation: str, pairs: Sequence[Said]) -> Details:
    """Tokens and links of every sentence, at their places in the whole text."""
    tokens: list[Token] = []
    links: list[Link] = []
    sentences: list[Sentence] = []
    here = there = 0
    for (sentence, words, _), details in zip(pairs, _explain_all(direction, pairs), strict=True):
        here, there = source.index(sentence, here), translation.index(words, there)
        tokens += [
            each._replace(span=_moved(each.span, there), source=_moved(each.source, here)) for each in details.tokens
        ]
        links += [
            each._replace(target=_moved(each.target, there), source=_moved(each.source, here))
            for each in details.alignment
        ]
        sentences.append(Sentence((here, here + len(sentence)), (there, there + len(words))))
        here, there = here + len(sentence), there + len(words)
    return Details(tuple(tokens), tuple(links), tuple(sentences))


def _moved(span: Span, by: int) -> Span:
    return span[0] + by, span[1] + by


def _explain_all(direction: Direction, pairs: Sequence[Said]) -> list[Details]:
    """Of each sentence by itself, asked for together."""
    encodings = [direction.tokenizer.encode_with_offsets(sentence) for sentence, _, _ in pairs]
    asked = [place for place, (_, _, ids) in enumerate(pairs) if ids and encodings[place].ids]
    if not asked:
        return [Details((), ())] * len(pairs)
    sources = [direction.encoder_input(encodings[place].ids) for place in asked]
    targets = [pairs[place][2] for place in asked]
    logprobs, attention = direction.engine.score(sources, targets), direction.engine.align(sources, targets)
    found = [Details((), ())] * len(pairs)
    for place, its_logprobs, weights in zip(asked, logprobs, attention, strict=True):
        found[place] = _details(direction, pairs[place], encodings[place], its_logprobs, weights)
    return found


def _details(
    direction: Direction, said: Said, encoding: Encoding, logprobs: Sequence[float], attention: np.ndarray
) -> Details:
    sentence, words, ids = said
    places = [_bare(sentence, offsets) for offsets in encoding.offsets]
    weights = align(attention[:, len(direction.tag) : -1], [start < end for start, end in places])
    spans = piece_spans(direction.tokenizer, ids, words)
    tokens = [
        Token(words[start:end], (start, end), min(1.0, float(np.exp(logprob))), places[most])
        for (start, end), logprob, most in zip(spans, logprobs[: len(ids)], weights.argmax(axis=1), strict=True)
    ]
    links = _links(weights, _words(words, spans), _words(sentence, places))
    return Details(tuple(tokens), tuple(links))


def _words(text: str, spans: Sequence[Span]) -> list[tuple[list[int], Span]]:
    """The pieces of each word, and where it stands; pieces that are nothing but white space are none."""
    found = [(pieces, (spans[pieces[0]][0], spans[pieces[-1]][1])) for pieces in group_into_words(text, spans)]
    return [(pieces, (start, end)) for pieces, (start, end) in found if start < end]


def _links(
    weights: np.ndarray, targets: Sequence[tuple[list[int], Span]], sources: Sequence[tuple[list[int], Span]]
) -> list[Link]:
    """Each word of a translation with the source word that has the largest share in it."""
    if not targets or not sources:
        return []
    words = word_weights(weights, [pieces for pieces, _ in targets], [pieces for pieces, _ in sources])
    return [
        Link(span, sources[most][1], float(row[most]))
        for (_, span), row, most in zip(targets, words, words.argmax(axis=1), strict=True)
    ]


def _bare(text: str, span: Span) -> Span:
    """Without the space that a piece begins with."""
    start, end = span
    return end - len(text[start:end].lstrip()), end


def piece_spans(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[Span]:
    """Where each piece stands in the text that they make; of the bytes of a character, only the last has a width."""
    spans: list[Span] = []
    end = 0
    for count in range(1, len(ids) + 1):
        # A character that lacks bytes shows as U+FFFD until they come.
        so_far = collapse_whitespace(tokenizer.decode(ids[:count]).rstrip("\ufffd")) if count < len(ids) else text
        length = max(end, min(len(so_far), len(text)))
        spans.append(_bare(text, (end, length)))
        end = length
    return spans


def group_into_words(text: str, spans: Sequence[Span]) -> list[list[int]]:
    """Which pieces make each word: one begins a word unless it goes on, without a space, after a letter of its kind."""
    words: list[list[int]] = []
    before: Span = (-1, -1)
    for index, (start, end) in enumerate(spans):
        is_same = start == before[0]  # bytes of one character
        if words and (
            is_same or (before[1] == start and _go_together(text[start - 1 : start], text[start : start + 1]))
        ):
            words[-1].append(index)
        else:
            words.append([index])
        before = start, end
    return words


def _go_together(one: str, other: str) -> bool:
    """Letters and digits of scripts that put spaces between words, with their marks; a mark goes with anything."""
    if not one or not other or unicodedata.category(other)[0] == "M":
        return True
    joins = one.isalnum() or unicodedata.category(one)[0] == "M"
    return joins and other.isalnum() and not _ALONE.match(one) and not _ALONE.match(other)
