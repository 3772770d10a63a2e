"""Translated files until they are fetched: in memory, so many bytes of them, for so long."""

from __future__ import annotations

import mimetypes
import re
import time
import uuid
from urllib.parse import quote

from starlette.responses import Response

from sixfold.serving.cache import Cache
from sixfold.serving.responses import Refusal

HOUR = 3600.0


class Files:
    """No path of the machine is ever made of a name that a client sends."""

    def __init__(self, limit: int = 64_000_000, seconds: float = HOUR) -> None:
        self._kept: Cache[tuple[bytes, str, float]] = Cache(limit)
        self._seconds = seconds

    def keep(self, data: bytes, name: str) -> str:
        """What to ask for it by: nobody can guess it."""
        shown = re.sub(r"[^\w.-]+", "_", name)[-100:]
        address = f"{uuid.uuid4()}.{shown}"
        self._kept.put(address, (data, shown, time.monotonic()), len(data) + 4 * len(shown))
        return quote(address)

    def response(self, address: str) -> Response:
        found = self._kept.get(address)
        if found is None or time.monotonic() - found[2] > self._seconds:
            self._kept.drop(address)
            raise Refusal(404, "there is no such file, or it was not fetched in time", "translate it again")
        data, name, _ = found
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}",
            "Cache-Control": "no-cache",
        }
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(data, 200, headers, media_type=kind)
