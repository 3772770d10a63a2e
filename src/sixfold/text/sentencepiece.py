"""SentencePiece models, unigram and BPE: text to pieces and back, exactly as the library computes them, without it.

A text is encoded in two steps.

1. The normaliser replaces characters by the rules that are compiled into the model (`text/sentencepiece_rules.py`),
   collapses spaces and writes each of them as ▁.
2. The model cuts the normalised text into pieces: the likeliest ones (unigram), or by merging neighbours (BPE).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sixfold.errors import ModelFileError
from sixfold.text.sentencepiece_cutting import BpeCutter, UnigramCutter
from sixfold.text.sentencepiece_file import BYTE, CONTROL, NORMAL, SPACE, UNKNOWN, UNUSED, USER_DEFINED, read_model
from sixfold.text.sentencepiece_rules import CharacterRules


class Piece(NamedTuple):
    """A piece of a text, the first and the last character that it comes from, the last exclusive, and its kind.

    An unknown piece has the characters of the normalised text that no piece of the model covers.
    """

    text: str
    start: int
    end: int
    is_unknown: bool = False


class SentencePieceModel:
    """A SentencePiece model that has been read from the bytes of its file."""

    def __init__(self, data: bytes, where: str = "SentencePiece model") -> None:
        """Read a model; `where` is named in the ModelFileError that is raised for anything but one."""
        try:
            contents = read_model(data)
            self.rules = CharacterRules(contents.charsmap)
        except (ValueError, TypeError, IndexError) as error:
            raise ModelFileError(
                f"{where}: expected a SentencePiece model; {error}", "copy or download the file again"
            ) from None
        if contents.algorithm not in ("unigram", "bpe"):
            raise ModelFileError(
                f"{where}: expected a SentencePiece model of the type unigram or bpe; got {contents.algorithm!r}"
            )
        self.data, self.settings, self.algorithm = data, contents.settings, contents.algorithm
        self.pieces, self.scores, self.kinds = contents.pieces, contents.scores, contents.kinds
        self.has_rules = bool(contents.charsmap)
        self.has_byte_fallback = contents.byte_fallback
        self.unknown_surface = contents.unknown_surface
        self._ids = {
            piece: index
            for index, (piece, kind) in enumerate(zip(self.pieces, self.kinds, strict=True))
            if kind in (NORMAL, USER_DEFINED, UNUSED)
        }
        self._reserved = {piece: index for index, piece in enumerate(self.pieces) if piece not in self._ids}
        self._user_defined = sorted(
            (piece for piece, kind in zip(self.pieces, self.kinds, strict=True) if kind == USER_DEFINED and piece),
            key=len, reverse=True,
        )  # fmt: skip
        # The longest first: of several symbols that begin at a character, the longest is taken.
        self._symbol = re.compile("|".join(map(re.escape, self._user_defined))) if self._user_defined else None
        self._cut = UnigramCutter(self) if self.algorithm == "unigram" else BpeCutter(self)

    def id_of(self, piece: str) -> int:
        """Return the id of a piece, or that of the unknown piece."""
        index = self._reserved.get(piece)
        return self._ids.get(piece, self.unknown) if index is None else index

    @property
    def unknown(self) -> int:
        """Return the id of the unknown piece."""
        return self.kinds.index(UNKNOWN)

    def encode(self, text: str) -> list[Piece]:
        """Return the pieces of a text. Characters without a piece are spelt in bytes if the model has byte pieces."""
        normalised, origins = self.normalise(text)
        pieces: list[Piece] = []
        position = 0
        for piece, index in self._cut(normalised):
            start, position = position, position + len(piece)
            begin, end = origins[start], origins[position]
            if self.kinds[index] == CONTROL or self.kinds[index] != UNKNOWN:
                pieces.append(Piece(piece, begin, end))
            elif self.has_byte_fallback:
                pieces += [Piece(f"<0x{byte:02X}>", begin, end) for byte in piece.encode()]
            elif pieces and pieces[-1].is_unknown:
                pieces[-1] = Piece(pieces[-1].text + piece, pieces[-1].start, end, True)
            else:
                pieces.append(Piece(piece, begin, end, True))
        return pieces

    def normalise(self, text: str) -> tuple[str, list[int]]:
        """Return the normalised text, and for each of its characters, and its end, the character that it comes from."""
        settings = self.settings
        space = SPACE if settings.escape_whitespaces else " "
        output: list[str] = []
        origins: list[int] = []
        units = _Units(self._units(text))
        if settings.remove_extra_whitespaces:
            units.skip(" ")
        if units.is_empty:
            return "", [len(text)]

        def add_space(origin: int) -> None:
            output.append(space)
            origins.append(origin)

        if settings.add_dummy_prefix and not settings.treat_whitespace_as_suffix:
            add_space(units.position)
        after_space = settings.remove_extra_whitespaces
        for unit, start, copied in units:
            stripped = unit.lstrip(" ") if after_space else unit
            if stripped:
                # The characters of a copied part come from one character each, those of a rule from its first one.
                first = start + len(unit) - len(stripped)
                origins.extend(range(first, start + len(unit)) if copied else [start] * len(stripped))
                output.append(stripped)
                after_space = stripped.endswith(" ")
            after_space &= settings.remove_extra_whitespaces
        normalised = "".join(output).replace(" ", space)
        origins.append(len(text))
        if settings.remove_extra_whitespaces:
            normalised = normalised.rstrip(space)
            del origins[len(normalised) + 1 :]
        if settings.add_dummy_prefix and settings.treat_whitespace_as_suffix:
            normalised += space
            origins.append(origins[-1])
        return normalised, origins

    def _units(self, text: str) -> Iterator[tuple[str, int, bool]]:
        """Yield the parts of a text as the rules leave or replace them.

        Each is the text of the part, its position, and whether it is copied. A user-defined symbol is copied as it is.
        """
        position = begin = 0
        while self._symbol is not None and (symbol := self._symbol.search(text, position)) is not None:
            # A rule that begins before the symbol may cover its beginning: then it is none.
            end = position
            while end < symbol.start():
                end += self.rules.match(text, end, len(text))[0] or 1
            if end == symbol.start():
                yield from self._ruled_units(text, begin, end)
                yield symbol.group(), end, True
                end = begin = symbol.end()
            position = end
        yield from self._ruled_units(text, begin, len(text))

    def _ruled_units(self, text: str, start: int, end: int) -> Iterator[tuple[str, int, bool]]:
        for part, begin, copied in self.rules.parts(text, start, end):
            if not copied or not self.settings.remove_extra_whitespaces:
                yield part, begin, copied
                continue
            for match in _SPACES_OR_OTHERS.finditer(part):
                unit = match.group()
                yield unit if unit[0] != " " else " ", begin + match.start(), True

    def symbols(self, normalised: str) -> Iterator[tuple[str, bool]]:
        """Yield the characters of a text, and user-defined symbols as a whole, and whether each is such a symbol."""
        position = 0
        if self._symbol is not None:
            for match in self._symbol.finditer(normalised):
                yield from ((char, False) for char in normalised[position : match.start()])
                yield match.group(), True
                position = match.end()
        yield from ((char, False) for char in normalised[position:])

    def decode(self, pieces: Iterable[str]) -> str:
        """Return the text of pieces. Control pieces have none; invalid bytes become U+FFFD."""
        settings = self.settings
        text: list[str] = []
        pending = bytearray()
        is_begin = True
        for piece in pieces:
            index = self.id_of(piece)
            kind = self.kinds[index]
            if kind == BYTE:
                pending.append(int(piece[3:5], 16))
                continue
            if pending:
                text.append(decode_bytes(bytes(pending)))
                pending.clear()
                is_begin = False
            if kind == CONTROL:
                continue
            if kind == UNKNOWN and piece == self.pieces[index]:
                text.append(self.unknown_surface)
                is_begin = False
                continue
            surface = piece
            if is_begin and (settings.add_dummy_prefix or settings.remove_extra_whitespaces):
                surface = surface.removeprefix(SPACE)
                # The library goes on dropping spaces at the beginning if it collapses spaces.
                is_begin = settings.remove_extra_whitespaces and not surface
            else:
                is_begin = False
            text.append(surface.replace(SPACE, " "))
        if pending:
            text.append(decode_bytes(bytes(pending)))
        return "".join(text)


_SPACES_OR_OTHERS = re.compile(" +|[^ ]+")


class _Units:
    """The parts of a text, of which those at the beginning can be skipped. `position` is that of the next one."""

    def __init__(self, units: Iterator[tuple[str, int, bool]]) -> None:
        self._units = units
        self._next = next(units, None)

    @property
    def is_empty(self) -> bool:
        return self._next is None

    @property
    def position(self) -> int:
        return self._next[1] if self._next else 0

    def skip(self, text: str) -> None:
        """Leave out the parts at the beginning that consist of copies of `text`."""
        while self._next is not None and self._next[0] and not self._next[0].strip(text):
            if not self._next[2] and self._next[0] != text:  # a rule that writes several spaces is no space
                return
            self._next = next(self._units, None)

    def __iter__(self) -> Iterator[tuple[str, int, bool]]:
        while self._next is not None:
            yield self._next
            self._next = next(self._units, None)


def decode_bytes(data: bytes) -> str:
    """Return the text of UTF-8 bytes; each byte that is not part of a character becomes U+FFFD."""
    text, position = [], 0
    while position < len(data):
        for size in (1, 2, 3, 4):
            try:
                text.append(data[position : position + size].decode())
            except UnicodeDecodeError:
                continue
            break
        else:
            text.append("\ufffd")
            size = 1
        position += size
    return "".join(text)
