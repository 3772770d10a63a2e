"""A cache with a limit in bytes, and how many bytes a translation takes in it."""

from __future__ import annotations

import sys
from collections import OrderedDict
from functools import partial
from typing import Any, Generic, TypeVar

from sixfold.translation.result import Translation

Value = TypeVar("Value")
ENTRY_BYTES = 400  # of memory that an entry takes besides its value: a key of fixed length, and its slot in the table


def translation_bytes(value: Any) -> int:
    """Return the bytes of memory of a translation and all objects that only it refers to.

    Objects that many translations share, such as the model that made them, do not count.
    """
    size, pending = 0, [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str | bytes | int | float):
            size += sys.getsizeof(item)
        elif isinstance(item, tuple | list):
            size += sys.getsizeof(item)
            pending += item
        elif isinstance(item, Translation):
            size += sys.getsizeof(item) + sys.getsizeof(vars(item))
            pending += vars(item).values()
        elif isinstance(item, partial):
            size += sys.getsizeof(item)
            pending += item.args
    return size


class Cache(Generic[Value]):
    """A least-recently-used cache that holds at most `limit` bytes; a value larger than that is not stored.

    The caller says how large each value is. Keys must be short, because their memory counts as part of `ENTRY_BYTES`.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._entries: OrderedDict[str | bytes, tuple[Value, int]] = OrderedDict()
        self.size = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: str | bytes) -> Value | None:
        entry = self._entries.get(key)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: str | bytes, value: Value, size: int) -> None:
        """Store a value of `size` bytes; the entries that were not used for longest make way for it."""
        self.discard(key)
        size += ENTRY_BYTES
        if size > self.limit:
            return
        self._entries[key] = value, size
        self.size += size
        while self.size > self.limit:
            _, (_, freed) = self._entries.popitem(last=False)
            self.size -= freed

    def discard(self, key: str | bytes) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self.size -= entry[1]
