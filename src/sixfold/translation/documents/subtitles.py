"""SubRip and WebVTT: the text of every cue; numbers, times, notes and styles stay."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import zip_longest

from sixfold.translation.documents.units import Kind, Piece, Unit, text_pieces, unit_of

_TIMES = re.compile(r"^[ \t]*[\d:.,]+[ \t]*-->[ \t]*[\d:.,]+[^\n]*(?:\n|\Z)", re.M)
_BLANK = re.compile(r"(?:^|\n)[ \t\r]*(?=\n|\Z)")
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[a-z][^<>\n]*|[\d:.]+)>"
    r"|\{\\[^{}\n]*\}"  # {\an8}: where a cue stands
    r"|\n[ \t]*+-(?=\s)",
    re.I,
)


def parse(text: str) -> list[Unit]:
    """A cue is a unit; its lines are one text, except that a dash begins what another speaker says."""
    units: list[Unit] = []
    blanks = [blank.start() for blank in _BLANK.finditer(text)]
    every = list(_TIMES.finditer(text))
    for times, following in zip_longest(every, every[1:]):
        place = bisect_left(blanks, max(0, times.end() - 1))
        limits = [blanks[place]] if place < len(blanks) else []
        end = max(times.end(), min([len(text), *limits, *([following.start()] if following else [])]))
        pieces: list[Piece] = []
        at = times.end()
        for tag in _TAG.finditer(text, at, end):
            pieces += text_pieces(text, (at, tag.start()))
            at = tag.end()
            if "\n" in tag[0]:
                units += _units(pieces)
                pieces = []
                continue
            named = tag["name"] is not None and not tag["name"][0].isdigit()
            kind: Kind = "single" if not named else "close" if tag["close"] else "open"
            pieces.append(Piece(tag.span(), kind=kind))
        units += _units([*pieces, *text_pieces(text, (at, end))])
    return units


def _units(pieces: list[Piece]) -> list[Unit]:
    unit = unit_of(pieces)
    return [] if unit is None else [unit]
