"""Translates lines of a file or pipe: a thread reads ahead, and the output can be continued after an interruption."""

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
from sixfold.files import lock_file
from sixfold.text.encodings import check_utf8
from sixfold.translation.line_translator import LineTranslator, byte_order_mark, check_strict
from sixfold.translation.result import Translation

CHUNK_BYTES = 1 << 16
FIRST_WINDOW = 16  # lines translated together at first, so that the first output comes soon
MAX_WINDOW = {"cpu": 1024, "cuda": 8192}  # later; a GPU decodes hundreds of sentences of similar length at once
BYTES_PER_LINE = 256  # a window of longer lines has fewer of them
WINDOWS_AHEAD = 4  # that are read ahead


class LineReader:
    """Reads the lines of a file or pipe in a thread, a few windows ahead. Lines keep their line feeds."""

    def __init__(self, descriptor: int, name: str, skip: int = 0, max_window: int = MAX_WINDOW["cpu"]) -> None:
        """Start reading. `name` is the input's name in messages; the first `skip` lines are left out.

        `max_window` is the largest number of lines that are translated together.
        """
        self.name = name
        self.max_window = max_window
        self.skipped = [0, 0]  # lines and bytes that were left out so far
        self._skip = skip
        self._descriptor = descriptor
        self._lines: deque[bytes] = deque()
        self._bytes = 0  # in self._lines
        self._ended = False
        self._error: DataError | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def windows(self) -> Iterator[list[bytes]]:
        """Yield the lines that have arrived, at least one at a time.

        So a slow producer gets each line back at once, and lines of a fast one are translated together.
        """
        limit = FIRST_WINDOW
        while window := self._take(limit):
            yield window
            limit = min(2 * limit, self.max_window)
        if self._error is not None:
            raise self._error

    def _take(self, limit: int) -> list[bytes]:
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._ended)
            window: list[bytes] = []
            free_bytes = BYTES_PER_LINE * self.max_window
            while self._lines and len(window) < limit and (not window or len(self._lines[0]) <= free_bytes):
                window.append(self._lines.popleft())
                free_bytes -= len(window[-1])
            self._bytes -= sum(map(len, window))
            self._changed.notify_all()
            return window

    def _run(self) -> None:
        unfinished: list[bytes] = []  # parts of the last line
        try:
            # Not through sys.stdin: a thread that waits for input would hold its lock while Python shuts down.
            is_first = True
            while chunk := os.read(self._descriptor, CHUNK_BYTES):
                if is_first:
                    check_utf8(chunk, self.name)
                    is_first = False
                complete, line_feed, tail = chunk.rpartition(b"\n")
                if line_feed:
                    self._put([line + b"\n" for line in b"".join([*unfinished, complete]).split(b"\n")])
                    unfinished.clear()
                unfinished.append(tail)
            self._put([last] if (last := b"".join(unfinished)) else [])
        except OSError as error:
            self._error = DataError(f"{self.name}: {error.strerror}")
        except DataError as error:
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _put(self, lines: list[bytes]) -> None:
        skipped = min(len(lines), self._skip - self.skipped[0])
        self.skipped[0] += skipped
        self.skipped[1] += sum(map(len, lines[:skipped]))
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < WINDOWS_AHEAD * BYTES_PER_LINE * self.max_window)
            self._lines.extend(lines[skipped:])
            self._bytes += sum(map(len, lines[skipped:]))
            self._changed.notify_all()


@dataclass
class TranslationJob:
    """Translates the lines of a reader, and how the output is written."""

    lines: LineTranslator
    as_json: bool = False
    details: bool = False
    strict: bool = False  # stop at a line in a language that the model does not read
    done: int = 0  # lines that are translated, with those of an earlier run

    def run(self, reader: LineReader, out: BinaryIO, advance: Callable[[int, int], None]) -> None:
        """Write the translation of every line. `advance` gets the bytes and lines that are done, with skipped ones."""
        before = self.done
        for window in reader.windows():
            if before:
                advance(reader.skipped[1], before)
                before = 0
            first = self.done + 1
            texts = [self.lines.decode_line(raw.removesuffix(b"\n"), first + index) for index, raw in enumerate(window)]
            output = [self._format(translation) for translation in self.lines.translate(texts, first)]
            if self.strict:
                check_strict(self.lines.notices)
            ends = ["\n" if raw.endswith(b"\n") else "" for raw in window]
            assert len(output) == len(window)
            assert not any("\n" in line for line in output)
            mark = "" if self.as_json else byte_order_mark(window[0], first)
            out.write("".join([mark, *(line + end for line, end in zip(output, ends, strict=True))]).encode())
            out.flush()
            self.done += len(window)
            advance(sum(map(len, window)), len(window))
        if reader.skipped[0] < before:
            raise DataError(
                f"input: expected more than the {before} lines that are already translated; got {reader.skipped[0]}",
                "give the same input as before",
            )

    def _format(self, translation: Translation) -> str:
        if self.as_json:
            return json.dumps(translation.to_dict(self.details), ensure_ascii=False)
        return translation.text


class PartialOutput:
    """An output file that has the suffix .partial until it is complete, so that an interrupted run can be continued.

    The file .partial.json beside it holds the model, the input and the options, so that other work is not mixed in.
    """

    def __init__(self, final: Path, origin: Mapping[str, Any], resume: bool) -> None:
        """Check an earlier .partial file; `origin` is what .partial.json holds."""
        self.final = files.check_output_path(final)
        self.path = self.final.with_name(f"{self.final.name}.partial")
        self.origin_path = self.path.with_name(f"{self.path.name}.json")
        self.lines = 0  # complete lines of an earlier run, set when the file is opened
        self._origin = origin
        files.check_output_path(self.path)
        if self.path.exists() and self.path.stat().st_size:
            if not resume:
                raise ConfigError(
                    f"{self.path}: holds the output of an earlier run",
                    "add --resume to continue, or delete the file to start again",
                )
            self._check()

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """Yield the file to append to. Without an exception, it gets its final name at the end."""
        with self.path.open("ab") as file:
            lock_file(file, ConfigError(f"{self.path}: another process is writing it", "wait for it"))
            with files.atomic_write(self.origin_path) as origin:
                origin.write(json.dumps(self._origin, indent=1, ensure_ascii=False).encode())
            self.lines, size = count_complete_lines(self.path)
            file.truncate(size)
            try:
                yield file
            except BaseException:
                file.flush()
                if not self.path.stat().st_size:  # there is nothing to continue
                    self.path.unlink()
                    self.origin_path.unlink(missing_ok=True)
                raise
            file.flush()
            os.fsync(file.fileno())
        self.path.replace(self.final)
        self.origin_path.unlink(missing_ok=True)

    def _check(self) -> None:
        try:
            before: dict[str, Any] = json.loads(self.origin_path.read_text(encoding="utf-8"))
            differences = changes(before, self._origin)
        except (OSError, ValueError, AttributeError):
            raise ConfigError(
                f"{self.origin_path}: cannot be read, so it is unknown what {self.path.name} was made from",
                f"delete {self.path} to start again",
            ) from None
        if differences:
            raise ConfigError(
                f"{self.path}: was started with other settings: {'; '.join(differences)}",
                "use the same settings to continue, or delete the file to start again",
            )


def count_complete_lines(path: Path) -> tuple[int, int]:
    """Return how many lines end in a line feed, and their size in bytes."""
    lines = end = position = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            lines += chunk.count(b"\n")
            if b"\n" in chunk:
                end = position + chunk.rindex(b"\n") + 1
            position += len(chunk)
    return lines, end


def file_size(descriptor: int) -> int | None:
    """Return the size of a file in bytes, or None for a pipe, whose size is unknown."""
    status = os.fstat(descriptor)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


@contextmanager
def progress(size: int | None, is_shown: bool, with_rate: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a bar with the remaining time for a file, or a count for a pipe.

    The yielded function advances it by bytes and lines.
    """
    if not is_shown:
        yield lambda _bytes, _lines: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    count = TextColumn("translating: {task.fields[lines]:,} lines{task.fields[rate]}")
    columns = (SpinnerColumn(), count) if size is None else (count, BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("translate", total=size, lines=0, rate="")
        done, start = 0, time.perf_counter()

        def advance(size: int, lines: int) -> None:
            nonlocal done
            done += lines
            rate = f", {done / (time.perf_counter() - start):,.0f}/s" if with_rate else ""
            bar.update(task, advance=size, lines=done, rate=rate)

        yield advance


@contextmanager
def sentence_progress(is_shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar with the remaining time for the sentences of a document.

    The yielded function sets it to a number of sentences of a total. It is None if nothing is shown.
    """
    if not is_shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    count = TextColumn("translating: {task.completed:,} of {task.total:,} sentences")
    with Progress(count, BarColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("translate", total=0)
        yield lambda done, total: bar.update(task, completed=done, total=total)
