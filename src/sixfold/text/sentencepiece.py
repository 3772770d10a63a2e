"""SentencePiece models, unigram and BPE: text to pieces and back, exactly as the library computes them, without it.

A text is encoded in two steps.

1. The normaliser replaces characters by the rules that are compiled into the model (`text/sentencepiece_rules.py`),
   collapses spaces and writes each of them as ▁.
2. The model cuts the normalised text into pieces: the likeliest ones (unigram), or by merging neighbours (BPE).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from sixfold.errors import ModelFileError
from sixfold.text.protobuf import Value, read_fields
from sixfold.text.sentencepiece_rules import CharacterRules

SPACE = "▁"  # is written for a space
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
UNKNOWN_PENALTY = 10.0  # an unknown character is this much less likely than the least likely piece
USER_DEFINED_BONUS = 0.1  # the score of a user-defined symbol, for each of its bytes after the first
MAX_CACHED_WORDS = 50_000


class Piece(NamedTuple):
    """A piece of a text, the first and the last character that it comes from, the last exclusive, and its kind.

    An unknown piece has the characters of the normalised text that no piece of the model covers.
    """

    text: str
    start: int
    end: int
    is_unknown: bool = False


@dataclass(frozen=True)
class NormaliserSettings:
    """How a text is normalised before it is cut into pieces. The defaults are those of the library."""

    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    treat_whitespace_as_suffix: bool = False


class SentencePieceModel:
    """A SentencePiece model that has been read from the bytes of its file."""

    def __init__(self, data: bytes, where: str = "SentencePiece model") -> None:
        """Read a model; `where` is named in the ModelFileError that is raised for anything but one."""
        try:
            contents = _read_model(data)
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
        self._cut = _UnigramCutter(self) if self.algorithm == "unigram" else _BpeCutter(self)

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


class _UnigramCutter:
    """Cuts a text into the pieces whose scores have the largest sum (Viterbi), rounded as the library rounds."""

    def __init__(self, model: SentencePieceModel) -> None:
        rows = list(zip(model.pieces, model.scores, model.kinds, strict=True))
        normal = [score for _, score, kind in rows if kind == NORMAL]
        self._unknown = model.unknown
        self._unknown_score = float(np.float32(min(normal, default=0.0)) - np.float32(UNKNOWN_PENALTY))
        self._table: dict[str, tuple[float, int]] = {}
        self._longest: dict[str, int] = {}  # by the first two characters
        for index, (piece, score, kind) in enumerate(rows):
            if kind == USER_DEFINED:  # it always wins
                score = float(np.float32(USER_DEFINED_BONUS * (len(piece.encode()) - 1)))
            if kind in (NORMAL, USER_DEFINED) and piece:
                self._table.setdefault(piece, (score, index))
                self._longest[piece[:2]] = max(len(piece), self._longest.get(piece[:2], 0))

    def __call__(self, text: str) -> list[tuple[str, int]]:
        """Return the pieces of a text with their ids."""
        table, longest = self._table, self._longest
        length = len(text)
        best = array("f", bytes(4 * (length + 1)))  # float32, so that storing a sum rounds it
        begins = [-1] * (length + 1)
        ids = [0] * (length + 1)
        rounded, unknown = array("f", [0.0]), (self._unknown_score, self._unknown)
        for start in range(length):
            here = best[start]
            reach = min(start + max(1, longest.get(text[start : start + 2], 0)), length)
            for end in range(start + 1, reach + 1):
                entry = table.get(text[start:end])
                if entry is None:
                    if end > start + 1:
                        continue
                    entry = unknown
                rounded[0] = entry[0] + here
                if begins[end] < 0 or rounded[0] > best[end]:
                    best[end], begins[end], ids[end] = rounded[0], start, entry[1]
        pieces: list[tuple[str, int]] = []
        end = length
        while end > 0:
            start = begins[end]
            pieces.append((text[start:end], ids[end]))
            end = start
        return pieces[::-1]


class _BpeCutter:
    """Merges neighbours into pieces, the highest score first, until none can be merged."""

    def __init__(self, model: SentencePieceModel) -> None:
        self._model = model
        self._scores = {
            piece: model.scores[index]
            for index, (piece, kind) in enumerate(zip(model.pieces, model.kinds, strict=True))
            if kind in (NORMAL, USER_DEFINED, UNUSED)
        }
        self._unused = {piece for piece, kind in zip(model.pieces, model.kinds, strict=True) if kind == UNUSED}
        # Where no piece has a space but at its beginning, no merge crosses it, and words can be cut one by one.
        self._has_words = not any(SPACE in piece[1:] for piece in self._scores)
        self._cache: dict[str, list[tuple[str, int]]] = {}

    def __call__(self, text: str) -> list[tuple[str, int]]:
        """Return the pieces of a text with their ids."""
        if not self._has_words:
            return self._cut(text)
        pieces: list[tuple[str, int]] = []
        for match in _WORDS.finditer(text):
            word = match.group()
            cut = self._cache.get(word)
            if cut is None:
                cut = self._cut(word)
                if len(self._cache) >= MAX_CACHED_WORDS:
                    self._cache.clear()
                self._cache[word] = cut
            pieces += cut
        return pieces

    def _cut(self, text: str) -> list[tuple[str, int]]:
        scores = self._scores
        pairs = list(self._model.symbols(text))
        symbols: list[str] = [symbol for symbol, _ in pairs]
        frozen = [is_symbol for _, is_symbol in pairs]
        before, after = list(range(-1, len(symbols) - 1)), [*range(1, len(symbols)), -1]
        agenda: list[tuple[float, int, int, int]] = []
        halves: dict[str, tuple[str, str]] = {}  # of the unused pieces, which are taken apart again

        def propose(left: int, right: int) -> None:
            if left < 0 or right < 0 or frozen[left] or frozen[right]:
                return
            merged = symbols[left] + symbols[right]
            score = scores.get(merged)
            if score is not None:
                heappush(agenda, (-score, left, right, len(merged)))
                if merged in self._unused:
                    halves[merged] = symbols[left], symbols[right]

        for right in range(1, len(symbols)):
            propose(right - 1, right)
        while agenda:
            _, left, right, size = heappop(agenda)
            if not symbols[left] or not symbols[right] or len(symbols[left]) + len(symbols[right]) != size:
                continue
            symbols[left] += symbols[right]
            symbols[right] = ""
            after[left] = after[right]
            if after[right] >= 0:
                before[after[right]] = left
            propose(before[left], left)
            propose(left, after[left])
        return [(piece, self._model.id_of(piece)) for symbol in symbols if symbol for piece in _split(symbol, halves)]


_WORDS = re.compile(f"{SPACE}[^{SPACE}]*|[^{SPACE}]+")


def _split(symbol: str, halves: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yield a symbol, or the used pieces that an unused one was merged from."""
    if symbol not in halves:
        yield symbol
        return
    for half in halves[symbol]:
        yield from _split(half, halves)


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


@dataclass(frozen=True)
class _Contents:
    """The fields of a model file."""

    pieces: list[str]
    scores: list[float]
    kinds: list[int]
    algorithm: str
    byte_fallback: bool
    unknown_surface: str
    charsmap: bytes
    settings: NormaliserSettings


def _read_model(data: bytes) -> _Contents:
    pieces: list[str] = []
    scores: list[float] = []
    kinds: list[int] = []
    trainer: dict[int, Value] = {}
    normaliser: dict[int, Value] = {}
    for number, value in read_fields(data):
        if number in (1, 2, 3) and not isinstance(value, bytes):
            raise ValueError(f"field {number} is no message")
        if number == 1:
            fields = dict(read_fields(_bytes(value)))
            pieces.append(_bytes(fields.get(1, b"")).decode())
            scores.append(float(_number(fields.get(2, 0.0))))
            kinds.append(int(_number(fields.get(3, NORMAL))))
        elif number == 2:
            trainer = dict(read_fields(_bytes(value)))
        elif number == 3:
            normaliser = dict(read_fields(_bytes(value)))
    if kinds.count(UNKNOWN) != 1:
        raise ValueError(f"it has {len(pieces)} pieces, {kinds.count(UNKNOWN)} of them unknown, where one is expected")
    if len(set(pieces)) != len(pieces):
        raise ValueError("it has the same piece twice")
    kind = int(_number(trainer.get(3, 1)))
    dummy, remove, escape = (bool(normaliser.get(number, 1)) for number in (3, 4, 5))
    settings = NormaliserSettings(dummy, remove, escape, bool(trainer.get(24, 0)))
    surface = _bytes(trainer.get(44, " \u2047 ".encode())).decode()
    algorithm = MODEL_TYPES.get(kind, str(kind))
    fallback = bool(trainer.get(35, 0))
    return _Contents(pieces, scores, kinds, algorithm, fallback, surface, _bytes(normaliser.get(2, b"")), settings)


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a number where bytes are expected")
    return value


def _number(value: Value) -> int | float:
    if isinstance(value, bytes):
        raise TypeError("bytes where a number is expected")
    return value
