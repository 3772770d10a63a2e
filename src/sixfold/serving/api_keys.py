"""API keys: a file with their hashes and limits, which is read again when it changes, and how a new key is made."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from sixfold import files
from sixfold.errors import ConfigError, DataError

PREFIX = "sixfold-"
DEFAULT_MARK = "-"  # in the place of a limit: the setting of the server
FORMAT = "a name, a SHA-256 of 64 hex digits, and perhaps requests per minute and characters of a text"


@dataclass(frozen=True)
class ApiKey:
    """The owner of a key and its limits. A limit of None is the setting of the server."""

    name: str
    requests_per_minute: int | None = None  # 0: no limit
    max_characters: int | None = None  # of each text, and of a document


def digest(key: str) -> str:
    """Return the SHA-256 of a key in hex. Keys are long and random, so a fast hash is safe."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


class ApiKeys:
    """The keys of a server, from a file of lines `name sha256 [requests-per-minute] [max-characters]`."""

    def __init__(self, path: Path) -> None:
        """Read the file, or raise DataError if it has a mistake."""
        self._path = path
        self._signature = signature(path)
        self._keys = read_keys(path)

    def find(self, key: str) -> ApiKey | None:
        """Return the owner of a key, or None. All digests are compared in full, so the time taken reveals nothing."""
        key_digest, match = digest(key), None
        for stored, owner in self._keys.items():
            if hmac.compare_digest(stored, key_digest):
                match = owner
        return match

    def refresh(self) -> str | None:
        """Read the file again if it has changed, and return a message about it, or None if it has not.

        A file with a mistake, or one that is gone, changes nothing: the keys that were read last stay valid.
        """
        current = signature(self._path)
        if current == self._signature:
            return None
        self._signature = current
        try:
            self._keys = read_keys(self._path)
        except DataError as error:
            return f"{error}; the old keys stay in use"
        return f"{self._path}: read again, {len(self._keys)} keys"


def signature(path: Path) -> tuple[int, ...]:
    """Return what tells one version of a file from another without reading it; it is empty if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def read_keys(path: Path) -> dict[str, ApiKey]:
    """Return the owner of each key by the digest of the key. In the file, a # starts a comment."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}", "sixfold serve --new-key NAME creates it") from None
    keys = {}
    for number, line in enumerate(lines, start=1):
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        name, key_digest, *limits = [*fields, ""] if len(fields) == 1 else fields
        if len(limits) > 2 or len(key_digest) != 64 or set(key_digest.lower()) - set("0123456789abcdef"):
            raise DataError(f"{path}:{number}: expected {FORMAT}", "sixfold serve --new-key NAME")
        requests, characters = (
            _read_limit(path, number, text, least) for text, least in zip([*limits, "-", "-"], (0, 1), strict=False)
        )
        keys[key_digest.lower()] = ApiKey(name, requests, characters)
    return keys


def _read_limit(path: Path, number: int, text: str, least: int) -> int | None:
    if text == DEFAULT_MARK:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 12 and int(text) >= least):
        raise DataError(
            f"{path}:{number}: expected a limit of {least} or more; got {text[:40]!r}",
            f"{DEFAULT_MARK} stands for the setting of the server",
        )
    return int(text)


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
