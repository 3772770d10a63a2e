"""Serves the web page: the files of `static/`, unchanged."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import APIRouter, Request, Response

STATIC_FOLDER = Path(__file__).parent / "static"
CONTENT_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def static_router() -> APIRouter:
    """Return a router with one route for each file. Each file is read once, and no other path can be reached."""
    router = APIRouter(include_in_schema=False)
    for path in sorted(STATIC_FOLDER.rglob("*")):
        if path.suffix in CONTENT_TYPES:
            name = path.relative_to(STATIC_FOLDER).as_posix()
            url = "/" if name == "index.html" else f"/static/{name}"
            router.add_api_route(url, file_handler(path), methods=["GET"])
    return router


def file_handler(path: Path) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that serves one file, compressed where the client accepts gzip, with an ETag."""
    content = path.read_bytes()
    compressed = gzip.compress(content, mtime=0)
    etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {
        "ETag": etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding",
        "Content-Type": f"{CONTENT_TYPES[path.suffix]}; charset=utf-8",
    }  # fmt: skip

    async def handle(request: Request) -> Response:
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(compressed, headers={**headers, "Content-Encoding": "gzip"})
        return Response(content, headers=headers)

    return handle
