"""Whose turn it is: sentences that wait, by client and request, and the next batch of them.

Clients take turns: each adds one sentence to a batch before any adds a second. The requests of a client take turns in
the same way, because many people may share an address or a key.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import NamedTuple

from sixfold.serving.models import LoadedModels
from sixfold.translation.direction import Direction
from sixfold.translation.pipeline import SentenceResult
from sixfold.translation.prepare import SourceSentence
from sixfold.translation.request import DecodeOptions

SENTENCE_TOKENS = 8  # that a sentence counts for in addition to its own, because even a short one takes a few steps


class BatchKey(NamedTuple):
    """What the sentences of a batch have in common."""

    models: LoadedModels
    direction: Direction
    options: DecodeOptions


@dataclass(eq=False)
class QueuedSentence:
    """A sentence in the queue, and the future that receives its result."""

    sentence: SourceSentence
    result: asyncio.Future[SentenceResult]

    @property
    def tokens(self) -> int:
        return tokens_of(self.sentence)


def tokens_of(sentence: SourceSentence) -> int:
    """Return the tokens that a sentence counts for in a batch and in the queue."""
    return len(sentence.ids) + SENTENCE_TOKENS


class ClientQueue:
    """The sentences of one client that can share a batch. The requests of the client take turns."""

    def __init__(self) -> None:
        self._requests: OrderedDict[int, deque[QueuedSentence]] = OrderedDict()

    def put(self, request: int, item: QueuedSentence) -> None:
        """Add a sentence of a request."""
        self._requests.setdefault(request, deque()).append(item)

    def first(self) -> QueuedSentence | None:
        """Return the next sentence, or None if there is none. Sentences of cancelled requests are removed."""
        while self._requests:
            request, items = next(iter(self._requests.items()))
            while items and items[0].result.done():
                items.popleft()
            if items:
                return items[0]
            del self._requests[request]
        return None

    def remove_first(self) -> None:
        """Remove the sentence that `first` has returned; the next request has its turn then."""
        request, items = self._requests.popitem(last=False)
        items.popleft()
        if items:
            self._requests[request] = items


class Turns:
    """Sentences of many clients that wait for a batch. None is looked at before its turn, however many there are."""

    def __init__(self) -> None:
        # The clients in the order of their turns, each with its batch keys in the order of their turns.
        self._turns: OrderedDict[str, OrderedDict[BatchKey, None]] = OrderedDict()
        self._queues: dict[BatchKey, OrderedDict[str, ClientQueue]] = {}
        self.tokens = 0  # of all sentences that wait, those of cancelled requests included

    def __bool__(self) -> bool:
        """Return whether a sentence waits; its request may have been cancelled."""
        return bool(self._turns)

    def put(self, client: str, request: int, key: BatchKey, item: QueuedSentence) -> None:
        """Add a sentence of a request."""
        self.tokens += item.tokens
        self._turns.setdefault(client, OrderedDict())[key] = None
        self._queues.setdefault(key, OrderedDict()).setdefault(client, ClientQueue()).put(request, item)

    def take_batch(self, max_tokens: int) -> tuple[BatchKey, list[QueuedSentence]]:
        """Remove and return the sentences of the next batch, and what they have in common.

        The client whose turn it is begins. Then every client with the same batch key adds a sentence in turn.
        """
        beginner = next(iter(self._turns))
        key = next(iter(self._turns[beginner]))
        queues = self._queues[key]
        queues.move_to_end(beginner, last=False)
        batch: list[QueuedSentence] = []
        size = 0
        while queues:
            client, of_client = queues.popitem(last=False)
            item = of_client.first()
            is_full = item is not None and bool(batch) and size + item.tokens > max_tokens
            if item is not None and not is_full:
                batch.append(item)
                size += item.tokens
                of_client.remove_first()
            if of_client.first() is None:
                self._end_turns(client, key)
                continue
            queues[client] = of_client
            if is_full:
                queues.move_to_end(client, last=False)  # it is the next to add a sentence
                break
        if not queues:
            del self._queues[key]
        self.tokens = self.tokens - size if self._turns else 0
        if beginner in self._turns:
            self._turns.move_to_end(beginner)
            if key in self._turns[beginner]:
                self._turns[beginner].move_to_end(key)
        return key, batch

    def _end_turns(self, client: str, key: BatchKey) -> None:
        """Note that a client has no more sentences for a batch key."""
        del self._turns[client][key]
        if not self._turns[client]:
            del self._turns[client]
