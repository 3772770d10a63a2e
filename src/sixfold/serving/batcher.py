"""Texts of many requests, translated together: what waits while a batch is in work makes the next one."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from sixfold.errors import SixfoldError
from sixfold.translation.glossary import Glossary
from sixfold.translation.options import TranslateOptions
from sixfold.translation.result import Translation

PART = 32  # texts of one request that wait at once: a long request must not hold up the short ones
FLOOR = 8  # characters that a text counts for at least


class Way(NamedTuple):
    """What texts must agree in to be translated together."""

    source: str | None
    target: str | None
    options: TranslateOptions
    glossary: Glossary | None = None
    details: bool = False

    def key(self, text: str) -> bytes:
        """A name, always of the same length, for a text that is translated in this way."""
        glossary = self.glossary and self.glossary.digest
        parts = repr((text, self.source, self.target, self.options, glossary, self.details))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).digest()


class Full(Exception):  # noqa: N818 -- it is not a mistake
    """More waits than may."""


@dataclass(eq=False)
class Item:
    """Some texts of a request and who waits for them."""

    texts: Sequence[str]
    way: Way
    size: int
    answer: asyncio.Future[list[Translation]]


Translate = Callable[[Sequence[str], Way], list[Translation]]


class Batcher:
    """`workers` batches in work at once, each of about `room` characters; `queue` characters may wait."""

    def __init__(self, translate: Translate, workers: int = 2, room: int = 2500, queue: int = 400_000) -> None:
        self._translate, self._room, self._queue = translate, room, queue
        self._items: dict[Item, None] = {}  # the oldest first
        self._groups: dict[Way, dict[Item, None]] = {}  # the same, by what they must agree in
        self._there_is_work = asyncio.Condition()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="batch")
        self._tasks = [asyncio.create_task(self._work()) for _ in range(workers)]
        self.waiting = 0  # characters
        self.told: Callable[[float], None] = lambda texts: None  # of every batch

    async def translate(self, texts: Sequence[str], way: Way) -> list[Translation]:
        """In their order. Whoever is cancelled leaves the queue."""
        found: list[Translation] = []
        for begin in range(0, len(texts), PART):
            found += await self._part(texts[begin : begin + PART], way)
        return found

    async def _part(self, texts: Sequence[str], way: Way) -> list[Translation]:
        size = sum(max(FLOOR, len(text)) for text in texts)
        if self.waiting and self.waiting + size > self._queue:
            raise Full
        item = Item(texts, way, size, asyncio.get_running_loop().create_future())
        self._add(item)
        try:
            async with self._there_is_work:
                self._there_is_work.notify()
            return await item.answer
        finally:
            if item in self._items:
                self._remove(item)

    def _add(self, item: Item) -> None:
        self._items[item] = None
        self._groups.setdefault(item.way, {})[item] = None
        self.waiting += item.size

    def _remove(self, item: Item) -> None:
        del self._items[item]
        group = self._groups[item.way]
        del group[item]
        if not group:
            del self._groups[item.way]
        self.waiting -= item.size

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            async with self._there_is_work:
                await self._there_is_work.wait_for(lambda: self._items)
                batch = self._take()
            self.told(sum(len(item.texts) for item in batch))
            answers = await loop.run_in_executor(self._pool, self._answers, batch)
            for item, answer in zip(batch, answers, strict=True):
                if item.answer.done():  # nobody waits any more
                    continue
                if isinstance(answer, BaseException):
                    item.answer.set_exception(answer)
                else:
                    item.answer.set_result(answer)

    def _take(self) -> list[Item]:
        """The oldest, and those that wait for the same, until there is no room."""
        way, size = next(iter(self._items)).way, 0
        batch: list[Item] = []
        for item in self._groups[way]:
            if not batch or size + item.size <= self._room:
                batch.append(item)
                size += item.size
            if size + FLOOR > self._room:
                break
        for item in batch:
            self._remove(item)
        return batch

    def _answers(self, batch: Sequence[Item]) -> list[list[Translation] | BaseException]:
        """If they fail together, each by itself: one text must not spoil the answers of others."""
        texts = [text for item in batch for text in item.texts]
        try:
            found = iter(self._translate(texts, batch[0].way))
            return [[next(found) for _ in item.texts] for item in batch]
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [self._answers([item])[0] for item in batch]

    async def close(self) -> None:
        """What is in work is finished; nothing may wait."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError, SixfoldError):
                await task
        self._pool.shutdown()
