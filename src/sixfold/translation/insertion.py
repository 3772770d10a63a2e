"""The last way to keep what must be copied: a sentence is translated without these parts, and they are inserted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sixfold.decoding.options import Hypothesis
from sixfold.text.sentences import is_spaced
from sixfold.translation.direction import Direction
from sixfold.translation.documents.inline import place_marks
from sixfold.translation.documents.units import Kind, Mark, Unit
from sixfold.translation.explain import TranslatedSentence, explain
from sixfold.translation.options import TranslateOptions
from sixfold.translation.protection import (
    Edit,
    ModelText,
    is_alphabetic,
    pairs_of_tags,
    parts_by_order,
    protected_spans,
    would_join,
)
from sixfold.translation.searches import best_hypotheses


class Insertion(NamedTuple):
    """What the model read instead of a sentence, and the edits that make the sentence and its translation."""

    read: str
    source_edits: tuple[Edit, ...]
    target_edits: tuple[Edit, ...]


def insert_parts(direction: Direction, sentence: ModelText, options: TranslateOptions) -> tuple[Hypothesis, Insertion]:
    """Translate a sentence without the parts that must be copied, and insert these into its translation.

    A part goes before the word that is aligned with the source word after it, and tags around the words that are
    aligned with the words inside them.
    """
    read, marks = _without_parts(sentence)
    ids = direction.tokenizer.encode(read)
    hypothesis = Hypothesis([], 0.0)
    if ids:
        search = options.search(direction.max_target_tokens)
        banned = replace(search, banned=direction.target_tokenizer.span_ids)
        ((hypothesis, *_),) = best_hypotheses(direction, [direction.encoder_input(ids)], banned)
    written = direction.decode_target(hypothesis.tokens)
    (details,) = explain(direction, [TranslatedSentence(read, written, hypothesis.tokens)])
    spaced = is_spaced(direction.languages[1])
    target_edits: list[Edit] = []
    positions, _ = place_marks(Unit((0, 0), read, tuple(marks)), written, details.alignment)
    for position, index in _keep_order(positions, [mark.raw for mark in marks]):
        part = marks[index].raw
        left = right = ""
        if marks[index].kind == "single":  # no tag
            beside = written[max(0, position - 1) : position], written[position : position + 1]
            left, right = (" " if is_alphabetic(char) or (spaced and char.isalnum()) else "" for char in beside)
            if target_edits and target_edits[-1].span[1] == position and would_join(target_edits[-1].text, part):
                left = " "
        target_edits.append(Edit((position, position), f"{left}{part}{right}"))
    source_edits = [Edit((mark.position, mark.position), mark.raw) for mark in marks]  # less a space beside some
    return hypothesis, Insertion(read, tuple(source_edits), tuple(target_edits))


def _keep_order(positions: Sequence[tuple[int, int]], parts: Sequence[str]) -> list[tuple[int, int]]:
    """Return positions with the indices of parts, where parts that are told apart by their order are in their order."""
    movable = [number for number, (_, index) in enumerate(positions) if parts_by_order([parts[index]])]
    in_order = sorted(positions[number][1] for number in movable)
    indices = dict(zip(movable, in_order, strict=True))
    return [(position, indices.get(number, index)) for number, (position, index) in enumerate(positions)]


def _without_parts(sentence: ModelText) -> tuple[str, list[Mark]]:
    """Return a sentence without the parts that must be copied, and marks where they were."""
    if sentence.tokens:
        spans = [(index, index + 1) for index, char in enumerate(sentence.text) if char in sentence.tokens]
    else:
        spans = protected_spans(sentence.text) if sentence.parts else []
    partners = pairs_of_tags(sentence.parts)
    kinds: dict[int, Kind] = {**dict.fromkeys(partners, "open"), **dict.fromkeys(partners.values(), "close")}
    marks, text, position = [], "", 0
    for index, ((start, end), part) in enumerate(zip(spans, sentence.parts, strict=True)):
        text += sentence.text[position:start]
        is_doubled = text[-1:] in ("", " ") and sentence.text[end : end + 1] == " "  # the space after the part
        position = end + is_doubled
        marks.append(Mark(len(text), kinds.get(index, "single"), None, part))
    return text + sentence.text[position:], marks
