"""The rules by which a SentencePiece model replaces characters: a compiled map, read step by step as texts need it.

The map is the number of bytes of a double-array trie (Darts), the trie, and the replacements, each of which ends in a
zero byte. The trie has the character sequences that are replaced, in UTF-8; its values are positions of replacements.
It may have hundreds of thousands of sequences, so only the steps that texts take are remembered.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np

MAX_REMEMBERED = 500_000  # steps

Key = TypeVar("Key")
VALUE = 0x7FFFFFFF  # the bits of a unit that are a value


class Step(NamedTuple):
    """Where the trie goes on after a character, and the replacement of the sequence that ends in it, if it is one."""

    base: int
    replacement: str | None


class CharacterRules:
    """What each character sequence is replaced by; of several sequences the longest is taken."""

    def __init__(self, charsmap: bytes) -> None:
        """Read a compiled map, which may be empty; ValueError is raised if it is malformed."""
        size = struct.unpack_from("<I", charsmap)[0] if len(charsmap) >= 4 else 0
        units = np.frombuffer(charsmap[4 : 4 + size], "<u4") if size % 4 == 0 and 4 + size <= len(charsmap) else None
        self._replacements = charsmap[4 + size :]
        if charsmap and (units is None or not size or not _is_valid(units, self._replacements)):
            raise ValueError("its compiled map of characters is damaged")
        self._units: list[int] = [] if units is None else units.tolist()
        self._first: dict[str, Step | None] = {}  # the steps from the root of the trie
        self._later: dict[tuple[int, str], Step | None] = {}

    def match(self, text: str, position: int, end: int) -> tuple[int, str]:
        """Return the length of the longest sequence at a position, and its replacement; 0 if there is none."""
        if not self._units:
            return 0, ""
        try:
            step = self._first[text[position]]
        except KeyError:
            step = self._remember(self._first, text[position], self._offset(0), text[position])
        size, replacement, length = 0, "", 0
        while step is not None:
            length += 1
            if step.replacement is not None:
                size, replacement = length, step.replacement
            if position + length == end:
                break
            key = step.base, text[position + length]
            try:
                step = self._later[key]
            except KeyError:
                step = self._remember(self._later, key, *key)
        return size, replacement

    def parts(self, text: str, start: int, end: int) -> Iterator[tuple[str, int, bool]]:
        """Yield the parts of text[start:end]: a copied part as it is, or a replacement, each with its position.

        The last value says whether it is copied.
        """
        copied = position = start
        while position < end:
            size, replacement = self.match(text, position, end)
            if size:
                if position > copied:
                    yield text[copied:position], copied, True
                yield replacement, position, False
                copied = position + size
            position += size or 1
        if copied < end:
            yield text[copied:end], copied, True

    def _remember(self, steps: dict[Key, Step | None], key: Key, base: int, character: str) -> Step | None:
        if len(steps) >= MAX_REMEMBERED:
            steps.clear()
        step = steps[key] = self._step(base, character)
        return step

    def _step(self, base: int, character: str) -> Step | None:
        """Return the step for a character, or None if no sequence goes on with it.

        A unit of the trie has the label of the byte that leads to it (bits 0 to 7), the offset of its children (from
        bit 10 on, times 256 if bit 9 is set), and whether a sequence ends in it (bit 8). The child for byte b is at
        base ^ b, where base = position ^ offset, and the value of a sequence is at its base.
        """
        units = self._units
        has_value = False
        for byte in character.encode():
            position = base ^ byte
            if position >= len(units) or units[position] & 0x800000FF != byte:
                return None
            has_value = bool(units[position] >> 8 & 1)
            base = position ^ self._offset(position)
        return Step(base, self._replacement(base) if has_value else None)

    def _offset(self, position: int) -> int:
        unit = self._units[position]
        return unit >> 10 << ((unit & 1 << 9) >> 6)

    def _replacement(self, base: int) -> str:
        value = self._units[base] & VALUE
        return self._replacements[value : self._replacements.index(b"\0", value)].decode(errors="replace")


def _is_valid(units: np.ndarray, replacements: bytes) -> bool:
    """Return whether every sequence that ends in a unit has a replacement."""
    wide = units.astype(np.int64)
    ends = np.flatnonzero((wide & (1 << 31 | 1 << 8)) == 1 << 8)
    bases = ends ^ (wide[ends] >> 10 << ((wide[ends] & 1 << 9) >> 6))
    return bool(
        replacements.endswith(b"\0")
        and (bases < len(units)).all()
        and ((wide[bases] & VALUE) < len(replacements)).all()
    )
