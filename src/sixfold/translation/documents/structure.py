"""The structure of a document: what its translation must keep, as a list of strings that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

Structure = list[str]

MAX_SHOWN = 80  # characters of an item in a message


class StructureBuilder:
    """Collects the items of a structure. Items inside a block may change places, as words do; blocks may not."""

    def __init__(self) -> None:
        self._items: Structure = []
        self._inside: list[str] = []  # of the current block

    def block(self, item: str) -> None:
        """Add an item that keeps its place: the beginning or the end of a block, a cell, a key."""
        self._end_block()
        self._items.append(item)

    def inside(self, item: str) -> None:
        """Add an item that may change its place within the current block: a link, a placeholder, code."""
        self._inside.append(item)

    def build(self) -> Structure:
        self._end_block()
        return self._items

    def _end_block(self) -> None:
        self._items += sorted(self._inside)
        self._inside.clear()


def difference(expected: Sequence[str], actual: Sequence[str]) -> str | None:
    """Return what differs first between two structures, for people; None if they are equal."""
    for first, second in zip_longest(expected, actual):
        if first != second:
            return f"expected {_shown(first)}; got {_shown(second)}"
    return None


def _shown(item: str | None) -> str:
    if item is None:
        return "the end of the document"
    return item if len(item) <= MAX_SHOWN else f"{item[: MAX_SHOWN - 1]}…"
