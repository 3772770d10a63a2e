"""Word's DOCX: the paragraphs of its parts, with the runs that say how their words look."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from html import escape

from sixfold.errors import DataError
from sixfold.translation.documents.html import Token, tokens
from sixfold.translation.documents.units import Kind, Piece, Unit, unescaped, unit_of

MAIN = "word/document.xml"
_PARTS = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml")
_LOOK = re.compile(r' w:rsid\w*="[^"]*"')
LARGEST = 1 << 29  # bytes of all that is packed in a file
MAX_TEXT_BYTES = 1 << 26  # of the parts that are read; a book has some million
PAIRS = frozenset(["w:hyperlink", "w:ins", "w:smarttag", "w:sdt", "w:sdtcontent"])


def read(data: bytes, name: str, most_text: int = MAX_TEXT_BYTES) -> dict[str, bytes]:
    """The parts that hold text; more than `most_text` bytes of them are refused before they are unpacked."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            wanted = [each for each in file.infolist() if _PARTS.fullmatch(each.filename)]
            if not any(each.filename == MAIN for each in wanted):
                raise DataError(f"{name}: expected a DOCX file; it has no {MAIN}")
            for some, most in ((file.infolist(), LARGEST), (wanted, most_text)):
                if sum(each.file_size for each in some) > most:
                    raise DataError(f"{name}: expected at most {most:,} bytes when it is unpacked; got more")
            return {each.filename: file.read(each) for each in wanted}
    # What zipfile raises for damage, for ways to pack that it does not know, and for passwords.
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise DataError(f"{name}: expected a DOCX file; {error}") from None


def write(data: bytes, parts: Mapping[str, bytes]) -> bytes:
    """The same file with some parts replaced; all the others as they were, in their order."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for each in old.infolist():
            new.writestr(each, parts.get(each.filename, old.read(each)), each.compress_type)
    return out.getvalue()


def prepared(part: bytes) -> bytes:
    """Spaces at the ends of a run count, wherever a translation may put them."""
    return part.replace(b"<w:t>", b'<w:t xml:space="preserve">')


def parse(text: str) -> list[Unit]:
    """The paragraphs of a part."""
    units: list[Unit] = []
    reader: _Paragraph | None = None
    for token in tokens(text, 0, len(text)):
        raw = text[slice(*token.span)]
        if token.name == "w:p" and not raw.endswith("/>"):
            if token.closes and reader is not None and (unit := reader.unit()) is not None:
                units.append(unit)
            reader = None if token.closes else _Paragraph(text)
        elif reader is not None:
            reader.take(token, raw)
    return units


class _Paragraph:
    """What has been read of one. A run with text is a pair of marks around it; one without is a single mark."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pieces: list[Piece] = []
        self.run: int | None = None  # where it begins
        self.said: list[tuple[int, int]] = []  # the texts of the run
        self.inside = False  # of <w:t>
        self.look = ""  # of the last run with text: how it begins
        self.depth = 0  # of properties, which hold no text

    def take(self, token: Token, raw: str) -> None:
        if token.name in ("w:ppr", "mc:alternatecontent") and not raw.endswith("/>"):
            self.depth += -1 if token.closes else 1
        elif self.depth:
            return
        elif token.name == "w:r" and not raw.endswith("/>"):
            if token.closes and self.run is not None:
                self._end_run(token.span[1])
            self.run, self.said = (None if token.closes else token.span[0]), []
        elif self.run is not None:
            if token.name == "w:t":
                self.inside = not token.closes and not raw.endswith("/>")
            elif not token.name and self.inside:
                self.said.append(token.span)
        elif token.name:
            closed = raw.endswith("/>")
            kind: Kind = "single" if token.name not in PAIRS or closed else "close" if token.closes else "open"
            self.pieces.append(Piece(token.span, kind=kind))

    def _end_run(self, end: int) -> None:
        assert self.run is not None
        if not self.said:
            self.pieces.append(Piece((self.run, end), kind="single"))
            return
        at = self.run
        look = _LOOK.sub("", self.text[at : self.said[0][0]])
        goes_on = look == self.look and bool(self.pieces) and self.pieces[-1].span[1] == at
        if goes_on:  # Word cuts runs where somebody paused
            self.pieces.pop()
        self.look = look
        for number, span in enumerate(self.said):
            if number or not goes_on:
                self.pieces.append(Piece((at, span[0]), kind="single" if number else "open"))
            self.pieces.append(Piece(span, unescaped(self.text[slice(*span)])))
            at = span[1]
        self.pieces.append(Piece((at, end), kind="close"))

    def unit(self) -> Unit | None:
        found = unit_of(self.pieces, lambda said: escape(said, quote=False), folds=False)
        return found and replace(found, covers=True)
