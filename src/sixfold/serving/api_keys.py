"""Who may ask, and how much: keys that are kept hashed, and limits for each key or address."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sixfold import files
from sixfold.errors import ConfigError, DataError
from sixfold.serving.responses import Refusal

REMEMBERED = 10_000  # keys and addresses
PREFIX = "sixfold-"


def digest(key: str) -> str:
    """Keys are long and random: there is nothing to guess, so that a fast hash does."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


class Keys:
    """A file of lines `name sha256`; what is behind a # is a remark."""

    def __init__(self, known: dict[str, str]) -> None:
        self._known = known  # digest: name

    @classmethod
    def read(cls, path: Path) -> Keys:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: cannot be read: {error}", "sixfold serve --new-key NAME makes it") from None
        known = {}
        for number, line in enumerate(lines, start=1):
            parts = line.partition("#")[0].split()
            if not parts:
                continue
            if len(parts) != 2 or len(parts[1]) != 64 or set(parts[1].lower()) - set("0123456789abcdef"):
                raise DataError(
                    f"{path}:{number}: expected a name and a SHA-256 of 64 hex digits", "sixfold serve --new-key NAME"
                )
            known[parts[1].lower()] = parts[0]
        return cls(known)

    def name(self, key: str) -> str | None:
        """Whose key this is. Every known one is compared in full: the time taken says nothing."""
        asked, found = digest(key), None
        for known, name in self._known.items():
            if hmac.compare_digest(known, asked):
                found = name
        return found


def make_key(path: Path, name: str) -> str:
    """A new key; its hash is added to the file, and the key itself is kept nowhere."""
    if not name or any(letter.isspace() or letter == "#" for letter in name):
        raise ConfigError(f"--new-key: expected a name without spaces; got {name!r}")
    key = PREFIX + secrets.token_urlsafe(32)
    before = path.read_bytes() if path.exists() else b""
    if any(line.split()[:1] == [name.encode()] for line in before.splitlines()):
        raise ConfigError(f"{path}: there is a key of the name {name}", "take its line out, or choose another name")
    with files.atomic(path) as file:
        file.write(before + (b"" if not before or before.endswith(b"\n") else b"\n"))
        file.write(f"{name} {digest(key)}\n".encode())
    path.chmod(0o600)
    return key


class Limits:
    """Requests a minute, and requests in work, of each key or address; those seen longest ago are forgotten."""

    def __init__(self, per_minute: int, concurrent: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._concurrent, self._clock = per_minute, concurrent, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # who: what is left, when
        self._working: dict[str, int] = {}

    def take(self, who: str, cost: int = 1) -> None:
        """Refused when what fills up evenly over a minute is used up. Something dearer than all of it takes all."""
        if not self._per_minute:
            return
        now, rate = self._clock(), self._per_minute / 60
        left, when = self._buckets.pop(who, (float(self._per_minute), now))
        left = min(float(self._per_minute), left + (now - when) * rate)
        cost = min(cost, self._per_minute)
        is_fine = left >= cost
        self._buckets[who] = (left - cost if is_fine else left, now)
        while len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        if not is_fine:
            raise Refusal(
                429, f"Slowdown: {self._per_minute} per 1 minute", retry_after=math.ceil((cost - left) / rate)
            )

    @contextmanager
    def working(self, who: str) -> Iterator[None]:
        """While a request is in work."""
        count = self._working.get(who, 0)
        if self._concurrent and count >= self._concurrent:
            raise Refusal(429, f"Slowdown: {self._concurrent} at once", retry_after=1)
        self._working[who] = count + 1
        try:
            yield
        finally:
            if self._working[who] == 1:
                del self._working[who]
            else:
                self._working[who] -= 1
