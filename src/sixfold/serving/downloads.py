"""Translated files, kept in memory until they are fetched, for a limited time and up to a limit in bytes."""

from __future__ import annotations

import mimetypes
import re
import time
import uuid
from urllib.parse import quote

from starlette.responses import Response

from sixfold.serving.cache import Cache
from sixfold.serving.responses import HttpError

HOUR = 3600.0  # seconds


class Downloads:
    """Files under addresses that cannot be guessed. No name that a client sends becomes a path on this machine."""

    def __init__(self, limit: int = 64_000_000, seconds: float = HOUR) -> None:
        """Keep files for `seconds`, and no more than `limit` bytes of them."""
        self._files: Cache[tuple[bytes, str, float]] = Cache(limit)
        self._seconds = seconds

    def add(self, data: bytes, name: str) -> str:
        """Keep a file and return its address, quoted for a URL."""
        safe_name = re.sub(r"[^\w.-]+", "_", name)[-100:]
        address = f"{uuid.uuid4()}.{safe_name}"
        self._files.put(address, (data, safe_name, time.monotonic()), len(data) + 4 * len(safe_name))
        return quote(address)

    def response(self, address: str) -> Response:
        """Return a file as an attachment, or raise HttpError 404 if it is unknown or too old."""
        entry = self._files.get(address)
        if entry is None or time.monotonic() - entry[2] > self._seconds:
            self._files.discard(address)
            raise HttpError(404, "there is no such file, or it was not fetched in time", "translate it again")
        data, name, _ = entry
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}",
            "Cache-Control": "no-cache",
        }
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(data, 200, headers, media_type=media_type)
