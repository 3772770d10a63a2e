"""A unit of a document: prose that is translated by itself, with the markup inside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Literal, NamedTuple

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.result import Span as Span

Kind = Literal["open", "close", "single"]

MAX_DEPTH = 50  # pairs of marks inside each other
SPACE = " \t\r\n\f"  # white space between words; any other white space has a meaning of its own
_LONG_NUMBER = re.compile(r"&#(?:(?P<base>[xX]?)(?P<digits>(?<=#)[0-9]{8,}|(?<=[xX])[0-9a-fA-F]{8,}));?")
NO_CHARACTER = "\ufffd"


class UnreadableError(Exception):
    """A document that does not have its format; the caller, who knows the document's name, makes a DataError of it."""

    def __init__(self, message: str, line: int | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.hint = message, line, hint


class Mark(NamedTuple):
    """Markup without text of its own, such as <b>, </b> or <br>; an opening and a closing mark form a pair."""

    position: int  # in the text of the unit
    kind: Kind
    span: Span | None  # in the document
    raw: str = ""  # what is written if it has no span in the document


class Atom(NamedTuple):
    """A part of a unit's text that is not translated, such as code."""

    text_span: Span  # in the text of the unit
    span: Span | None = None  # in the document; None: it is written as it is in the text


@dataclass(frozen=True)
class Unit:
    """A text that is translated by itself, and whose translation replaces `span` of the document."""

    span: Span
    text: str
    marks: tuple[Mark, ...] = ()
    atoms: tuple[Atom, ...] = ()
    escape: Callable[[str], str] = str
    around: tuple[str, str] = ("", "")  # written before and after the translation
    covered: bool = False  # all of its text must be inside pairs of marks, as in the runs of DOCX
    review: tuple[Span, str] | None = None  # for a translation with warnings: what replaces a span outside the unit
    flanking: bool = False  # whether a mark opens or closes depends on the characters beside it, as in Markdown


@dataclass
class Piece:
    """A piece of text or markup, in the order of the document."""

    span: Span
    text: str = ""
    kind: Kind | Literal["text", "atom"] = "text"


def make_unit(
    pieces: Sequence[Piece], escape: Callable[[str], str] = str, collapses: bool = True, trims: bool = True
) -> Unit | None:
    """Return the unit that pieces make, or None if they have no text.

    `collapses`: a run of white space, line feeds too, becomes one space, as in HTML and Markdown. `trims`: marks and
    white space around the text are left out of the unit; not so where the translation goes elsewhere.
    """
    check_cancelled()
    inner = _trim(pieces) if trims else list(pieces)
    if all(_is_blank(piece) for piece in inner if piece.kind in ("text", "atom")):
        return None
    text = ""
    marks: list[Mark] = []
    atoms: list[Atom] = []
    for piece, kind in zip(inner, _matched_kinds(inner), strict=True):
        if kind == "atom":
            atoms.append(Atom((len(text), len(text) + len(piece.text)), piece.span))
            text += piece.text
        elif kind == "text":
            added = re.sub(f"[{SPACE}]+", " ", piece.text) if collapses else piece.text
            text += added.lstrip(" ") if collapses and text.endswith(" ") else added
        else:
            marks.append(Mark(len(text), kind, piece.span))
    return Unit((inner[0].span[0], inner[-1].span[1]), text, tuple(marks), tuple(atoms), escape)


def text_pieces(document: str, span: Span, decode: Callable[[str], str] = str) -> list[Piece]:
    """Return a span of text as pieces; white space at either end is a piece of its own, which a unit can leave out."""
    raw = document[slice(*span)]
    start = span[0] + len(raw) - len(raw.lstrip(SPACE))
    end = max(start, span[1] - len(raw) + len(raw.rstrip(SPACE)))
    parts = [(span[0], start), (start, end), (end, span[1])]
    return [Piece(part, decode(document[slice(*part)])) for part in parts if part[0] < part[1]]


def unescape_references(text: str) -> str:
    """Replace character references of HTML and XML by their characters.

    A number of many digits stands for no character; Python refuses to read one of thousands of digits.
    """
    return unescape(_LONG_NUMBER.sub(_shorten, text)) if "&" in text else text


def _shorten(reference: re.Match[str]) -> str:
    digits = reference["digits"].lstrip("0")
    return f"&#{reference['base']}{digits or 0};" if len(digits) < 8 else NO_CHARACTER


def _trim(pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces without the white space and the marks around their text."""
    partners = _partners(pieces)
    start, end = 0, len(pieces)
    while start < end:
        first, last = pieces[start], pieces[end - 1]
        if _is_blank(first) or first.kind in ("single", "close"):
            start += 1
        elif _is_blank(last) or last.kind in ("single", "open"):
            end -= 1
        elif first.kind == "open" and partners.get(start) == end - 1:
            start, end = start + 1, end - 1
        else:
            break
    return list(pieces[start:end])


def _is_blank(piece: Piece) -> bool:
    return not piece.text.strip(SPACE) and piece.kind in ("text", "atom")


def _partners(pieces: Sequence[Piece]) -> dict[int, int]:
    """Return the index of the closing piece for that of each opening piece; those nested too deeply have none."""
    partners: dict[int, int] = {}
    open_indices: list[int] = []
    for index, piece in enumerate(pieces):
        if piece.kind == "open":
            open_indices.append(index)
        elif piece.kind == "close" and open_indices:
            opening = open_indices.pop()
            if len(open_indices) < MAX_DEPTH:
                partners[opening] = index
    return partners


def _matched_kinds(pieces: Sequence[Piece]) -> list[Kind | Literal["text", "atom"]]:
    """Return the kinds of pieces, where an opening or closing piece without a partner is single."""
    partners = _partners(pieces)
    paired = {*partners, *partners.values()}
    return [
        "single" if piece.kind in ("open", "close") and index not in paired else piece.kind
        for index, piece in enumerate(pieces)
    ]
