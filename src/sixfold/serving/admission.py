"""Decides whether a request is admitted: its API key, its size, and the limits of the client that sends it."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request

from sixfold import files
from sixfold.errors import ConfigError, DataError
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import HttpError
from sixfold.serving.service import Service

MAX_CLIENTS = 10_000  # keys and addresses whose recent requests are remembered


class RateLimits:
    """Limits for each client, which is a key name or an address: requests per minute and requests at the same time.

    Requests per minute are a token bucket that refills evenly. Of more than `MAX_CLIENTS` clients, those that have
    been away longest are forgotten. A limit of 0 is no limit.
    """

    def __init__(self, per_minute: int, concurrent: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._concurrent, self._clock = per_minute, concurrent, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client: remaining requests, at this time
        self._active: dict[str, int] = {}

    def take(self, client: str, cost: int = 1) -> None:
        """Take `cost` requests from a client's bucket, or raise HttpError 429 if too few remain.

        A cost above the size of the bucket takes the whole bucket.
        """
        if not self._per_minute:
            return
        now, rate = self._clock(), self._per_minute / 60
        remaining, updated = self._buckets.pop(client, (float(self._per_minute), now))
        remaining = min(float(self._per_minute), remaining + (now - updated) * rate)
        cost = min(cost, self._per_minute)
        is_allowed = remaining >= cost
        self._buckets[client] = (remaining - cost if is_allowed else remaining, now)
        while len(self._buckets) > MAX_CLIENTS:
            self._buckets.popitem(last=False)
        if not is_allowed:
            raise HttpError(
                429, f"Slowdown: {self._per_minute} per 1 minute", retry_after=math.ceil((cost - remaining) / rate)
            )

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
    """Checks requests before the routes serve them. Every route has it, and reaches the service through it."""

    service: Service
    options: ServeOptions
    limits: RateLimits
    keys: ApiKeys | None

    def admit(self, request: Request, key: str, texts: list[str]) -> None:
        """Raise HttpError for a wrong key, for too much text or for too many requests.

        A request that is admitted counts as active until it has been answered. `key` is the key that the request has
        in its body, if any; the Authorization header is read here.
        """
        client = self._client(request, key)
        size = sum(map(len, texts))
        request.scope["state"]["log"] = {"who": client, "texts": len(texts), "characters": size}
        limit = self.options.max_texts
        if len(texts) > limit:
            raise HttpError(400, f"Invalid request: request ({len(texts)}) exceeds text limit ({limit})")
        self._check_size(size)
        self.limits.take(client, max(1, len(texts)))
        request.scope["state"]["cleanup"].enter_context(self.limits.active(client))

    def admit_document(self, request: Request, size: int) -> None:
        """Raise HttpError if a document has too many characters.

        The request itself was admitted before its document was read.
        """
        request.scope["state"]["log"] |= {"texts": 1, "characters": size}
        self._check_size(size)

    def _check_size(self, size: int) -> None:
        limit = self.options.max_characters
        if size > limit:
            raise HttpError(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")

    def _client(self, request: Request, key: str) -> str:
        """Return the name of the request's key, or its address if the server needs no keys."""
        if not key:
            scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
            key = credentials.strip() if scheme.lower() == "bearer" else ""
        if self.keys is None:
            return request.client.host if request.client else "local"
        if not key:
            raise HttpError(400, "Please contact the server operator to get an API key")
        name = self.keys.name(key)
        if name is None:
            raise HttpError(403, "Invalid API key")
        return name


PREFIX = "sixfold-"


def digest(key: str) -> str:
    """Return the SHA-256 of a key in hex. Keys are long and random, so a fast hash is safe."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


class ApiKeys:
    """The keys of a server, read from a file of lines `name sha256`; a # starts a comment."""

    def __init__(self, names: dict[str, str]) -> None:
        """Keep the name of each key by the digest of the key."""
        self._names = names

    @classmethod
    def read(cls, path: Path) -> ApiKeys:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: cannot be read: {error}", "sixfold serve --new-key NAME creates it") from None
        names = {}
        for number, line in enumerate(lines, start=1):
            parts = line.partition("#")[0].split()
            if not parts:
                continue
            if len(parts) != 2 or len(parts[1]) != 64 or set(parts[1].lower()) - set("0123456789abcdef"):
                raise DataError(
                    f"{path}:{number}: expected a name and a SHA-256 of 64 hex digits", "sixfold serve --new-key NAME"
                )
            names[parts[1].lower()] = parts[0]
        return cls(names)

    def name(self, key: str) -> str | None:
        """Return the name of a key, or None. All digests are compared in full, so the time taken reveals nothing."""
        key_digest, match = digest(key), None
        for stored, name in self._names.items():
            if hmac.compare_digest(stored, key_digest):
                match = name
        return match


def make_key(path: Path, name: str) -> str:
    """Return a new key after adding its hash to the file."""
    if not name or any(letter.isspace() or letter == "#" for letter in name):
        raise ConfigError(f"--new-key: expected a name without spaces; got {name!r}")
    key = PREFIX + secrets.token_urlsafe(32)
    before = path.read_bytes() if path.exists() else b""
    if any(line.split()[:1] == [name.encode()] for line in before.splitlines()):
        raise ConfigError(f"{path}: there is already a key named {name}", "delete its line, or choose another name")
    with files.atomic_write(path) as file:
        file.write(before + (b"" if not before or before.endswith(b"\n") else b"\n"))
        file.write(f"{name} {digest(key)}\n".encode())
    path.chmod(0o600)
    return key
