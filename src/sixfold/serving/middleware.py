"""What every request passes: its body whole and not too large, its headers, its deadline, and a line in the log."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sixfold.serving.metrics import Metrics, method_label, route_label
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import Refusal

SECURITY = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LARGE = ("/translate_file",)
STREAMED = "/api/v1/translate/stream"
SMALL = 16_384  # bytes of a body that are not counted, so that small requests are answered while large ones wait

Log = Callable[[dict[str, Any]], None]


def log_line(values: dict[str, Any]) -> None:
    """One object a line; nothing of what users send is in it."""
    print(json.dumps(values, ensure_ascii=False), file=sys.stderr, flush=True)


class Gone(Exception):  # noqa: N818 -- nor is this a mistake
    """The client has."""


class Bodies:
    """Counts the bytes that the bodies of all requests hold in memory, from their arrival until the answer."""

    def __init__(self, limit: int) -> None:
        self.limit, self.held = limit, 0

    @contextmanager
    def one(self) -> Iterator[Callable[[int], None]]:
        """For one request: a function that is told of more bytes, and refuses them where others leave no room."""
        own = 0

        def hold(more: int) -> None:
            nonlocal own
            if self.held > own and self.held + more > self.limit:
                raise Refusal(503, "the server has too many large requests", "come back in a moment", retry_after=2)
            own += more
            self.held += more

        try:
            yield hold
        finally:
            self.held -= own


class Gate:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, options: ServeOptions, metrics: Metrics, log: Log = log_line) -> None:
        self._app, self._options, self._metrics, self._log = app, options, metrics, log
        self._bodies = Bodies(options.max_bodies)
        self._headers = [(name.lower().encode(), value.encode()) for name, value in SECURITY.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        name = secrets.token_hex(6)
        held = ExitStack()  # what is let go of when the answer is out
        scope.setdefault("state", {})["held"] = held

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = {key for key, _ in message["headers"]}
                added = [pair for pair in self._headers if pair[0] not in own]
                message["headers"] = [*message["headers"], *added, (b"x-request-id", name.encode())]
            await send(message)

        try:
            body = await self._body(scope, receive, held.enter_context(self._bodies.one()))
            await self._run(scope, body, receive, answer)
        except Refusal as refusal:
            if not status:
                await refusal.response()(scope, receive, answer)
        except Gone:
            status = status or 499
        except Exception as error:  # ours; it has been answered with 500
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno}"
            scope["state"].setdefault("told", {})["fault"] = f"{type(error).__name__} in {where}"
        finally:
            held.close()
            seconds = time.perf_counter() - began
            method, route = method_label(scope["method"]), route_label(getattr(scope.get("route"), "path", "other"))
            self._metrics.answered(method, route, status, seconds)
            self._log({
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "request": name, "method": method,
                "route": route, "status": status, "ms": round(1000 * seconds, 1), **scope["state"].get("told", {}),
            })  # fmt: skip

    async def _body(self, scope: Scope, receive: Receive, hold: Callable[[int], None]) -> bytes:
        """All of it, in time."""
        most = self._options.max_file + 10_000 if scope["path"] in LARGE else self._options.max_body
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if told.isdigit() and int(told) > most:
            raise too_large(most)
        body = bytearray()
        try:
            async with asyncio.timeout(self._options.patience):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    part = message.get("body", b"")
                    if len(body) + len(part) > most:
                        raise too_large(most)
                    hold(max(0, len(body) + len(part) - SMALL) - max(0, len(body) - SMALL))
                    body += part
                    if not message.get("more_body"):
                        return bytes(body)
        except TimeoutError:
            raise Refusal(408, f"the request took longer than {self._options.patience:g} s to arrive") from None

    async def _run(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Until it has answered, its time is up, or nobody listens any more."""
        is_read = False

        async def replay() -> Message:
            nonlocal is_read
            if not is_read:
                is_read = True
                return {"type": "http.request", "body": body, "more_body": False}
            return await leaving()

        async def leaving() -> Message:
            while (message := await receive())["type"] != "http.disconnect":
                pass
            return message

        work = asyncio.ensure_future(self._app(scope, replay, send))
        watch = asyncio.ensure_future(leaving())
        limit = None if scope["path"] == STREAMED else self._options.deadline
        try:
            await asyncio.wait((work, watch), timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
            elif watch.done():
                raise Gone
            else:
                raise Refusal(504, f"no answer within {limit:g} s", "send less at once", retry_after=1)
        finally:
            for task in (work, watch):
                task.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)


def too_large(most: int) -> Refusal:
    return Refusal(413, f"the request is larger than {most:,} bytes", "send less at once")
