"""Translates texts of many requests in one batch: texts that wait while a batch runs go into the next one."""

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

GROUP_TEXTS = 32  # texts of one request that are queued at once, so that a long request does not delay short ones
MIN_TEXT_SIZE = 8  # characters that a text counts for at least


class RequestOptions(NamedTuple):
    """The options of a translation request. Texts can share a batch if their options are equal."""

    source: str | None
    target: str | None
    options: TranslateOptions
    glossary: Glossary | None = None
    details: bool = False

    def cache_key(self, text: str) -> bytes:
        """Return a digest of a text and these options; it is 32 bytes long."""
        glossary = self.glossary and self.glossary.digest
        parts = repr((text, self.source, self.target, self.options, glossary, self.details))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).digest()


class QueueFull(Exception):  # noqa: N818 -- it is no error of the server
    """The queue has no space for more texts."""


@dataclass(eq=False)
class QueueItem:
    """Some texts of a request, their size in characters, and the future that receives their translations."""

    texts: Sequence[str]
    request: RequestOptions
    size: int
    translations: asyncio.Future[list[Translation]]


Translate = Callable[[Sequence[str], RequestOptions], list[Translation]]


class Batcher:
    """Runs `workers` batches at the same time, each of about `batch_size` characters.

    At most `max_queue` characters wait in the queue.
    """

    def __init__(
        self, translate: Translate, workers: int = 2, batch_size: int = 2500, max_queue: int = 400_000
    ) -> None:
        self._translate, self._batch_size, self._max_queue = translate, batch_size, max_queue
        self._queue: dict[QueueItem, None] = {}  # the oldest first
        self._queues: dict[RequestOptions, dict[QueueItem, None]] = {}  # the same items, by their options
        self._has_items = asyncio.Condition()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="batch")
        self._tasks = [asyncio.create_task(self._work()) for _ in range(workers)]
        self.queue_size = 0  # characters
        self.on_batch: Callable[[float], None] = lambda texts: None  # called with the number of texts of every batch

    async def translate(self, texts: Sequence[str], request: RequestOptions) -> list[Translation]:
        """Return the translations in the order of the texts. If the caller is cancelled, its texts leave the queue."""
        translations: list[Translation] = []
        for start in range(0, len(texts), GROUP_TEXTS):
            translations += await self._translate_group(texts[start : start + GROUP_TEXTS], request)
        return translations

    async def _translate_group(self, texts: Sequence[str], request: RequestOptions) -> list[Translation]:
        size = sum(max(MIN_TEXT_SIZE, len(text)) for text in texts)
        if self.queue_size and self.queue_size + size > self._max_queue:
            raise QueueFull
        item = QueueItem(texts, request, size, asyncio.get_running_loop().create_future())
        self._add(item)
        try:
            async with self._has_items:
                self._has_items.notify()
            return await item.translations
        finally:
            if item in self._queue:
                self._remove(item)

    def _add(self, item: QueueItem) -> None:
        self._queue[item] = None
        self._queues.setdefault(item.request, {})[item] = None
        self.queue_size += item.size

    def _remove(self, item: QueueItem) -> None:
        del self._queue[item]
        queue = self._queues[item.request]
        del queue[item]
        if not queue:
            del self._queues[item.request]
        self.queue_size -= item.size

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            async with self._has_items:
                await self._has_items.wait_for(lambda: self._queue)
                batch = self._take_batch()
            self.on_batch(sum(len(item.texts) for item in batch))
            results = await loop.run_in_executor(self._pool, self._translate_batch, batch)
            for item, result in zip(batch, results, strict=True):
                if item.translations.done():  # the request was cancelled
                    continue
                if isinstance(result, BaseException):
                    item.translations.set_exception(result)
                else:
                    item.translations.set_result(result)

    def _take_batch(self) -> list[QueueItem]:
        """Remove and return the oldest item and others with the same options, as many as fit into a batch."""
        request, size = next(iter(self._queue)).request, 0
        batch: list[QueueItem] = []
        for item in self._queues[request]:
            if not batch or size + item.size <= self._batch_size:
                batch.append(item)
                size += item.size
            if size + MIN_TEXT_SIZE > self._batch_size:
                break
        for item in batch:
            self._remove(item)
        return batch

    def _translate_batch(self, batch: Sequence[QueueItem]) -> list[list[Translation] | BaseException]:
        """Return translations or an exception for each item.

        If the batch fails, its items are translated one by one, so that one bad text does not fail other requests.
        """
        texts = [text for item in batch for text in item.texts]
        try:
            translations = iter(self._translate(texts, batch[0].request))
            return [[next(translations) for _ in item.texts] for item in batch]
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [self._translate_batch([item])[0] for item in batch]

    async def close(self) -> None:
        """Stop after the batches that are running. No item may be in the queue."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError, SixfoldError):
                await task
        self._pool.shutdown()
