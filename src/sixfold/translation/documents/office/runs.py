"""Paragraphs of office documents: pieces of text and markup become units of prose.

DOCX, PPTX, XLSX and ODT each say what the pieces of a paragraph are. What they have in common is here: where a
paragraph is divided into units, and which markup forms pairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sixfold.translation.documents.units import Kind, Piece, Run, Span, Unit, make_unit
from sixfold.translation.documents.xml import escape_text

TERMINAL = ".!?:;。！？：；…"  # a line that ends in one of these ends its sentence
_EMPTY = re.compile(r"<[^\s<>]+\s*(?:/>|>\s*</[^\s<>]+>)")  # an element without attributes and content


@dataclass
class Part:
    """A piece of a paragraph, as its format describes it.

    - `break` is a line break: it divides a paragraph unless the sentence goes on behind it.
    - `split` divides a paragraph, as a tab or a page break does, and stays where it is.
    - `start` and `end` are the ends of a range, such as a bookmark, that need not nest with others.
    """

    span: Span
    kind: Kind | Literal["text", "atom", "break", "split", "start", "end"]
    text: str = ""
    run: Run | None = None
    range_id: str = ""  # what a start and its end have in common


@dataclass
class RunTable:
    """What is written around texts; it is the same for all runs that look the same."""

    run_tag: str
    text_tag: str
    text_attributes: str = ""
    noise: Sequence[re.Pattern[str]] = ()  # in properties, what does not change how a text looks
    runs: dict[str, Run] = field(default_factory=dict)  # by the properties that count

    def run_of(self, properties: str) -> Run:
        """Return the run for texts with some properties, which are an element or nothing."""
        for pattern in self.noise:
            properties = pattern.sub("", properties)
        if _EMPTY.fullmatch(properties):
            properties = ""
        before = f"<{self.run_tag}>{properties}<{self.text_tag}{self.text_attributes}>"
        is_link = "hlinkClick" in properties  # of DrawingML, where a link is a property of a run
        return self.runs.setdefault(properties, Run(before, f"</{self.text_tag}></{self.run_tag}>", is_link))


def paragraph_units(
    parts: Sequence[Part], collapses: bool = False, escape: Callable[[str], str] = escape_text
) -> list[Unit]:
    """Return the units of a paragraph, which breaks and splits divide.

    A pair of marks with a split inside it divides the paragraph too, so that no unit has half of a pair.
    """
    units = []
    for group in _groups(_join_lines(_with_pairs(parts))):
        if any(part.kind == "text" and part.text.strip() for part in group):
            unit = make_unit([_piece(part) for part in group], escape, collapses)
            units += [unit] if unit is not None else []
    return units


def _piece(part: Part) -> Piece:
    if part.kind in ("text", "atom", "open", "close"):
        return Piece(part.span, part.text, part.kind, part.run)
    return Piece(part.span, kind="single")


def _with_pairs(parts: Sequence[Part]) -> list[Part]:
    """Return parts in which a start and an end that nest with the pairs around them are a pair of marks.

    An end right behind its start makes a single mark with it.
    """
    paired: list[Part | None] = list(parts)
    open_indices: list[int] = []  # of opening marks and of starts
    for index, part in enumerate(parts):
        if part.kind in ("open", "start"):
            open_indices.append(index)
        elif part.kind == "close":
            while open_indices and parts[open_indices.pop()].kind != "open":
                pass
        elif part.kind == "end" and open_indices:
            first = parts[open_indices[-1]]
            if (first.kind, first.range_id) == ("start", part.range_id):
                start = open_indices.pop()
                is_empty = start == index - 1
                paired[start] = None if is_empty else Part(first.span, "open")
                paired[index] = Part((first.span[0], part.span[1]), "single") if is_empty else Part(part.span, "close")
    return [part for part in paired if part is not None]


def _join_lines(parts: Sequence[Part]) -> list[Part]:
    """Return parts in which each line break is a single mark if the sentence goes on behind it, and else a split.

    The sentence goes on if no punctuation ends the line and the next line begins with a small letter.
    """
    joined: list[Part] = []
    following = [""] * len(parts)  # the text behind each part, up to the next break
    text = ""
    for index in range(len(parts) - 1, -1, -1):
        following[index] = text
        part = parts[index]
        if part.kind in ("break", "split"):
            text = ""
        elif part.kind in ("text", "atom") and part.text.strip():
            text = part.text
    line = ""  # the text before the position
    run: Run | None = None
    for part, behind in zip(parts, following, strict=True):
        if part.kind == "text" and part.text.strip():
            line, run = part.text, part.run
        if part.kind != "break":
            joined.append(part)
        elif line.strip() and line.rstrip()[-1] not in TERMINAL and behind.lstrip()[:1].islower():
            if not line[-1].isspace() and not behind[0].isspace():
                joined.append(Part((part.span[0],) * 2, "text", " ", run))
            joined.append(Part(part.span, "single"))
        else:
            joined.append(Part(part.span, "split"))
            line = ""
    return joined


def _groups(parts: Sequence[Part]) -> Iterable[list[Part]]:
    """Yield the parts between splits. The marks of a pair that a split is inside are splits themselves."""
    splits = {index for index, part in enumerate(parts) if part.kind == "split"}
    open_indices: list[tuple[int, int]] = []  # opening marks, and the splits before each of them
    seen = 0
    for index, part in enumerate(parts):
        if part.kind == "split":
            seen += 1
        elif part.kind == "open":
            open_indices.append((index, seen))
        elif part.kind == "close" and open_indices:
            opening, before = open_indices.pop()
            if seen > before:
                splits |= {opening, index}
    group: list[Part] = []
    for index, part in enumerate(parts):
        if index in splits:
            yield group
            group = []
        else:
            group.append(part)
    yield group
