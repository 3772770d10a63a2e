"""What every request passes through: its address and body, security headers, a deadline, and one line in the log."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sixfold.serving.addresses import Addresses, route_path
from sixfold.serving.metrics import Metrics, method_label, route_label
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import HttpError

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
UPLOAD_PATHS = (
    "/translate_file",
    "/api/v1/translate_file/stream",
)  # take bodies of up to `max_file` bytes instead of `max_body`
# Streams have no deadline. The other routes below see to theirs themselves: they keep or return what is done by then.
ROUTES_WITH_OWN_DEADLINE = re.compile(r"/translate|/translate_file|/api/v1/.*|/v1/.*")
UNCOUNTED_BYTES = 16_384  # of each body, so that small requests are answered while large ones wait for memory

Log = Callable[[dict[str, Any]], None]


def log_line(values: dict[str, Any]) -> None:
    """Print one JSON object as a line to standard error. Logs never contain what users send."""
    print(json.dumps(values, ensure_ascii=False), file=sys.stderr, flush=True)


class ClientDisconnected(Exception):  # noqa: N818 -- it is no error of the server
    """The client closed its connection before it had its response."""


class BodyMemory:
    """Counts the bytes of all request bodies in memory, from their arrival until their responses are sent."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0

    @contextmanager
    def reserve(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that adds bytes to one request's share; the share is freed at the end of the context.

        The function raises HttpError 503 if the bodies of other requests leave too little memory.
        """
        share = 0

        def add(count: int) -> None:
            nonlocal share
            if self.used > share and self.used + count > self.limit:
                raise HttpError(503, "the server has too many large requests", "try again in a moment", retry_after=2)
            share += count
            self.used += count

        try:
            yield add
        finally:
            self.used -= share


class RequestMiddleware:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, options: ServeOptions, metrics: Metrics, log: Log = log_line) -> None:
        self.app, self._options, self._metrics, self._log = app, options, metrics, log
        self._addresses = Addresses(options)
        self._body_memory = BodyMemory(options.max_bodies)
        self._headers = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
        request_id = secrets.token_hex(6)
        cleanup = ExitStack()  # closed when the response has been sent
        sent_method = scope["method"]
        # Every route that has GET has HEAD too: routes see a GET, and uvicorn, which keeps the scope, sends no body.
        scope = {**scope, "method": "GET" if sent_method == "HEAD" else sent_method}
        scope.setdefault("state", {})["cleanup"] = cleanup

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                names = {key for key, _ in message["headers"]}
                added = [pair for pair in self._headers if pair[0] not in names]
                message["headers"] = [*message["headers"], *added, (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            if (path := self._addresses.redirect(scope)) is not None:
                await RedirectResponse(path)(scope, receive, send_with_headers)
                return
            scope = self._addresses.resolve(scope)
            body = await self._read_body(scope, receive, cleanup.enter_context(self._body_memory.reserve()))
            await self._run(scope, body, receive, send_with_headers)
        except HttpError as error:
            if not status:
                await error.response(route_path(scope))(scope, receive, send_with_headers)
        except ClientDisconnected:
            status = status or 499
        except Exception as error:  # a bug of the server; the client has got status 500
            frame = traceback.extract_tb(error.__traceback__)[-1]
            location = f"{Path(frame.filename).name}:{frame.lineno}"
            scope["state"].setdefault("log", {})["fault"] = f"{type(error).__name__} in {location}"
        finally:
            cleanup.close()
            seconds = time.perf_counter() - start
            method, route = method_label(sent_method), route_label(getattr(scope.get("route"), "path", "other"))
            self._metrics.record_request(method, route, status, seconds)
            self._log({
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "request": request_id, "method": method,
                "route": route, "status": status, "ms": round(1000 * seconds, 1), **scope["state"].get("log", {}),
            })  # fmt: skip

    async def _read_body(self, scope: Scope, receive: Receive, add_bytes: Callable[[int], None]) -> bytes:
        """Return the whole body, or raise HttpError if it is too large or takes longer than `patience` to arrive."""
        limit = self._options.max_file + 10_000 if route_path(scope) in UPLOAD_PATHS else self._options.max_body
        content_length = dict(scope["headers"]).get(b"content-length", b"0")
        if content_length.isdigit() and int(content_length) > limit:
            raise too_large(limit)
        body = bytearray()
        try:
            async with asyncio.timeout(self._options.patience):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnected
                    chunk = message.get("body", b"")
                    if len(body) + len(chunk) > limit:
                        raise too_large(limit)
                    add_bytes(max(0, len(body) + len(chunk) - UNCOUNTED_BYTES) - max(0, len(body) - UNCOUNTED_BYTES))
                    body += chunk
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise HttpError(408, f"the request took longer than {self._options.patience:g} s to arrive") from None

    async def _run(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Run the application until it has responded, the deadline has passed, or the client has disconnected."""
        is_body_sent = False

        async def replay_body() -> Message:
            nonlocal is_body_sent
            if not is_body_sent:
                is_body_sent = True
                return {"type": "http.request", "body": body, "more_body": False}
            return await wait_for_disconnect()

        async def wait_for_disconnect() -> Message:
            while (message := await receive())["type"] != "http.disconnect":
                pass
            return message

        work = asyncio.ensure_future(self.app(scope, replay_body, send))
        disconnect = asyncio.ensure_future(wait_for_disconnect())
        limit = None if ROUTES_WITH_OWN_DEADLINE.fullmatch(route_path(scope)) else self._options.deadline
        try:
            await asyncio.wait((work, disconnect), timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
            elif disconnect.done():
                raise ClientDisconnected
            else:
                raise HttpError(504, f"no response within {limit:g} s", "send less at once")
        finally:
            for task in (work, disconnect):
                task.cancel()
            await asyncio.gather(work, disconnect, return_exceptions=True)


def too_large(limit: int) -> HttpError:
    return HttpError(413, f"the request is larger than {limit:,} bytes", "send less at once")
