"""Puts the markup and the atoms of a unit into its translation; atoms that a translation lacks become marks."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from sixfold.translation.documents.inline import place_marks
from sixfold.translation.documents.units import Atom, Mark, Span, Unit
from sixfold.translation.result import Translation
from sixfold.translation.string_search import find_strings


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


def missing_atoms(unit: Unit, translation: str) -> list[Atom]:
    """Return the atoms of a unit that its translation does not have as often as the unit."""
    atoms = unit.all_atoms()
    texts = [unit.text[slice(*atom.text_span)] for atom in atoms]
    expected, positions = Counter(texts), find_strings(translation, texts)
    return [atom for atom, text in zip(atoms, texts, strict=True) if text and len(positions[text]) < expected[text]]


def atoms_to_marks(unit: Unit, atoms: Sequence[Atom]) -> Unit:
    """Return a unit with some of its atoms as single marks, and without the text of these atoms."""
    chosen = set(atoms)
    removed = [atom for atom in unit.all_atoms() if atom in chosen]
    starts = [atom.text_span[0] for atom in removed]
    removed_lengths = [0, *accumulate(atom.text_span[1] - atom.text_span[0] for atom in removed)]

    def moved(position: int) -> int:
        """Return where a position is in the new text; one inside a removed atom is where the atom was."""
        before = bisect_left(starts, position)
        if before and position < removed[before - 1].text_span[1]:
            before, position = before - 1, starts[before - 1]
        return position - removed_lengths[before]

    # At one position, the marks of the unit come before the atom that becomes a mark.
    marks = [((mark.position, 0), mark) for mark in unit.marks]
    marks += [
        (
            (atom.text_span[0], 1),
            Mark(atom.text_span[0], "single", atom.span, unit.text[slice(*atom.text_span)]),
        )
        for atom in removed
    ]
    text, position = "", 0
    for atom in removed:
        text += unit.text[position : atom.text_span[0]]
        position = atom.text_span[1]
    remaining = [atom for atom in unit.atoms if atom not in chosen]
    return replace(
        unit,
        text=text + unit.text[position:],
        marks=tuple(
            mark._replace(position=moved(mark.position)) for _, mark in sorted(marks, key=lambda pair: pair[0])
        ),
        atoms=tuple(
            atom._replace(text_span=(moved(atom.text_span[0]), moved(atom.text_span[1]))) for atom in remaining
        ),
    )


def place_markup(unit: Unit, translation: Translation, spaced: bool) -> tuple[UnitTranslation, bool]:
    """Return a translation with the markup of its unit, and whether every pair of marks has words inside."""
    text = translation.text
    inserts = _place_atoms(unit, text)
    atom_spans = sorted(insert.target for insert in inserts)
    marks, has_words_inside = place_marks(unit, text, translation.alignment) if unit.marks else ([], True)
    for position, index in marks:
        mark = unit.marks[index]
        before = bisect_left(atom_spans, (position, 0))
        if before and position < atom_spans[before - 1][1]:  # inside an atom
            position = atom_spans[before - 1][0 if mark.kind == "open" else 1]
        padding = _padding(unit, mark, text, position, spaced)
        inserts.append(Insert((position, position), mark.span, mark.raw, *padding))
    order = sorted(range(len(inserts)), key=lambda index: _sort_key(inserts[index], index))
    return UnitTranslation(text, tuple(inserts[index] for index in order)), has_words_inside


def _place_atoms(unit: Unit, translation: str) -> list[Insert]:
    """Return the atoms of the markup where they are in a translation; no two of them share a character.

    The longest come first: the atom `map` must not be found inside the atom `map()`.
    """
    atoms = sorted(unit.atoms, key=lambda atom: atom.text_span[0] - atom.text_span[1])
    texts = [unit.text[slice(*atom.text_span)] for atom in atoms]
    remaining = {text: iter(positions) for text, positions in find_strings(translation, texts).items()}
    is_used = bytearray(len(translation))
    inserts = []
    for atom, text in zip(atoms, texts, strict=True):
        for start in remaining.get(text, ()):
            end = start + len(text)
            if is_used.find(1, start, end) < 0:
                is_used[start:end] = b"\1" * len(text)
                inserts.append(Insert((start, end), atom.span))
                break
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
