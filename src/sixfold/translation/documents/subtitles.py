"""SubRip and WebVTT: the text of every cue; numbers, times, notes and styles stay."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import zip_longest

from sixfold.translation.documents.units import Kind, Piece, Unit, make_unit, text_pieces

_TIMES = re.compile(r"^[ \t]*[\d:.,]+[ \t]*-->[ \t]*[\d:.,]+[^\n]*(?:\n|\Z)", re.M)
_BLANK = re.compile(r"(?:^|\n)[ \t\r]*(?=\n|\Z)")
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[a-z][^<>\n]*|[\d:.]+)>"
    r"|\{\\[^{}\n]*\}"  # {\an8}: the position of a cue on the screen
    r"|\n[ \t]*+-(?=\s)",
    re.I,
)


def parse(text: str) -> list[Unit]:
    """Return the text of each cue as a unit; a line that begins with a dash, for another speaker, starts a new unit."""
    units: list[Unit] = []
    blanks = [blank.start() for blank in _BLANK.finditer(text)]
    all_times = list(_TIMES.finditer(text))
    for times, next_times in zip_longest(all_times, all_times[1:]):
        index = bisect_left(blanks, max(0, times.end() - 1))
        limits = [blanks[index]] if index < len(blanks) else []
        end = max(times.end(), min([len(text), *limits, *([next_times.start()] if next_times else [])]))
        pieces: list[Piece] = []
        position = times.end()
        for tag in _TAG.finditer(text, position, end):
            pieces += text_pieces(text, (position, tag.start()))
            position = tag.end()
            if "\n" in tag[0]:
                units += _units(pieces)
                pieces = []
                continue
            is_named = tag["name"] is not None and not tag["name"][0].isdigit()
            kind: Kind = "single" if not is_named else "close" if tag["close"] else "open"
            pieces.append(Piece(tag.span(), kind=kind))
        units += _units([*pieces, *text_pieces(text, (position, end))])
    return units


def _units(pieces: list[Piece]) -> list[Unit]:
    unit = make_unit(pieces)
    return [] if unit is None else [unit]
