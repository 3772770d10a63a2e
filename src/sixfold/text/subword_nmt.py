"""BPE codes of subword-nmt: words, with spaces between them, are cut into pieces that end in @@ inside a word."""

from __future__ import annotations

import re
from collections.abc import Iterable
from heapq import heappop, heappush

from sixfold.errors import ModelFileError
from sixfold.text.sentencepiece import Piece
from sixfold.text.sentencepiece_cutting import WordCache

SEPARATOR = "@@"
WORD_END = "</w>"


class SubwordNmtCodes:
    """A file of merges, the most frequent one first, in the format 0.1 or 0.2 of subword-nmt."""

    def __init__(self, data: bytes, where: str = "BPE codes") -> None:
        """Read a file; `where` is named in the ModelFileError that is raised for anything else."""
        try:
            lines = data.decode().split("\n")
            is_text = "\0" not in lines[0]
        except UnicodeDecodeError:
            is_text = False
        if not is_text:
            raise ModelFileError(f"{where}: expected BPE codes, which are UTF-8 text")
        version = re.fullmatch(r"#version: (\d+)\.(\d+)\s*", lines[0])
        self.data = data
        self.is_first_version = version is None or (int(version[1]), int(version[2])) < (0, 2)
        self._ranks: dict[tuple[str, str], int] = {}
        for number, line in enumerate(lines[version is not None :], 1 + (version is not None)):
            pair = line.strip("\r ").split(" ")
            if line.strip() and len(pair) != 2:
                raise ModelFileError(f"{where}: line {number}: expected two parts of a merge; got {line!r:.60}")
            if line.strip():
                self._ranks.setdefault((pair[0], pair[1]), len(self._ranks))
        self._words = WordCache(self._merge)

    def encode(self, text: str) -> list[Piece]:
        """Return the pieces of a text; each but the last of a word ends in @@."""
        pieces = []
        for match in _WORD.finditer(text):
            parts = self._words[match.group()]
            position = match.start()
            for index, part in enumerate(parts):
                end = position + len(part)
                pieces.append(Piece(part if index == len(parts) - 1 else part + SEPARATOR, position, end))
                position = end
        return pieces

    def decode(self, pieces: Iterable[str]) -> str:
        """Return the text of pieces, with a space after each but those that end in @@."""
        text = "".join(piece.removesuffix(SEPARATOR) if piece.endswith(SEPARATOR) else f"{piece} " for piece in pieces)
        return text.rstrip(" ")

    def _merge(self, word: str) -> list[str]:
        """Return the parts of a word: the pair of neighbours that was learned first is merged everywhere, and so on."""
        symbols = [*word, WORD_END] if self.is_first_version else [*word[:-1], word[-1] + WORD_END]
        before, after = list(range(-1, len(symbols) - 1)), [*range(1, len(symbols)), -1]
        agenda: list[tuple[int, int, int, str, str]] = []

        def propose(left: int, right: int) -> None:
            if left >= 0 and right >= 0:
                rank = self._ranks.get((symbols[left], symbols[right]))
                if rank is not None:
                    heappush(agenda, (rank, left, right, symbols[left], symbols[right]))

        for right in range(1, len(symbols)):
            propose(right - 1, right)
        while agenda:
            rank = agenda[0][0]
            changed: list[int] = []
            while agenda and agenda[0][0] == rank:
                _, left, right, first, second = heappop(agenda)
                if symbols[left] != first or symbols[right] != second or after[left] != right:
                    continue
                symbols[left] += symbols[right]
                symbols[right] = ""
                after[left] = after[right]
                if after[right] >= 0:
                    before[after[right]] = left
                changed.append(left)
            for left in changed:
                propose(before[left], left)
                propose(left, after[left])
        parts = [symbol for symbol in symbols if symbol]
        if parts[-1] == WORD_END:
            return parts[:-1]
        return [*parts[:-1], parts[-1].removesuffix(WORD_END)]


_WORD = re.compile("[^ \r\n]+")
