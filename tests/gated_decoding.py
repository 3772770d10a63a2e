"""Deadlines that pass after a number of batches instead of seconds, so that a test does not depend on any speed."""

import asyncio
import threading
from contextlib import asynccontextmanager, suppress

from sixfold.serving import service
from sixfold.serving.service import Service


class Gate:
    """Lets `count` batches of each request pass. When the next one comes, the deadline of the request passes.

    That batch is decoded when the request has ended.
    """

    def __init__(self, count):
        self.count = count
        self._changed = threading.Condition()
        self._batches, self._expire = 0, None  # None: no request has a deadline

    @asynccontextmanager
    async def deadline(self):
        """The deadline of a request that begins now, as a context in the event loop of the server."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as timeout:

                def expire():
                    with suppress(RuntimeError):  # the request has just ended
                        timeout.reschedule(loop.time())

                self._set(lambda: loop.call_soon_threadsafe(expire))
                yield
        finally:
            self._set(None)

    def pass_batch(self):
        """Return when a batch may be decoded."""
        with self._changed:
            self._batches += 1
            if self._expire is not None and self._batches > self.count:
                self._expire()
                self._changed.wait_for(lambda: self._expire is None, timeout=60)

    def _set(self, expire):
        with self._changed:
            self._batches, self._expire = 0, expire
            self._changed.notify_all()


def gate_decoding(monkeypatch, count=2):
    """Put a gate before the decoding of every server that is started in this process from now on.

    They decode a batch at a time, so that a batch begins when the results of the one before are where they belong.
    """
    gate, decode = Gate(count), Service._decode_batch

    def decode_when_open(self, key, sentences):
        gate.pass_batch()
        return decode(self, key, sentences)

    monkeypatch.setattr(service, "BATCHES", 1)
    monkeypatch.setattr(Service, "_decode_batch", decode_when_open)
    monkeypatch.setattr(Service, "deadline", lambda _: gate.deadline())
