"""Puts the markup and the atoms of a unit into its translation."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, cycle, islice, pairwise
from typing import Literal, NamedTuple

from sixfold.translation.documents.inline import place_marks
from sixfold.translation.documents.units import Mark, Run, Span, Unit
from sixfold.translation.protection import Edit, apply_edits, is_alphabetic
from sixfold.translation.result import Link, Translation

_SIDES: tuple[Literal[-1], Literal[1]] = (-1, 1)
_OPTION = re.compile(r"--[A-Za-z]|-[A-Za-z?](?![\w-])", re.ASCII)
_FIRST_ATOM, _ATOMS = 0xF0000, 0xFFFE  # the private characters of plane 15


class Insert(NamedTuple):
    """Markup in a translation: the part of the translation that it replaces, and where the document has it."""

    target: Span  # in the translation
    source: Span | None  # in the document; None: `raw` is written
    raw: str = ""
    left: str = ""  # a space to write before it, or nothing
    right: str = ""  # a space to write after it, or nothing
    run: Run | None = None  # for the text that follows, up to the end of the pair that this opens
    ends_run: bool = False  # whether it closes such a pair


@dataclass(frozen=True)
class UnitTranslation:
    """The translation of a unit, and the markup to write into it, from left to right."""

    text: str
    inserts: tuple[Insert, ...] = ()
    needs_review: bool = False  # it has warnings, which the document says if its format can


def _atom_characters(unit: Unit) -> list[str]:
    """Return the characters that stand for the atoms of a unit in the text that is translated, which has none itself.

    They are used again if there are more atoms than private characters.
    """
    own = set(filter(_is_atom, unit.text))
    free = (chr(code) for code in range(_FIRST_ATOM, _FIRST_ATOM + _ATOMS) if chr(code) not in own)
    return list(islice(cycle(islice(free, len(unit.atoms))), len(unit.atoms)))


def _atom_positions(unit: Unit) -> list[int]:
    """Return where in the text that is translated the character for each atom is."""
    starts = [atom.text_span[0] for atom in unit.atoms]
    removed = [0, *accumulate(end - start - 1 for start, end in (atom.text_span for atom in unit.atoms))]
    return [start - gone for start, gone in zip(starts, removed, strict=False)]


def text_to_translate(unit: Unit) -> Unit:
    """Return a unit with one private character in the place of each atom, and no atoms.

    A translation copies such a character as it copies any placeholder, so it shows where the atom goes.
    """
    if not unit.atoms:
        return unit
    edits = [Edit(atom.text_span, char) for atom, char in zip(unit.atoms, _atom_characters(unit), strict=True)]
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
    marks: list[tuple[int, int]] = []
    has_words_inside = True
    if unit.marks:
        links = _with_atom_links(translation.alignment, _atom_positions(unit), [insert.target for insert in inserts])
        marks, has_words_inside = place_marks(masked, text, links)
    run_ends = _run_ends(unit.marks)
    for position, index in marks:
        mark = unit.marks[index]
        padding = _padding(unit, mark, text, position, spaced)
        inserts.append(Insert((position, position), mark.span, mark.raw, *padding, mark.run, index in run_ends))
    order = sorted(range(len(inserts)), key=lambda index: _sort_key(inserts[index], index))
    return UnitTranslation(text, tuple(inserts[index] for index in order)), has_words_inside


def _with_atom_links(links: Sequence[Link], sources: Sequence[int], targets: Sequence[Span]) -> Sequence[Link]:
    """Return an alignment in which each atom is aligned with itself and with nothing else.

    `sources` and `targets`: where the characters that stand for the atoms are.
    """
    if not sources:
        return links
    source_set, target_set = set(sources), {start for start, _ in targets}
    others = [
        link
        for link in links
        if source_set.isdisjoint(range(*link.source)) and target_set.isdisjoint(range(*link.target))
    ]
    return [*others, *(Link(target, (at, at + 1), 1.0) for at, target in zip(sources, targets, strict=True))]


def segments_of(unit: Unit) -> list[Span]:
    """Return the spans of the text of `text_to_translate` between its marks and atoms, from left to right."""
    masked = text_to_translate(unit)
    atoms = [index for index, char in enumerate(masked.text) if _is_atom(char)]
    edges = sorted({0, len(masked.text), *(mark.position for mark in masked.marks), *atoms, *(at + 1 for at in atoms)})
    return [(start, end) for start, end in pairwise(edges) if not _is_atom(masked.text[start])]


def place_segments(unit: Unit, translations: Sequence[str], spaced: bool = False) -> UnitTranslation:
    """Return the translation of a unit whose segments were translated one by one, with all markup in its old order.

    `spaced`: whether the language puts spaces between words. Then words on both sides of markup get one if they touch
    and those of the source do not.
    """
    masked = text_to_translate(unit)
    spans = segments_of(unit)
    texts = _separate(masked, spans, translations) if spaced else translations
    edits = [Edit(*pair) for pair in zip(spans, texts, strict=True)]
    text = apply_edits(masked.text, edits)
    inserts = _place_atoms(unit, text)
    ends = [edit.span[1] for edit in edits]
    growths = [0, *accumulate(len(edit.text) - (edit.span[1] - edit.span[0]) for edit in edits)]
    run_ends = _run_ends(masked.marks)
    for index, mark in enumerate(masked.marks):
        position = mark.position + growths[bisect_right(ends, mark.position)]
        inserts.append(Insert((position, position), mark.span, mark.raw, "", "", mark.run, index in run_ends))
    order = sorted(range(len(inserts)), key=lambda index: _sort_key(inserts[index], index))
    return UnitTranslation(text, tuple(inserts[index] for index in order))


def _separate(masked: Unit, spans: Sequence[Span], translations: Sequence[str]) -> list[str]:
    """Return the translations of segments with a space between words that would touch: outside of what opens there."""
    opening = {mark.position for mark in masked.marks if mark.kind == "open"}
    texts = list(translations)
    for index, ((_, end), (start, _)) in enumerate(pairwise(spans)):
        touches_in_source = is_alphabetic(masked.text[end - 1]) and is_alphabetic(masked.text[start])
        if start != end or touches_in_source or not texts[index] or not texts[index + 1]:
            continue
        if is_alphabetic(texts[index][-1]) and is_alphabetic(texts[index + 1][0]):
            if end in opening:
                texts[index] += " "
            else:
                texts[index + 1] = f" {texts[index + 1]}"
    return texts


def _run_ends(marks: Sequence[Mark]) -> set[int]:
    """Return the indices of the marks that close pairs with runs of their own."""
    ends: set[int] = set()
    open_marks: list[Mark] = []
    for index, mark in enumerate(marks):
        if mark.kind == "open":
            open_marks.append(mark)
        elif mark.kind == "close" and open_marks.pop().run is not None:
            ends.add(index)
    return ends


def _is_atom(char: str) -> bool:
    return _FIRST_ATOM <= ord(char) < _FIRST_ATOM + _ATOMS


def _place_atoms(unit: Unit, translation: str) -> list[Insert]:
    """Return the atoms of a unit in the place of the characters that stand for them.

    A word of the translation that would touch an atom with letters gets a space, unless a word of the source does.
    """
    if not unit.atoms:
        return []
    positions: dict[str, deque[int]] = {}
    for position, char in enumerate(translation):
        if _is_atom(char):
            positions.setdefault(char, deque()).append(position)
    source = text_to_translate(unit).text
    inserts = []
    for atom, char, source_at in zip(unit.atoms, _atom_characters(unit), _atom_positions(unit), strict=True):
        position = positions[char].popleft()
        raw = unit.text[slice(*atom.text_span)]
        sides = [_touched(translation, position, step) for step in _SIDES]
        source_sides = [_touched(source, source_at, step) for step in _SIDES]
        needs_space = [side not in ("", own) for side, own in zip(sides, source_sides, strict=True)]
        left, right = (" " if needed and any(map(str.isalpha, raw)) else "" for needed in needs_space)
        inserts.append(Insert((position, position + 1), atom.span, raw, left, right))
    return inserts


def _touched(text: str, position: int, step: Literal[-1, 1]) -> Literal["", "word", "option", "atom"]:
    """Return what is beside a character and would be read as a part of it, were there no space.

    That is a word of a script that has spaces between words, an option, or an atom; the space between two atoms is
    before the second one.
    """
    beside = position + step
    if not 0 <= beside < len(text):
        return ""
    if is_alphabetic(text[beside]) or text[beside] == "_":
        return "word"
    if step > 0:
        return "option" if _OPTION.match(text, beside) else ""
    return "atom" if _is_atom(text[beside]) else ""


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
