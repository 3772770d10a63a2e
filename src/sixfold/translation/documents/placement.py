"""Puts the markup and the atoms of a unit into its translation."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from sixfold.translation.documents.inline import place_marks
from sixfold.translation.documents.units import Mark, Span, Unit
from sixfold.translation.protection import Edit, apply_edits
from sixfold.translation.result import Translation

_FIRST_ATOM, _ATOMS = 0xF0000, 0xFFFE  # the private characters of plane 15


class Insert(NamedTuple):
    """Markup in a translation: the part of the translation that it replaces, and where the document has it."""

    target: Span  # in the translation
    source: Span | None  # in the document; None: `raw` is written
    raw: str = ""
    left: str = ""  # a space to write before it, or nothing
    right: str = ""  # a space to write after it, or nothing


@dataclass(frozen=True)
class UnitTranslation:
    """The translation of a unit, and the markup to write into it, from left to right."""

    text: str
    inserts: tuple[Insert, ...] = ()


def atom_character(index: int) -> str:
    """Return the character that stands for an atom in the text that is translated; no text has one by chance."""
    return chr(_FIRST_ATOM + index % _ATOMS)


def text_to_translate(unit: Unit) -> Unit:
    """Return a unit with one private character in the place of each atom, and no atoms.

    A translation copies such a character as it copies any placeholder, so it shows where the atom goes.
    """
    if not unit.atoms:
        return unit
    edits = [Edit(atom.text_span, atom_character(index)) for index, atom in enumerate(unit.atoms)]
    starts = [edit.span[0] for edit in edits]
    removed = [0, *accumulate(edit.span[1] - edit.span[0] - 1 for edit in edits)]

    def moved(position: int) -> int:
        """Return where a position is in the new text; one inside an atom is before the atom."""
        before = bisect_left(starts, position)
        if before and position < edits[before - 1].span[1]:
            before, position = before - 1, starts[before - 1]
        return position - removed[before]

    marks = tuple(mark._replace(position=moved(mark.position)) for mark in unit.marks)
    return replace(unit, text=apply_edits(unit.text, edits), marks=marks, atoms=())


def place_markup(unit: Unit, translation: Translation, spaced: bool) -> tuple[UnitTranslation, bool]:
    """Return a translation with the markup of its unit, and whether every pair of marks has words inside.

    `translation` is of `text_to_translate`.
    """
    text = translation.text
    inserts = _place_atoms(unit, text)
    masked = text_to_translate(unit)
    marks, has_words_inside = place_marks(masked, text, translation.alignment) if unit.marks else ([], True)
    for position, index in marks:
        mark = unit.marks[index]
        inserts.append(Insert((position, position), mark.span, mark.raw, *_padding(unit, mark, text, position, spaced)))
    order = sorted(range(len(inserts)), key=lambda index: _sort_key(inserts[index], index))
    return UnitTranslation(text, tuple(inserts[index] for index in order)), has_words_inside


def segments_of(unit: Unit) -> list[Span]:
    """Return the spans of the text of `text_to_translate` between its marks and atoms, from left to right."""
    masked = text_to_translate(unit)
    atoms = [index for index, char in enumerate(masked.text) if _is_atom(char)]
    edges = sorted({0, len(masked.text), *(mark.position for mark in masked.marks), *atoms, *(at + 1 for at in atoms)})
    return [(start, end) for start, end in pairwise(edges) if not _is_atom(masked.text[start])]


def place_segments(unit: Unit, translations: Sequence[str]) -> UnitTranslation:
    """Return the translation of a unit whose segments were translated one by one, with all markup in its old order."""
    masked = text_to_translate(unit)
    edits = [Edit(*pair) for pair in zip(segments_of(unit), translations, strict=True)]
    text = apply_edits(masked.text, edits)
    inserts = _place_atoms(unit, text)
    ends = [edit.span[1] for edit in edits]
    growths = [0, *accumulate(len(edit.text) - (edit.span[1] - edit.span[0]) for edit in edits)]
    for mark in masked.marks:
        position = mark.position + growths[bisect_right(ends, mark.position)]
        inserts.append(Insert((position, position), mark.span, mark.raw))
    order = sorted(range(len(inserts)), key=lambda index: _sort_key(inserts[index], index))
    return UnitTranslation(text, tuple(inserts[index] for index in order))


def _is_atom(char: str) -> bool:
    return _FIRST_ATOM <= ord(char) < _FIRST_ATOM + _ATOMS


def _place_atoms(unit: Unit, translation: str) -> list[Insert]:
    """Return the atoms of a unit in the place of the characters that stand for them."""
    positions: dict[str, deque[int]] = {}
    for position, char in enumerate(translation):
        if _is_atom(char):
            positions.setdefault(char, deque()).append(position)
    inserts = []
    for index, atom in enumerate(unit.atoms):
        position = positions[atom_character(index)].popleft()
        raw = unit.text[slice(*atom.text_span)]
        inserts.append(Insert((position, position + 1), atom.span, raw))
    return inserts


def _padding(unit: Unit, mark: Mark, translation: str, position: int, spaced: bool) -> tuple[str, str]:
    """Return the spaces to write before and after a mark.

    An atom that became a mark must not touch a word. Where marks depend on the characters beside them, a closing mark
    after punctuation must not be followed by a letter: the asterisks of **so.**What would not be markup.
    """
    left, right = translation[max(0, position - 1) : position], translation[position : position + 1]
    if mark.raw:
        return (" " if spaced and left.isalnum() else "", " " if spaced and right.isalnum() else "")
    if unit.flanking and mark.kind == "close" and left and not left.isalnum() and right.isalnum():
        return "", " "
    if unit.flanking and mark.kind == "open" and left.isalnum() and right and not right.isalnum():
        return " ", ""
    return "", ""


def _sort_key(insert: Insert, index: int) -> tuple[int, bool, int]:
    """Sort by position; at one position marks come in the order they were added, before an atom that starts there."""
    return (insert.target[0], insert.target[1] > insert.target[0], index)
