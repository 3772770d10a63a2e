"""DOCX: the paragraphs of its parts, with their runs, which set the format of words."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

from sixfold.translation.documents.html import Token, tokens
from sixfold.translation.documents.units import Kind, Piece, Unit, make_unit, unescape_references

MAIN_PART = "word/document.xml"
_REVISION_ID = re.compile(r' w:rsid\w*="[^"]*"')
PAIRED_TAGS = frozenset(["w:hyperlink", "w:ins", "w:smarttag", "w:sdt", "w:sdtcontent"])


def preserve_spaces(part: str) -> str:
    """Make the spaces at the ends of all runs count, since a translation may have spaces there."""
    return part.replace("<w:t>", '<w:t xml:space="preserve">')


def parse(text: str) -> list[Unit]:
    """Return the paragraphs of a part as units."""
    units: list[Unit] = []
    reader: _Paragraph | None = None
    for token in tokens(text, 0, len(text)):
        raw = text[slice(*token.span)]
        if token.name == "w:p" and not raw.endswith("/>"):
            if token.closes and reader is not None and (unit := reader.unit()) is not None:
                units.append(unit)
            reader = None if token.closes else _Paragraph(text)
        elif reader is not None:
            reader.add_token(token, raw)
    return units


class _Paragraph:
    """The pieces of a paragraph so far: a run with text is a pair of marks around it, one without is a single mark."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pieces: list[Piece] = []
        self.run: int | None = None  # where the current run begins
        self.texts: list[tuple[int, int]] = []  # the spans of text in the current run
        self.in_text = False  # inside <w:t>
        self.run_start = ""  # of the last run with text: everything before the text, which sets the format
        self.depth = 0  # open elements of properties, which hold no text

    def add_token(self, token: Token, raw: str) -> None:
        if token.name in ("w:ppr", "mc:alternatecontent") and not raw.endswith("/>"):
            self.depth += -1 if token.closes else 1
        elif self.depth:
            return
        elif token.name == "w:r" and not raw.endswith("/>"):
            if token.closes and self.run is not None:
                self._end_run(token.span[1])
            self.run, self.texts = (None if token.closes else token.span[0]), []
        elif self.run is not None:
            if token.name == "w:t":
                self.in_text = not token.closes and not raw.endswith("/>")
            elif not token.name and self.in_text:
                self.texts.append(token.span)
        elif token.name:
            closed = raw.endswith("/>")
            kind: Kind = "single" if token.name not in PAIRED_TAGS or closed else "close" if token.closes else "open"
            self.pieces.append(Piece(token.span, kind=kind))

    def _end_run(self, end: int) -> None:
        assert self.run is not None
        if not self.texts:
            self.pieces.append(Piece((self.run, end), kind="single"))
            return
        position = self.run
        run_start = _REVISION_ID.sub("", self.text[position : self.texts[0][0]])
        continues = run_start == self.run_start and bool(self.pieces) and self.pieces[-1].span[1] == position
        if continues:  # Word starts a new run where an author paused
            self.pieces.pop()
        self.run_start = run_start
        for number, span in enumerate(self.texts):
            if number or not continues:
                self.pieces.append(Piece((position, span[0]), kind="single" if number else "open"))
            self.pieces.append(Piece(span, unescape_references(self.text[slice(*span)])))
            position = span[1]
        self.pieces.append(Piece((position, end), kind="close"))

    def unit(self) -> Unit | None:
        unit = make_unit(self.pieces, lambda text: escape(text, quote=False), collapses=False)
        return unit and replace(unit, covered=True)
