"""Decides whether a request is admitted: its size, and the limits of the client that sends it."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.requests import Request

from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import HttpError
from sixfold.serving.service import Service

MAX_CLIENTS = 10_000  # keys and addresses whose recent requests are remembered
SENTENCE_SECONDS = 0.05  # of a core, for a sentence of news with the model that ships and a beam of 4


class RateLimits:
    """Limits for each client, which is a key name or an address: requests per minute and requests at the same time.

    Requests per minute are a token bucket that refills evenly. Of more than `MAX_CLIENTS` clients, those that have
    been away longest are forgotten. A limit of 0 is no limit.
    """

    def __init__(self, per_minute: int, concurrent: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._concurrent, self._clock = per_minute, concurrent, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client: remaining requests, at this time
        self._active: dict[str, int] = {}

    def take(self, client: str, cost: int = 1, per_minute: int | None = None) -> None:
        """Take `cost` requests from a client's bucket, or raise HttpError 429 if too few remain.

        A cost above the size of the bucket takes the whole bucket. `per_minute` replaces the limit for this client.
        """
        limit = self._per_minute if per_minute is None else per_minute
        if not limit:
            return
        remaining, cost = self._refill(client, limit), min(cost, limit)
        if remaining < cost:
            seconds = (cost - remaining) * 60 / limit
            raise HttpError(429, f"Slowdown: {limit} per 1 minute", retry_after=math.ceil(seconds))
        self._store(client, remaining - cost)

    def charge(self, client: str, cost: int, per_minute: int | None = None) -> None:
        """Take `cost` requests for work that is already done.

        The bucket may owe up to what it can hold: the client's next request is then admitted a minute later.
        """
        limit = self._per_minute if per_minute is None else per_minute
        if limit:
            self._store(client, max(-float(limit), self._refill(client, limit) - cost))

    def _refill(self, client: str, limit: int) -> float:
        """Return what remains in a client's bucket now, and store it."""
        now = self._clock()
        remaining, updated = self._buckets.get(client, (float(limit), now))
        remaining = min(float(limit), remaining + (now - updated) * limit / 60)
        self._store(client, remaining)
        return remaining

    def _store(self, client: str, remaining: float) -> None:
        self._buckets[client] = (remaining, self._clock())
        self._buckets.move_to_end(client)
        while len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)

    @contextmanager
    def active(self, client: str) -> Iterator[None]:
        """Count a request of a client as active, or raise HttpError 429 if the client has too many of them."""
        count = self._active.get(client, 0)
        if self._concurrent and count >= self._concurrent:
            raise HttpError(429, f"Slowdown: {self._concurrent} at once", retry_after=1)
        self._active[client] = count + 1
        try:
            yield
        finally:
            if self._active[client] == 1:
                del self._active[client]
            else:
                self._active[client] -= 1


@dataclass
class Admission:
    """Checks requests before the routes serve them. Every route has it, and reaches the service through it.

    A request's key has been checked before (`Authorization`); here its owner's limits apply.
    """

    service: Service
    options: ServeOptions
    limits: RateLimits
    needs_key: bool

    def admit(self, request: Request, texts: list[str], cost: int | None = None) -> str:
        """Return the client of a request. Raise HttpError for too long a text, too many texts or too many requests.

        A request that is admitted counts as active until it has been answered. It takes `cost` requests from what the
        client may send in a minute; by default that is the number of its texts.
        """
        client, key = client_name(request), request.scope["state"]["api_key"]
        request.scope["state"]["log"] = {"who": client, "texts": len(texts), "characters": sum(map(len, texts))}
        limit = self.options.max_texts
        if len(texts) > limit:
            raise HttpError(400, f"Invalid request: request ({len(texts)}) exceeds text limit ({limit})")
        for text in texts:
            self._check_size(request, len(text))
        per_minute = None if key is None else key.requests_per_minute
        self.limits.take(client, max(1, len(texts)) if cost is None else cost, per_minute)
        request.scope["state"]["cleanup"].enter_context(self.limits.active(client))
        return client

    def charge(self, request: Request, seconds: float) -> None:
        """Charge an admitted request for work that took this much time of a core, at the price of sentences.

        One sentence has been paid for when the request was admitted.
        """
        self.charge_requests(request, int(seconds / SENTENCE_SECONDS))

    def charge_requests(self, request: Request, count: int) -> None:
        """Charge an admitted request as much as so many requests cost."""
        key = request.scope["state"]["api_key"]
        per_minute = None if key is None else key.requests_per_minute
        self.limits.charge(client_name(request), count, per_minute)

    def admit_document(self, request: Request, size: int) -> None:
        """Raise HttpError if a document has more characters than a text may have.

        The request itself was admitted before its document was read.
        """
        request.scope["state"]["log"] |= {"texts": 1, "characters": size}
        self._check_size(request, size)

    def _check_size(self, request: Request, size: int) -> None:
        key = request.scope["state"]["api_key"]
        limit = self.options.max_characters if key is None or key.max_characters is None else key.max_characters
        if size > limit:
            raise HttpError(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")


def client_name(request: Request) -> str:
    """Return the name of the request's key, or its address if the server needs no keys."""
    key = request.scope["state"]["api_key"]
    if key is not None:
        return str(key.name)
    return request.client.host if request.client else "local"
