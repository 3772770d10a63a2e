"""Ctrl-C and SIGTERM as a flag that a run checks between two steps, instead of an exception at any point."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(Exception):  # noqa: N818 -- it is no error
    """Raised when the user asked to stop at a point where nothing has to be saved first."""


class Interrupt:
    """Sets `requested` at the first signal; a second signal ends the program at once."""

    def __init__(self) -> None:
        self.requested = False
        self.before: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():  # only the main thread may set handlers
            for number in SIGNALS:
                self.before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        if self.requested:
            raise Stopped

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
