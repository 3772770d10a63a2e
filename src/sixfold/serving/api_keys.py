"""API keys: a file of names and hashes. The keys themselves are stored nowhere."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from sixfold import files
from sixfold.errors import ConfigError, DataError

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
    with files.atomic(path) as file:
        file.write(before + (b"" if not before or before.endswith(b"\n") else b"\n"))
        file.write(f"{name} {digest(key)}\n".encode())
    path.chmod(0o600)
    return key
