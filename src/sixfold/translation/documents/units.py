"""A piece of a document that is prose: its text, the markup inside it, and how a translation takes its place."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Literal, NamedTuple

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.result import Span as Span

Kind = Literal["open", "close", "single"]

DEEPEST = 50  # pairs of marks inside each other
SPACE = " \t\r\n\f"  # what is set between words; other white space means something
# What stands for something else, and must come back as it is.
PLACEHOLDER = re.compile(
    r"(?:https?://|www\.)[!-~]*[\w/#]"  # an address, less the marks of the sentence behind it
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"
    r"|\{\{[^{}\n]{1,80}\}\}|\$?\{[^{}\s]{0,60}\}|\{%[^%\n]{1,80}%\}"
    r"|%(?:\(\w+\)|\d+\$)?[-+#0]?\d*(?:\.\d+)?[sdifxXgcr](?![a-z])|%\{\w+\}|%@"
    r"|`[^`\n]+`"
)


_LONG_NUMBER = re.compile(r"&#(?:(?P<base>[xX]?)(?P<digits>(?<=#)[0-9]{8,}|(?<=[xX])[0-9a-fA-F]{8,}));?")
NO_CHARACTER = "\ufffd"


class UnreadableError(Exception):
    """A document that is not of its format; whoever knows the name of the document makes a DataError of it."""

    def __init__(self, message: str, line: int | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.hint = message, line, hint


class Mark(NamedTuple):
    """Markup without text of its own, such as <b>, </b> or <br>; what opens and what closes belong together."""

    at: int  # in the text of the unit
    kind: Kind
    span: Span | None  # in the document
    raw: str = ""  # what is written where the document has no place for it


class Atom(NamedTuple):
    """Part of a unit's text that is not to be translated, and where the document has it."""

    shown: Span  # in the text of the unit
    span: Span | None = None  # in the document; None: it is written as it is shown


@dataclass(frozen=True)
class Unit:
    """What is translated by itself, and goes to `span` of the document."""

    span: Span
    text: str
    marks: tuple[Mark, ...] = ()
    atoms: tuple[Atom, ...] = ()
    escape: Callable[[str], str] = str
    around: tuple[str, str] = ("", "")  # what is written before and behind its translation
    covers: bool = False  # all of the text must stand inside pairs of marks
    leans: bool = False  # whether a mark opens or closes is told by what is beside it, as in Markdown

    def all_atoms(self) -> list[Atom]:
        """The atoms of the markup, and those that can be told by their look, from left to right."""
        ends = [atom.shown[1] for atom in self.atoms]
        found = list(self.atoms)
        for match in PLACEHOLDER.finditer(self.text):
            number = bisect_left(ends, match.start() + 1)  # the first atom that ends behind where this begins
            if number == len(ends) or self.atoms[number].shown[0] >= match.end():
                found.append(Atom(match.span()))
        return sorted(found)


@dataclass
class Piece:
    """What a reader of markup has met, in the order of the document."""

    span: Span
    text: str = ""
    kind: Kind | Literal["text", "atom"] = "text"


def unit_of(
    pieces: Sequence[Piece], escape: Callable[[str], str] = str, folds: bool = True, trims: bool = True
) -> Unit | None:
    """The unit that pieces make, without what surrounds its text; None where there is no text.

    `folds`: white space, line feeds too, is but a space, as in HTML and Markdown. `trims`: marks around it stay where
    they are; not so where the translation goes elsewhere.
    """
    check_cancelled()
    kept = _trimmed(pieces) if trims else list(pieces)
    if all(_is_blank(piece) for piece in kept if piece.kind in ("text", "atom")):
        return None
    text = ""
    marks: list[Mark] = []
    atoms: list[Atom] = []
    for piece, kind in zip(kept, _matched(kept), strict=True):
        if kind == "atom":
            atoms.append(Atom((len(text), len(text) + len(piece.text)), piece.span))
            text += piece.text
        elif kind == "text":
            said = re.sub(f"[{SPACE}]+", " ", piece.text) if folds else piece.text
            text += said.lstrip(" ") if folds and text.endswith(" ") else said
        else:
            marks.append(Mark(len(text), kind, piece.span))
    return Unit((kept[0].span[0], kept[-1].span[1]), text, tuple(marks), tuple(atoms), escape)


def text_pieces(document: str, span: Span, decode: Callable[[str], str] = str) -> list[Piece]:
    """A stretch of text; white space at its ends is a piece of its own, which a unit can do without."""
    raw = document[slice(*span)]
    start = span[0] + len(raw) - len(raw.lstrip(SPACE))
    end = max(start, span[1] - len(raw) + len(raw.rstrip(SPACE)))
    cuts = [(span[0], start), (start, end), (end, span[1])]
    return [Piece(each, decode(document[slice(*each)])) for each in cuts if each[0] < each[1]]


def unescaped(text: str) -> str:
    """Character references of HTML and XML as the characters that they stand for.

    A number of many digits stands for no character; Python would refuse to read one of thousands of digits.
    """
    return unescape(_LONG_NUMBER.sub(_shortened, text)) if "&" in text else text


def _shortened(reference: re.Match[str]) -> str:
    digits = reference["digits"].lstrip("0")
    return f"&#{reference['base']}{digits or 0};" if len(digits) < 8 else NO_CHARACTER


def _trimmed(pieces: Sequence[Piece]) -> list[Piece]:
    """Without white space and marks around it that the text need not know of."""
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
    """Where each piece that opens is closed; those that are too deep inside of others have no partner."""
    found: dict[int, int] = {}
    waiting: list[int] = []
    for place, piece in enumerate(pieces):
        if piece.kind == "open":
            waiting.append(place)
        elif piece.kind == "close" and waiting:
            opened = waiting.pop()
            if len(waiting) < DEEPEST:
                found[opened] = place
    return found


def _matched(pieces: Sequence[Piece]) -> list[Kind | Literal["text", "atom"]]:
    """The kinds, where what opens or closes without a partner is single."""
    partners = _partners(pieces)
    paired = {*partners, *partners.values()}
    return [
        "single" if piece.kind in ("open", "close") and place not in paired else piece.kind
        for place, piece in enumerate(pieces)
    ]
