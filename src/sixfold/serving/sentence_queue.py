"""The queue of the server: sentences of all requests wait in it, and are decoded in batches that requests share.

- A batch has sentences of one direction with equal options, up to a number of tokens.
- Clients take turns, and so do the requests of a client (`turns.py`).
- Long requests have batches of their own. While short ones come too, these batches are small, and if all workers are
  busy with them, one more takes the short ones. So a long text or document makes a short request wait for what the
  engine is decoding, and no longer.
- A sentence whose request has been cancelled leaves the queue.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from sixfold.errors import SixfoldError
from sixfold.serving.turns import BatchKey, QueuedSentence, Turns, tokens_of
from sixfold.translation.pipeline import SentenceResult
from sixfold.translation.prepare import SourceSentence

REQUEST_TOKENS = 8192  # of one request that wait in the queue at once; the others follow as these are decoded
RECENT_SECONDS = 10.0  # after a short request, in which another one is expected
RATE_SECONDS = 20.0  # the time over which the speed of decoding is averaged


class QueueFull(Exception):  # noqa: N818 -- it is no error of the server
    """The queue has no space for the sentences of another request."""


Decode = Callable[[BatchKey, Sequence[SourceSentence]], list[SentenceResult]]


class DecodingRate:
    """The speed of decoding full batches in tokens a second, averaged over about `RATE_SECONDS` of work."""

    def __init__(self) -> None:
        self._tokens = self._seconds = 0.0

    def add(self, tokens: int, seconds: float) -> None:
        """Note that this many tokens were decoded in this time."""
        decay = max(0.0, 1.0 - seconds / RATE_SECONDS)
        self._tokens, self._seconds = self._tokens * decay + tokens, self._seconds * decay + seconds

    def seconds_for(self, tokens: int) -> float:
        """Return how long this many tokens will take; 0 while nothing has been measured."""
        return tokens * self._seconds / self._tokens if self._tokens else 0.0


class BatchSize(NamedTuple):
    """How many tokens a batch has at most."""

    full: int  # large enough to be fast: the engine sorts the sentences of a batch by length
    small: int  # soon done; a request that does not fit into it is long


class SentenceQueue:
    """Runs `workers` batches at the same time, or one more of short requests. It needs a running event loop."""

    def __init__(self, decode: Decode, workers: int, batch_size: BatchSize, max_sentences: int) -> None:
        """Start the workers. `decode` is called in threads; accepted requests hold at most `max_sentences`."""
        self._decode, self._batch_size, self._max_sentences = decode, batch_size, max_sentences
        self._short, self._long = Turns(), Turns()
        self._is_short_next = True
        self._workers, self._long_batches = workers, 0  # batches of long requests that are running
        self._last_short = -RECENT_SECONDS  # when a short request came last
        self._has_sentences = asyncio.Condition()
        self._pool = ThreadPoolExecutor(workers + 1, thread_name_prefix="batch")
        self._tasks = [asyncio.create_task(self._work(only_short=number == workers)) for number in range(workers + 1)]
        self._running = 0  # batches
        self._last_change = 0.0  # when a batch was finished or, if none was running, begun
        self._tokens: dict[str, Counter[int]] = {}  # of each client's accepted requests that are not decoded yet
        self._numbers = itertools.count()  # of requests
        self.sentences = 0  # of all accepted requests that are not decoded yet
        self.rate = DecodingRate()
        self.on_batch: Callable[[int, int], None] = lambda sentences, tokens: None  # called with every batch

    @property
    def tokens(self) -> int:
        """The tokens of all accepted requests that are not decoded yet."""
        return sum(of_client.total() for of_client in self._tokens.values())

    async def decode(
        self, key: BatchKey, sentences: Sequence[SourceSentence], client: str
    ) -> AsyncGenerator[SentenceResult]:
        """Yield the result of each sentence, in their order. If the caller stops, the others leave the queue.

        QueueFull is raised if the queue has no space for all of them. A request alone may have any number.
        """
        if self.sentences and self.sentences + len(sentences) > self._max_sentences:
            raise QueueFull
        loop, request = asyncio.get_running_loop(), next(self._numbers)
        self._account(client, request, sentences, 1)
        turns = self._turns_for(sentences)
        remaining = deque(sentences)
        queued: deque[QueuedSentence] = deque()  # in the queue or decoded
        waiting = 0  # their tokens
        window = self._batch_size.small  # tokens that may be waiting: few at first, so that the first results come soon
        try:
            while remaining or queued:
                is_new = False
                while remaining and (not waiting or waiting + tokens_of(remaining[0]) <= window):
                    queued.append(QueuedSentence(remaining.popleft(), loop.create_future()))
                    waiting += queued[-1].tokens
                    turns.put(client, request, key, queued[-1])
                    is_new = True
                if is_new:
                    async with self._has_sentences:
                        self._has_sentences.notify_all()
                result = await queued[0].result
                item = queued.popleft()
                waiting -= item.tokens
                window = min(REQUEST_TOKENS, window + item.tokens)
                self._account(client, request, [item.sentence], -1)
                yield result
        finally:
            self._account(client, request, [*(item.sentence for item in queued), *remaining], -1)
            for item in queued:
                item.result.cancel()  # it leaves the queue when its turn comes

    def seconds_for(self, client: str, tokens: int) -> float:
        """Return the likely time until a new request of a client with this many tokens is done.

        Requests of a client take turns: of each of its others at most as many tokens come first as this request has.
        Clients take turns too: of each other client at most as many come first as come first of this client.
        """
        own = tokens + sum(min(tokens, count) for count in self._tokens.get(client, Counter()).values())
        others = sum(min(own, each.total()) for name, each in self._tokens.items() if name != client)
        return self.rate.seconds_for(own + others)

    async def close(self) -> None:
        """Stop after the batches that are running. No sentence may be in the queue."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError, SixfoldError):
                await task
        self._pool.shutdown()

    def _account(self, client: str, request: int, sentences: Sequence[SourceSentence], sign: int) -> None:
        self.sentences += sign * len(sentences)
        of_client = self._tokens.setdefault(client, Counter())
        of_client[request] += sign * sum(map(tokens_of, sentences))
        if not of_client[request]:
            del of_client[request]
        if not of_client:
            del self._tokens[client]

    async def _work(self, only_short: bool) -> None:
        """Decode one batch after the other: of short and of long requests in turn.

        With `only_short` it helps with short requests while long ones keep all other workers busy.
        """
        loop = asyncio.get_running_loop()

        def has_work() -> bool:
            if only_short:
                return bool(self._short) and self._long_batches == self._workers
            return bool(self._short or self._long)

        while True:
            async with self._has_sentences:
                await self._has_sentences.wait_for(has_work)
                turns = self._short if only_short else self._next_turns()
                key, batch = turns.take_batch(self._max_tokens(turns))
            if not batch:  # the requests of all sentences were cancelled
                continue
            is_long = turns is self._long
            if is_long:
                self._long_batches += 1
                if self._short and self._long_batches == self._workers:
                    async with self._has_sentences:
                        self._has_sentences.notify_all()
            tokens = sum(item.tokens for item in batch)
            self.on_batch(len(batch), tokens)
            if not self._running:
                self._last_change = time.monotonic()
            self._running += 1
            results = await loop.run_in_executor(self._pool, self._decode_batch, key, [item.sentence for item in batch])
            self._running -= 1
            self._long_batches -= is_long
            now = time.monotonic()
            if tokens > self._batch_size.small // 2:  # smaller batches are slower for each token
                self.rate.add(tokens, now - self._last_change)
            self._last_change = now
            for item, result in zip(batch, results, strict=True):
                if item.result.done():  # the request was cancelled
                    continue
                if isinstance(result, BaseException):
                    item.result.set_exception(result)
                else:
                    item.result.set_result(result)

    def _turns_for(self, sentences: Sequence[SourceSentence]) -> Turns:
        """Return the turns that a new request takes part in."""
        if sum(map(tokens_of, sentences)) > self._batch_size.small:
            return self._long
        self._last_short = time.monotonic()
        return self._short

    def _max_tokens(self, turns: Turns) -> int:
        """Return the size of a batch: a small one for long requests while short ones come.

        Workers that have nothing to do share what waits.
        """
        is_shared = time.monotonic() - self._last_short < RECENT_SECONDS
        limit = self._batch_size.small if turns is self._long and is_shared else self._batch_size.full
        return min(limit, math.ceil(turns.tokens / max(1, self._workers - self._running)))

    def _next_turns(self) -> Turns:
        """Return the turns of short or of long requests, one after the other where both wait."""
        is_short = bool(self._short) and (self._is_short_next or not self._long)
        self._is_short_next = not is_short
        return self._short if is_short else self._long

    def _decode_batch(
        self, key: BatchKey, sentences: Sequence[SourceSentence]
    ) -> Sequence[SentenceResult | BaseException]:
        """Return a result or an exception for each sentence.

        If the batch fails, its sentences are decoded one by one, so that a bad one does not fail other requests.
        """
        try:
            return self._decode(key, sentences)
        except Exception as error:
            if len(sentences) == 1:
                return [error]
            return [self._decode_batch(key, [sentence])[0] for sentence in sentences]
