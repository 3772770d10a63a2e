"""Translations that were made before, up to so many bytes; what was not asked for longest goes first."""

from __future__ import annotations

import sys
from collections import OrderedDict
from functools import partial
from typing import Any, Generic, TypeVar

from sixfold.translation.result import Translation

Value = TypeVar("Value")
ENTRY = 400  # bytes that an entry takes besides its value: a key of fixed length, and its place in the table


def held_bytes(value: Any) -> int:
    """The bytes of memory that a translation takes, with all that it alone refers to.

    What many translations share, such as the model that made them, is not part of it.
    """
    size, waiting = 0, [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str | bytes | int | float):
            size += sys.getsizeof(each)
        elif isinstance(each, tuple | list):
            size += sys.getsizeof(each)
            waiting += each
        elif isinstance(each, Translation):
            size += sys.getsizeof(each) + sys.getsizeof(vars(each))
            waiting += vars(each).values()
        elif isinstance(each, partial):
            size += sys.getsizeof(each)
            waiting += each.args
    return size


class Cache(Generic[Value]):
    """Counts the bytes that it is told for each value; none is kept that alone takes more than all may.

    Keys are to be short: what they take is part of `ENTRY`.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[str | bytes, tuple[Value, int]] = OrderedDict()
        self.size = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: str | bytes) -> Value | None:
        found = self._kept.get(key)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: str | bytes, value: Value, size: int) -> None:
        """`size`: bytes of the value."""
        self.drop(key)
        size += ENTRY
        if size > self.limit:
            return
        self._kept[key] = value, size
        self.size += size
        while self.size > self.limit:
            _, (_, freed) = self._kept.popitem(last=False)
            self.size -= freed

    def drop(self, key: str | bytes) -> None:
        if (old := self._kept.pop(key, None)) is not None:
            self.size -= old[1]
