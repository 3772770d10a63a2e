"""SubRip and WebVTT: the text of every cue; numbers, times, notes and styles stay."""

from __future__ import annotations

import re

from sixfold.translation.units import Kind, Piece, Unit, text_pieces, unit_of

_TIMES = re.compile(r"^[ \t]*[\d:.,]+[ \t]*-->[ \t]*[\d:.,]+[^\n]*(?:\n|\Z)", re.M)
_BLANK = re.compile(r"(?:^|\n)[ \t\r]*(?=\n|\Z)")
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[a-z][^<>\n]*|[\d:.]+)>"
    r"|\{\\[^{}\n]*\}"  # {\an8}: where a cue stands
    r"|[ \t\r]*\n[ \t]*-(?=\s)",
    re.I,
)


def parse(text: str) -> list[Unit]:
    """A cue is a unit; its lines are one text, except that a dash begins what another speaker says."""
    units: list[Unit] = []
    for times in _TIMES.finditer(text):
        blank = _BLANK.search(text, max(0, times.end() - 1))
        end = max(times.end(), blank.start() if blank else len(text))
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
