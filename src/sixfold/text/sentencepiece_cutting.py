"""How a SentencePiece model cuts a normalised text into pieces: the likeliest ones (unigram), or by merging (BPE)."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Protocol, TypeVar

import numpy as np

from sixfold.text.sentencepiece_file import NORMAL, SPACE, UNUSED, USER_DEFINED

UNKNOWN_PENALTY = 10.0  # an unknown character is this much less likely than the least likely piece
USER_DEFINED_BONUS = 0.1  # the score of a user-defined symbol, for each of its bytes after the first
MAX_CACHED_WORDS = 20_000  # whose pieces are kept, in a few MB

Part = TypeVar("Part")


class WordCache(dict[str, list[Part]]):
    """The parts of words that were cut before; a word that is not there is cut. It is emptied when it is full."""

    def __init__(self, cut: Callable[[str], list[Part]]) -> None:
        super().__init__()
        self._cut = cut

    def __missing__(self, word: str) -> list[Part]:
        parts = self._cut(word)
        if len(self) >= MAX_CACHED_WORDS:
            self.clear()
        self[word] = parts
        return parts


class Pieces(Protocol):
    """What a cutter needs of a model."""

    pieces: list[str]
    scores: list[float]
    kinds: list[int]

    @property
    def unknown(self) -> int:
        """The id of the unknown piece."""
        ...

    def id_of(self, piece: str) -> int:
        """Return the id of a piece."""
        ...

    def symbols(self, normalised: str) -> Iterator[tuple[str, bool]]:
        """Yield the symbols of a text, and whether each is a user-defined one."""
        ...


class UnigramCutter:
    """Cuts a text into the pieces whose scores have the largest sum (Viterbi), rounded as the library rounds."""

    def __init__(self, model: Pieces) -> None:
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


class BpeCutter:
    """Merges neighbours into pieces, the highest score first, until none can be merged."""

    def __init__(self, model: Pieces) -> None:
        self._model = model
        self._scores = {
            piece: model.scores[index]
            for index, (piece, kind) in enumerate(zip(model.pieces, model.kinds, strict=True))
            if kind in (NORMAL, USER_DEFINED, UNUSED)
        }
        self._unused = {piece for piece, kind in zip(model.pieces, model.kinds, strict=True) if kind == UNUSED}
        # Where no piece has a space but at its beginning, no merge crosses it, and words can be cut one by one.
        self._has_words = not any(SPACE in piece[1:] for piece in self._scores)
        self._words = WordCache(self._cut)

    def __call__(self, text: str) -> list[tuple[str, int]]:
        """Return the pieces of a text with their ids."""
        if not self._has_words:
            return self._cut(text)
        return [piece for match in _WORDS.finditer(text) for piece in self._words[match.group()]]

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
