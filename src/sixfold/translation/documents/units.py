"""A unit of a document: prose that is translated by itself, with the markup inside it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Literal, NamedTuple

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.result import Notice
from sixfold.translation.result import Span as Span

Kind = Literal["open", "close", "single"]

MAX_DEPTH = 50  # pairs of marks inside each other
SPACE = " \t\r\n\f"  # white space between words; any other white space has a meaning of its own
_LONG_NUMBER = re.compile(r"&#(?:(?P<base>[xX]?)(?P<digits>(?<=#)[0-9]{8,}|(?<=[xX])[0-9a-fA-F]{8,}));?")
NO_CHARACTER = "\ufffd"


Located = tuple[int, Notice]  # a notice, with the position in the text of the document that it is about


class TargetLanguage(NamedTuple):
    """The language that a catalogue says its translations are in."""

    position: int  # of the part of the document that it is said of
    code: str
    has_translations: bool  # in that part; a template can name the language of its messages, and has none


class UnreadableError(Exception):
    """A document that does not have its format; the caller, who knows the document's name, makes a DataError of it."""

    def __init__(self, message: str, line: int | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.hint = message, line, hint


class Run(NamedTuple):
    """What is written before and after each text, where a format has no text outside such runs, as DOCX."""

    before: str
    after: str
    is_link: bool = False  # so that no text around it may have it


class Mark(NamedTuple):
    """Markup without text of its own, such as <b>, </b> or <br>; an opening and a closing mark form a pair."""

    position: int  # in the text of the unit
    kind: Kind
    span: Span | None  # in the document
    raw: str = ""  # what is written if it has no span in the document
    run: Run | None = None  # of an opening mark: the run for text inside the pair, if it has another than around it


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
    run: Run | None = None  # for the text outside of pairs that have a run of their own
    # For a translation with warnings: what replaces a span before the unit, once if units share it, and what is written
    # around the translation instead of `around`.
    review: tuple[Span, str] | None = None
    review_around: tuple[str, str] | None = None
    # What replaces a span before the unit, instead of `review`, if verification leaves the unit or one that shares the
    # span untranslated.
    unfinished: tuple[Span, str] | None = None
    layout: Callable[[str], str] = str  # breaks the written translation, with its markup, into lines
    flanking: bool = False  # whether a mark opens or closes depends on the characters beside it, as in Markdown


@dataclass
class Piece:
    """A piece of text or markup, in the order of the document."""

    span: Span
    text: str = ""
    kind: Kind | Literal["text", "atom"] = "text"
    run: Run | None = None  # that a text stands in, or that an opening mark begins


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
    inner, run = _pair_runs(inner)
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
            marks.append(Mark(len(text), kind, piece.span, run=piece.run if kind == "open" else None))
    return Unit((inner[0].span[0], inner[-1].span[1]), text, tuple(marks), tuple(atoms), escape, run=run)


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


def _pair_runs(pieces: list[Piece]) -> tuple[list[Piece], Run | None]:
    """Return pieces with pairs of marks around the texts whose runs differ from the run of what they are in.

    The run of a pair of marks, and that of all pieces, is the one that most characters directly inside it have. So if
    most of a sentence is plain, a pair stands around each bold text, and a footnote may divide the plain text anywhere.
    """
    partners = _partners(pieces)
    runs, outermost = _frequent_runs(pieces, partners)
    if outermost is None:
        return pieces, None
    paired: list[Piece] = []
    around = [outermost]
    closing = set(partners.values())
    inside: Run | None = None  # of the pair around the position, if it is one that is added here
    for index, piece in enumerate(pieces):
        run = piece.run if piece.kind == "text" and piece.run != around[-1] else None
        start = piece.span[0]
        if run != inside:
            if inside is not None:
                paired.append(Piece((start, start), kind="close"))
            if run is not None:
                paired.append(Piece((start, start), kind="open", run=run))
            inside = run
        if index in runs:  # an opening mark
            paired.append(Piece(piece.span, kind="open", run=runs[index] if runs[index] != around[-1] else None))
            around.append(runs[index] or around[-1])
            continue
        if index in closing:
            around.pop()
        paired.append(piece)
    if inside is not None:
        paired.append(Piece((pieces[-1].span[1],) * 2, kind="close"))
    return paired, outermost


def _frequent_runs(pieces: Sequence[Piece], partners: Mapping[int, int]) -> tuple[dict[int, Run | None], Run | None]:
    """Return the most frequent run directly inside each pair of marks, by the index of its opening piece, and of all.

    A pair without text has none.
    """
    counts: dict[int, Counter[Run]] = {-1: Counter(), **{index: Counter() for index in partners}}
    every: Counter[Run] = Counter()
    open_indices = [-1]
    closing = set(partners.values())
    for index, piece in enumerate(pieces):
        if index in partners:
            open_indices.append(index)
        elif index in closing:
            open_indices.pop()
        elif piece.kind == "text" and piece.run is not None:
            size = len(piece.text.strip())
            counts[open_indices[-1]][piece.run] += size
            every[piece.run] += size
    runs = {index: _most_frequent(count) for index, count in counts.items()}
    outermost = runs.pop(-1) or _most_frequent(every)
    return runs, outermost


def _most_frequent(counts: Counter[Run]) -> Run | None:
    return max(counts, key=lambda run: (not run.is_link, counts[run]), default=None)


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
