"""A cache with a limit in bytes, and the cache of translated sentences."""

from __future__ import annotations

import hashlib
import sys
from collections import OrderedDict
from dataclasses import is_dataclass, replace
from typing import Any, Generic, TypeVar

from sixfold.serving.turns import BatchKey
from sixfold.translation.pipeline import SentenceResult
from sixfold.translation.prepare import SourceSentence

Value = TypeVar("Value")
ENTRY_BYTES = 400  # of memory that an entry takes besides its value: a key of fixed length, and its slot in the table


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


def size_in_bytes(value: Any) -> int:
    """Return the bytes of memory of a value made of strings, numbers, tuples, lists and frozen dataclasses."""
    size, pending = 0, [value]
    while pending:
        item = pending.pop()
        size += sys.getsizeof(item)
        if isinstance(item, tuple | list):
            pending += item
        elif is_dataclass(item):
            size += sys.getsizeof(vars(item))
            pending += vars(item).values()
    return size


class SentenceCache:
    """Results of sentences, by a digest of everything that they depend on. All that an entry holds is counted."""

    def __init__(self, limit: int) -> None:
        """Hold at most `limit` bytes."""
        self._results: Cache[SentenceResult] = Cache(limit)

    @property
    def size(self) -> int:
        """The bytes that the cache holds."""
        return self._results.size

    def get(self, key: BatchKey, sentence: SourceSentence) -> SentenceResult | None:
        """Return the result of a sentence, or None."""
        result = self._results.get(digest(key, sentence))
        return None if result is None else replace(result, sentence=sentence, milliseconds=0.0, is_cached=True)

    def put(self, key: BatchKey, result: SentenceResult) -> None:
        """Store a result. The sentence itself is left out, because whoever looks it up has it."""
        entry = replace(result, sentence=SourceSentence("", ()))
        self._results.put(digest(key, result.sentence), entry, size_in_bytes(entry))

    def clear(self) -> None:
        """Forget all results."""
        self._results = Cache(self._results.limit)


def digest(key: BatchKey, sentence: SourceSentence) -> bytes:
    """Return 32 bytes that stand for a sentence, the model that decodes it, and the options."""
    options, glossary, details = key.options
    parts = (key.direction.header.checksum, key.direction.languages, options, glossary.digest, details, sentence.prefix)
    return hashlib.sha256(repr((parts, sentence.text)).encode("utf-8", "surrogatepass")).digest()
