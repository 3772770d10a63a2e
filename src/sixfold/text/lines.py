"""Text files as lines: streamed, UTF-8 only, every complaint with its file and line number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from sixfold.errors import DataError
from sixfold.text.encodings import SAMPLE, check_utf8

Progress = Callable[[int], None]


def read_lines(path: Path, advance: Progress | None = None) -> Iterator[str]:
    """Yield lines without their line ends. `advance` is told the bytes read, for a progress bar."""
    try:
        with path.open("rb") as file:
            check_utf8(file.peek(SAMPLE), str(path))
            for number, raw in enumerate(file, start=1):
                if advance is not None:
                    advance(len(raw))
                yield decode_line(raw, f"{path}:{number}").rstrip("\r\n")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None


def decode_line(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: expected UTF-8; got byte 0x{raw[error.start]:02x} at column {error.start + 1}",
            "convert the file, for example: iconv -f GB18030 -t UTF-8",
        ) from None
