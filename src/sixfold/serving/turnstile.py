"""Lets a few requests work at the same time. Of those that wait, clients take turns."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from sixfold.serving.job_pool import busy


class Turnstile:
    """At most `limit` requests are inside, and at most `max_waiting` wait. It belongs to one event loop."""

    def __init__(self, limit: int, max_waiting: int) -> None:
        self.limit, self.max_waiting = limit, max_waiting
        self.inside = 0
        self._clients: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()  # in the order of their turns

    @property
    def waiting(self) -> int:
        """The requests that wait."""
        return sum(len(futures) for futures in self._clients.values())

    @asynccontextmanager
    async def enter(self, client: str) -> AsyncIterator[None]:
        """Wait for a turn of this client, and count as inside until the context ends.

        HttpError 503 is raised at once if too many wait already.
        """
        if self.inside < self.limit:
            self.inside += 1
        else:
            if self.waiting >= self.max_waiting:
                raise busy()
            await self._wait(client)
        try:
            yield
        finally:
            self._let_next_in()

    async def _wait(self, client: str) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._clients.setdefault(client, deque()).append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():  # its turn has come, but nobody takes it
                self._let_next_in()
            else:
                self._forget(client, future)
            raise

    def _let_next_in(self) -> None:
        """Give the place of a request that leaves to the client whose turn it is."""
        while self._clients:
            client, futures = self._clients.popitem(last=False)
            future = futures.popleft()
            if futures:
                self._clients[client] = futures  # after the other clients
            if not future.done():
                future.set_result(None)
                return
        self.inside -= 1

    def _forget(self, client: str, future: asyncio.Future[None]) -> None:
        with suppress(KeyError, ValueError):
            self._clients[client].remove(future)
            if not self._clients[client]:
                del self._clients[client]
