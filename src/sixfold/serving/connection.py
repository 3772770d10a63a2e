"""The HTTP server: its socket, its signals, and a time limit for connections that send no request."""

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
from sixfold.serving.addresses import Addresses
from sixfold.serving.middleware import log_line
from sixfold.serving.options import ServeOptions
from sixfold.serving.writing import Ending


def protocol_with_timeout(seconds: float) -> type[H11Protocol]:
    """Return an HTTP protocol that closes a connection if the headers of a request take longer than `seconds`.

    uvicorn itself waits for them without a limit.
    """

    class IdleTimeout(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timer = self.loop.call_later(seconds, self._close)

        def handle_events(self) -> None:
            before = self.cycle
            super().handle_events()
            if self.cycle is not before and self._timer is not None:  # the headers of a request are complete
                self._timer.cancel()
                self._timer = None

        def data_received(self, data: bytes) -> None:
            if self._timer is None and (self.cycle is None or self.cycle.response_complete):
                self._timer = self.loop.call_later(seconds, self._close)  # for the headers of the next request
            super().data_received(data)

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            super().connection_lost(exc)

        def _close(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

    return IdleTimeout


class Server(uvicorn.Server):
    """Logs the address when the server is listening, and exits with status 0 after SIGINT or SIGTERM."""

    url_prefix = ""
    ending: Ending | None = None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.ending is not None:
            self.ending.begin()
        await super().shutdown(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            host, port = each.getsockname()[:2]
            url = f"http://{f'[{host}]' if ':' in host else host}:{port}{self.url_prefix}"
            log_line({"event": "listening", "url": url})

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals without raising them again at the end, as uvicorn does: the exit status would not be 0."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield


def listen(options: ServeOptions) -> socket.socket:
    """Return a listening socket. It is opened before the models are loaded, so that a mistake shows at once."""
    try:
        family, _, _, _, address = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((address[0], int(address[1])), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(
            f"--port: {options.host}:{options.port}: cannot listen at this address: {error.strerror}",
            "--port 0 takes a free port",
        ) from None


def run(app: Any, options: ServeOptions, listening: socket.socket, ending: Ending | None = None) -> None:
    """Serve requests until a signal stops the server; requests that have started are finished first."""
    config = uvicorn.Config(
        app, http=protocol_with_timeout(options.patience), log_level="error", access_log=False,
        limit_concurrency=options.max_connections, timeout_keep_alive=30, server_header=False, date_header=True,
        proxy_headers=False,  # any client could claim another address with them; addresses.py reads a trusted proxy's
        h11_max_incomplete_event_size=64 * 1024, lifespan="on", ws="none", loop="auto",
        timeout_graceful_shutdown=int(options.deadline) + 1,
    )  # fmt: skip
    server = Server(config)
    server.url_prefix, server.ending = Addresses(options).prefix, ending
    server.run([listening])
