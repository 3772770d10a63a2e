"""Translations that were made before, up to so many bytes; what was not asked for longest goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """Counts what it is told that a value takes; none is kept that alone takes more than all may."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self.size = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable) -> Value | None:
        found = self._kept.get(key)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: Value, size: int) -> None:
        self.drop(key)
        if size > self.limit:
            return
        self._kept[key] = value, size
        self.size += size
        while self.size > self.limit:
            _, (_, freed) = self._kept.popitem(last=False)
            self.size -= freed

    def drop(self, key: Hashable) -> None:
        if (old := self._kept.pop(key, None)) is not None:
            self.size -= old[1]
