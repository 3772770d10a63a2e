"""The page: the files of `static/`, as they are in the package."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import APIRouter, Request, Response

STATIC = Path(__file__).parent / "static"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def make_site() -> APIRouter:
    """A route for each file, read once; there is no path to follow out of the folder."""
    routes = APIRouter(include_in_schema=False)
    for path in sorted(STATIC.rglob("*")):
        if path.suffix in KINDS:
            name = path.relative_to(STATIC).as_posix()
            routes.add_api_route("/" if name == "index.html" else f"/static/{name}", answer_with(path), methods=["GET"])
    return routes


def answer_with(path: Path) -> Callable[[Request], Awaitable[Response]]:
    plain = path.read_bytes()
    small = gzip.compress(plain, mtime=0)
    tag = f'"{hashlib.sha256(plain).hexdigest()[:16]}"'
    headers = {
        "ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding",
        "Content-Type": f"{KINDS[path.suffix]}; charset=utf-8",
    }  # fmt: skip

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(small, headers={**headers, "Content-Encoding": "gzip"})
        return Response(plain, headers=headers)

    return answer
