"""Connections that must say something in time: one that stays silent, or sends a header a minute, is closed."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sixfold.errors import ConfigError
from sixfold.serving.middleware import log_line
from sixfold.serving.options import ServeOptions


def protocol_of(seconds: float) -> type[H11Protocol]:
    """uvicorn waits for the head of a request for ever; this closes after so many seconds."""

    class Impatient(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timer = self.loop.call_later(seconds, self._give_up)

        def handle_events(self) -> None:
            before = self.cycle
            super().handle_events()
            if self.cycle is not before and self._timer is not None:  # a request has begun
                self._timer.cancel()
                self._timer = None

        def data_received(self, data: bytes) -> None:
            if self._timer is None and (self.cycle is None or self.cycle.response_complete):
                self._timer = self.loop.call_later(seconds, self._give_up)  # the head of a later request
            super().data_received(data)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            super().connection_lost(exc)

        def _give_up(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

    return Impatient


class Server(uvicorn.Server):
    """Says where it listens once it does, and ends in peace when it is told to."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            host, port = each.getsockname()[:2]
            log_line({"event": "listening", "url": f"http://{f'[{host}]' if ':' in host else host}:{port}"})

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would raise them once more at the end, and the exit status would tell of a failure."""
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self.handle_exit)
        yield


def listen(options: ServeOptions) -> socket.socket:
    """Taken before models are opened, so that a mistake is told at once."""
    try:
        family, _, _, _, address = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((address[0], int(address[1])), family=family, backlog=2048)
    except OSError as error:
        where = f"{options.host}:{options.port}"
        raise ConfigError(
            f"--port: {where}: cannot listen at this address: {error.strerror}", "--port 0 takes one that is free"
        ) from None


def run(app: Any, options: ServeOptions, listening: socket.socket) -> None:
    """Until it is told to stop; what it has begun, it ends."""
    config = uvicorn.Config(
        app, http=protocol_of(options.patience), log_level="error", access_log=False,
        limit_concurrency=options.max_connections, timeout_keep_alive=30, server_header=False, date_header=True,
        proxy_headers=False,  # whoever asks could say that it is another
        h11_max_incomplete_event_size=64 * 1024, lifespan="on", ws="none", loop="auto",
        timeout_graceful_shutdown=int(options.deadline) + 1,
    )  # fmt: skip
    Server(config).run([listening])
