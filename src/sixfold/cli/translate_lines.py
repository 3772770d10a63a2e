"""Lines in, as many lines out: read ahead by a thread, translated in windows, written so that a kill loses little."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from sixfold import files
from sixfold.configfile import changes
from sixfold.errors import ConfigError, DataError
from sixfold.files import hold
from sixfold.text.encodings import check_utf8
from sixfold.translation.line_translator import LineTranslator, byte_order_mark, check_strict
from sixfold.translation.result import Translation

CHUNK = 1 << 16
AHEAD = 1 << 20  # bytes that are read before they are wanted
FIRST, WINDOW = 16, 1024  # lines that are translated together: few at first, so that something is soon to be seen
ROOM = 1 << 18  # bytes of a window, where lines are long


class Reader:
    """Lines of a file or pipe, with their line feeds. It reads ahead, but not far, and hands out what is there."""

    def __init__(self, descriptor: int, name: str, skip: int = 0) -> None:
        """Start reading. `name` is what messages call the input; the first `skip` lines are not handed out."""
        self.name = name
        self.skipped = [0, 0]  # lines and bytes of an earlier start's work
        self._skip = skip
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._held = 0
        self._ended = False
        self._error: DataError | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def windows(self) -> Iterator[list[bytes]]:
        """What has come meanwhile, so that a slow producer has its line back at once, and a fast one many together."""
        most = FIRST
        while window := self._take(most):
            yield window
            most = min(2 * most, WINDOW)
        if self._error is not None:
            raise self._error

    def _take(self, most: int) -> list[bytes]:
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._ended)
            window: list[bytes] = []
            room = ROOM
            while self._lines and len(window) < most and (not window or len(self._lines[0]) <= room):
                window.append(self._lines.popleft())
                room -= len(window[-1])
            self._held -= sum(map(len, window))
            self._changed.notify_all()
            return window

    def _run(self) -> None:
        rest: list[bytes] = []
        try:
            # Not through sys.stdin, whose lock a thread that waits for input would hold while Python shuts down.
            is_first = True
            while chunk := os.read(self._descriptor, CHUNK):
                if is_first:
                    check_utf8(chunk, self.name)
                    is_first = False
                whole, feed, tail = chunk.rpartition(b"\n")
                if feed:
                    self._put([line + b"\n" for line in b"".join([*rest, whole]).split(b"\n")])
                    rest.clear()
                rest.append(tail)
            self._put([last] if (last := b"".join(rest)) else [])
        except OSError as error:
            self._error = DataError(f"{self.name}: {error.strerror}")
        except DataError as error:
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _put(self, lines: list[bytes]) -> None:
        drop = min(len(lines), self._skip - self.skipped[0])
        self.skipped[0] += drop
        self.skipped[1] += sum(map(len, lines[:drop]))
        with self._changed:
            self._changed.wait_for(lambda: self._held < AHEAD)
            self._lines.extend(lines[drop:])
            self._held += sum(map(len, lines[drop:]))
            self._changed.notify_all()


@dataclass
class Job:
    """What is asked for, and how it is to be written."""

    asked: LineTranslator
    as_json: bool = False
    details: bool = False
    strict: bool = False  # a line in a language that is not read ends the work
    lines: int = 0  # so far, those of an earlier start included

    def run(self, reader: Reader, out: BinaryIO, advance: Callable[[int, int], None]) -> None:
        """Write the translation of every line. `advance` is told bytes and lines that are done, skipped ones too."""
        before = self.lines
        for window in reader.windows():
            if before:
                advance(reader.skipped[1], before)
                before = 0
            first = self.lines + 1
            texts = [self.asked.decode_line(raw.removesuffix(b"\n"), first + index) for index, raw in enumerate(window)]
            said = [self._written(translation) for translation in self.asked.translate(texts, first)]
            if self.strict:
                check_strict(self.asked.notices)
            ends = ["\n" if raw.endswith(b"\n") else "" for raw in window]
            assert len(said) == len(window)
            assert not any("\n" in line for line in said)
            mark = "" if self.as_json else byte_order_mark(window[0], first)
            out.write("".join([mark, *(line + end for line, end in zip(said, ends, strict=True))]).encode())
            out.flush()
            self.lines += len(window)
            advance(sum(map(len, window)), len(window))
        if reader.skipped[0] < before:
            raise DataError(
                f"input: expected more than the {before} lines that are translated already; got {reader.skipped[0]}",
                "give the input that the work was begun with",
            )

    def _written(self, translation: Translation) -> str:
        if self.as_json:
            return json.dumps(translation.to_dict(self.details), ensure_ascii=False)
        return translation.text


class Partial:
    """A file that is written under another name until it is whole; what was written before a kill may be gone on with.

    Beside it lies what it is made from, so that nobody goes on with something else.
    """

    def __init__(self, final: Path, made_from: Mapping[str, Any], resume: bool) -> None:
        self.final = files.check_target(final)
        self.path = self.final.with_name(f"{self.final.name}.partial")
        self.facts = self.path.with_name(f"{self.path.name}.json")
        self.lines = 0  # that are there already, known when it is open
        self._made_from = made_from
        files.check_target(self.path)
        if self.path.exists() and self.path.stat().st_size:
            if not resume:
                raise ConfigError(
                    f"{self.path}: holds the work of an earlier start",
                    "go on with --resume, or delete the file to begin anew",
                )
            self._check()

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """Ends in the whole file under its name, unless there is an exception."""
        with self.path.open("ab") as file:
            hold(file, ConfigError(f"{self.path}: another process is writing it", "wait for it"))
            with files.atomic(self.facts) as facts:
                facts.write(json.dumps(self._made_from, indent=1, ensure_ascii=False).encode())
            self.lines, size = whole_lines(self.path)
            file.truncate(size)
            try:
                yield file
            except BaseException:
                file.flush()
                if not self.path.stat().st_size:  # there is nothing to go on with
                    self.path.unlink()
                    self.facts.unlink(missing_ok=True)
                raise
            file.flush()
            os.fsync(file.fileno())
        self.path.replace(self.final)
        self.facts.unlink(missing_ok=True)

    def _check(self) -> None:
        try:
            before: dict[str, Any] = json.loads(self.facts.read_text(encoding="utf-8"))
            differences = changes(before, self._made_from)
        except (OSError, ValueError, AttributeError):
            raise ConfigError(
                f"{self.facts}: cannot be read, so nobody knows what {self.path.name} was made from",
                f"delete {self.path} to begin anew",
            ) from None
        if differences:
            raise ConfigError(
                f"{self.path}: was begun with other settings: {'; '.join(differences)}",
                "give the same to go on, or delete the file to begin anew",
            )


def whole_lines(path: Path) -> tuple[int, int]:
    """How many lines end in a line feed, and the bytes up to the last of these."""
    lines = end = position = 0
    with path.open("rb") as file:
        while chunk := file.read(AHEAD):
            lines += chunk.count(b"\n")
            if b"\n" in chunk:
                end = position + chunk.rindex(b"\n") + 1
            position += len(chunk)
    return lines, end


def size_of(descriptor: int) -> int | None:
    """Of a file; nobody knows how much a pipe will bring."""
    status = os.fstat(descriptor)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


@contextmanager
def progress(size: int | None, is_shown: bool, with_rate: bool = False) -> Iterator[Callable[[int, int], None]]:
    """On a terminal: a bar with the time left for a file, a count for a pipe. It is told bytes and lines."""
    if not is_shown:
        yield lambda _bytes, _lines: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    count = TextColumn("translating: {task.fields[lines]:,} lines{task.fields[rate]}")
    columns = (SpinnerColumn(), count) if size is None else (count, BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("translate", total=size, lines=0, rate="")
        done, began = 0, time.perf_counter()

        def advance(more: int, lines: int) -> None:
            nonlocal done
            done += lines
            rate = f", {done / (time.perf_counter() - began):,.0f}/s" if with_rate else ""
            bar.update(task, advance=more, lines=done, rate=rate)

        yield advance
