"""The fonts in the text of manual pages, as runs that are not nested.

roff has no nested fonts: `\\fB` sets one, and `\\fP` goes back to the one before, whichever that was. Each run of text
in another font than that of running text becomes a pair of marks, or an atom if it is a name or an option.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sixfold.translation.documents import seams
from sixfold.translation.documents.markup.man_syntax import FONT, INLINE_MACROS, PREVIOUS, ROMAN, Fonts, font_of
from sixfold.translation.documents.units import SPACE, Piece

MACRO_SIGN = "\ufdd1"  # a noncharacter: stands before a macro in a translation that is not divided into lines yet
_FONT = re.compile(FONT)
_END = r"\\f(?:[RP1]|\((?:R |P )|\[[RP1]?\])"
_BEGIN = rf"(?!{_END}){FONT}"
_OPTION = re.compile(rf"{FONT}\\?-")
_TOKEN = re.compile(
    rf"(?P<macro>[.'][ \t]*(?:{'|'.join(sorted(INLINE_MACROS, key=len, reverse=True))})(?:[ \t][^\n]*)?\n)"
    rf"|(?P<atom>{_BEGIN}(?:[^\\\n]|\\[^f\n])*{_END})|(?P<begin>{_BEGIN})|(?P<end>{_END})"
)


def pair_fonts(text: str, pieces: Sequence[Piece]) -> tuple[list[Piece], bool]:
    """Return the pieces of a paragraph with pairs of marks around the runs in other fonts, and whether there are such.

    A run that another one follows ends with a mark of no width. Escapes that change nothing are left out. If a run
    begins with `\\fP`, which means something else in another place, the fonts stay single marks.
    """
    fonts = Fonts()
    paired: list[Piece] = []
    is_open = False
    for piece in pieces:
        if piece.kind != "single" or not _FONT.fullmatch(text, *piece.span):
            paired.append(piece)
            continue
        escape = text[slice(*piece.span)]
        if not fonts.set(escape):
            continue
        begins = fonts.current != ROMAN
        if begins and font_of(escape) == PREVIOUS:
            return list(pieces), False
        if is_open:
            start = piece.span[0]
            paired.append(Piece((start, start) if begins else piece.span, kind="close"))
        if begins:
            paired.append(Piece(piece.span, kind="open"))
        is_open = begins
    return _with_atoms(text, paired), True


def _with_atoms(text: str, pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces where a word in another font, which is a name or an option, is an atom."""
    result: list[Piece] = []
    opening: int | None = None
    for piece in pieces:
        result.append(piece)
        if piece.kind == "open":
            opening = len(result) - 1
        elif piece.kind == "close" and opening is not None:
            inside = "".join(each.text for each in result[opening + 1 : -1])
            is_text = all(each.kind == "text" for each in result[opening + 1 : -1])
            is_name = is_text and inside != "" and not set(SPACE).intersection(inside)
            has_end = piece.span[0] < piece.span[1]
            if has_end and (is_name or inside.lstrip().startswith("-")) and inside.strip() == inside:
                span = result[opening].span[0], piece.span[1]
                result[opening:] = [Piece(span, text[slice(*span)], "atom")]
            opening = None
    return result


def mark_macros(written: str) -> str:
    """Return a written translation, with its seams, with a sign before each macro."""
    parts = seams.split(written)
    parts[::2] = (_TOKEN.sub(_marked, part) for part in parts[::2])
    return "".join(parts)


def _marked(token: re.Match[str]) -> str:
    return f"\n{MACRO_SIGN}{token[0]}" if token["macro"] else token[0]


def write_runs(written: str) -> str:
    """Return a written translation, with its seams, where no run in another font has a name or a macro inside.

    "\\fIsome \\fBname\\fP words\\fP" becomes "some \\fBname\\fP \\fIwords\\fP": the longest part keeps the font.
    """
    parts = seams.split(written)
    writer = _RunWriter()
    for index, part in enumerate(parts):
        if index % 2:
            writer.add(part)
            continue
        if not part and 0 < index < len(parts) - 1:  # a mark of no width
            writer.end("")
        position = 0
        for token in _TOKEN.finditer(part):
            writer.add(part[position : token.start()])
            position = token.end()
            if token["begin"]:
                writer.begin(token[0])
            elif token["end"]:
                writer.end(token[0])
            else:
                writer.add_apart(_marked(token))
        writer.add(part[position:])
    writer.end("")
    return "".join(writer.written)


class _RunWriter:
    def __init__(self) -> None:
        self.written: list[str] = []
        self._begin = ""  # of the current run, if there is one
        self._inside: list[str] = [""]  # texts, which have even indices, and what stands between them in its own font

    def add(self, text: str) -> None:
        """Add a text or an escape, in the font of the current run."""
        if self._begin:
            self._inside[-1] += text
        elif text:
            self.written.append(text)

    def add_apart(self, text: str) -> None:
        """Add a name that has its own font, or a macro."""
        before = self._inside[-1] if self._begin else "".join(self.written[-1:])
        text = f" {text}" if before.endswith("-") and _OPTION.match(text) else text
        if self._begin:
            self._inside += [text, ""]
        else:
            self.written.append(text)

    def begin(self, escape: str) -> None:
        """Begin a run, after the current one."""
        self.end("")
        self._begin = escape

    def end(self, escape: str) -> None:
        """End the current run, with an escape or with `\\fR`."""
        if not self._begin:
            self.written.append(escape)
            return
        longest = max(range(0, len(self._inside), 2), key=lambda index: len(self._inside[index].strip()))
        self._inside[longest] = f"{self._begin}{self._inside[longest]}{escape or chr(92) + 'f' + ROMAN}"
        self.written += self._inside
        self._begin, self._inside = "", [""]
