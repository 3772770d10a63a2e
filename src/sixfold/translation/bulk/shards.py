"""Many files of lines (shards), cut into blocks that are each translated into a file of their own.

So a kill costs the work of a block, and no line.
"""

from __future__ import annotations

import codecs
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from sixfold import files
from sixfold.configfile import changes
from sixfold.errors import ConfigError, DataError
from sixfold.files import lock_folder

BLOCK_LINES = 1024  # lines of a block
BLOCK_BYTES = 1 << 18  # bytes of a block, where lines are long
PARTS_FOLDER = ".parts"
SETTINGS_FILE = ".made-from.json"  # a name that no shard can have
SIZE_KEY = "bytes of "  # followed by the name of a shard, a key of the settings
BLOCKS_FILE = "blocks.json"
MAX_DIFFERENCES = 5  # that an error lists

LineCheck = Callable[[bytes, str], object]  # takes a line and its place; raises DataError if it cannot be translated


class Block(NamedTuple):
    """A run of lines of a shard, and its bytes."""

    shard: Path
    number: int  # in the shard, from 0
    start: int  # bytes from the start of the shard
    size: int  # bytes
    first: int  # the number of its first line, from 1
    lines: int


class ShardJob:
    """The translation of shards into a folder: which blocks remain, and the shards joined from their blocks.

    The folder holds the finished shards, and in PARTS_FOLDER the settings, a lock, and for each unfinished shard a
    folder with its list of blocks and a file for each translated block.
    """

    def __init__(self, shards: Sequence[Path], out: Path) -> None:
        self.out = out.resolve()
        self.parts = self.out / PARTS_FOLDER
        self.shards = {shard.name: shard.resolve() for shard in shards}
        self._missing: dict[str, set[int]] = {}  # numbers of the blocks to translate, by the name of the shard
        self._block_counts: dict[str, int] = {}
        for name, count in Counter(shard.name for shard in shards).items():
            if count > 1:
                raise ConfigError(f"{name}: {count} files have this name", "rename them: it names their translations")
        for shard in shards:
            if shard.name.startswith("."):
                raise ConfigError(f"{shard}: expected a name that does not begin with a dot", "rename the file")
            if self.out / shard.name == self.shards[shard.name]:
                raise ConfigError(f"--output: expected another folder than that of {shard}", "choose another one")

    @contextmanager
    def claim(self, settings: Mapping[str, Any]) -> Iterator[None]:
        """Lock the folder for this process; raise ConfigError if it holds translations with other settings."""
        if self.out.exists() and not self.out.is_dir():
            raise ConfigError(f"--output: {self.out}: expected a folder; got a file", "choose a folder")
        with lock_folder(self.parts, f"--output: {self.out}", "another process is translating there", ["*"]):
            own = {**settings, "lines of a block": BLOCK_LINES, "bytes of a block": BLOCK_BYTES}
            own |= {f"{SIZE_KEY}{name}": shard.stat().st_size for name, shard in self.shards.items()}
            self._check_settings(json.loads(json.dumps(own)))
            self._tidy()
            yield

    def remaining_blocks(self, checks: Mapping[str, LineCheck]) -> list[Block]:
        """Return the blocks to translate; join the shards that have none.

        Every line of a shard is checked once, before its first block is translated. `checks` has an entry for each
        shard whose lines may be wrong.
        """
        remaining: list[Block] = []
        for name, shard in self.shards.items():
            if (self.out / name).exists():
                continue
            blocks = self._blocks(shard, checks.get(name))
            folder = self.parts / name
            translated = {int(path.name) for path in folder.iterdir() if path.name.isdecimal()}
            self._block_counts[name] = len(blocks)
            self._missing[name] = {block.number for block in blocks} - translated
            remaining += [block for block in blocks if block.number in self._missing[name]]
            if not self._missing[name]:
                self._join(name)
        return remaining

    def finish(self, name: str, number: int) -> None:
        """Note that a block of a shard is written; the last block completes the shard."""
        missing = self._missing[name]
        if number in missing:
            missing.remove(number)
            if not missing:
                self._join(name)

    def _blocks(self, shard: Path, check: LineCheck | None) -> list[Block]:
        """Return the blocks of a shard, from a file after the first time, since reading a large shard takes a while."""
        path = self.parts / shard.name / BLOCKS_FILE
        if not path.exists():
            blocks = [block[1:] for block in cut_into_blocks(shard, check)]
            path.parent.mkdir(exist_ok=True)
            with files.atomic_write(path) as file:
                file.write(json.dumps(blocks).encode())
        return [Block(shard, *numbers) for numbers in json.loads(path.read_bytes())]

    def _join(self, name: str) -> None:
        with files.atomic_write(self.out / name) as file:
            for number in range(self._block_counts[name]):
                with (self.parts / name / str(number)).open("rb") as part:
                    shutil.copyfileobj(part, file)
        shutil.rmtree(self.parts / name)

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        """Raise ConfigError if the folder holds translations with other or unknown settings; else write these down."""
        path = self.parts / SETTINGS_FILE
        before: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            before = json.loads(path.read_text(encoding="utf-8"))
        shards_before = [key.removeprefix(SIZE_KEY) for key in before if key.startswith(SIZE_KEY)]
        translation = self._first_translation([*self.shards, *shards_before])
        if not before:  # then no folder in the folder of parts is ours
            translation = translation or next((path for path in self.parts.iterdir() if path.is_dir()), None)
        if translation and not before:
            raise ConfigError(
                f"{translation}: is already there, and nothing says what it was made from", "choose another --output"
            )
        differences = changes(before, settings)
        if differences and translation:
            more = f"; and {len(differences) - MAX_DIFFERENCES} more" if len(differences) > MAX_DIFFERENCES else ""
            raise ConfigError(
                f"{self.out}: was begun with other settings: {'; '.join(differences[:MAX_DIFFERENCES])}{more}",
                f"use the same settings to continue, or choose another --output, or delete {self.out} to start again",
            )
        if differences:
            for folder in (self.parts / name for name in shards_before):
                if folder.is_dir():
                    shutil.rmtree(folder)
            with files.atomic_write(path) as file:
                file.write(json.dumps(settings, indent=1, ensure_ascii=False).encode())

    def _first_translation(self, names: Iterable[str]) -> Path | None:
        """Return a translated block, or a translated shard of these names; None if there is neither."""
        blocks = (path for path in self.parts.glob("*/*") if path.name.isdecimal())
        shards = (path for path in map(self.out.joinpath, names) if path.exists())
        return next(chain(blocks, shards), None)

    def _tidy(self) -> None:
        """Delete what a kill left behind: unfinished files, and the blocks of finished shards."""
        files.discard_unfinished(self.out)
        for path in self.out.iterdir():
            if path.name in self.shards and (self.parts / path.name).exists():
                shutil.rmtree(self.parts / path.name)


def cut_into_blocks(shard: Path, check: LineCheck | None = None) -> Iterator[Block]:
    """Yield blocks of BLOCK_LINES lines, or of fewer where they would have more than BLOCK_BYTES bytes."""
    number = start = size = lines = 0
    first = 1
    try:
        with shard.open("rb") as file:
            for line_number, raw in enumerate(file, start=1):
                if lines == BLOCK_LINES or (lines and size + len(raw) > BLOCK_BYTES):
                    yield Block(shard, number, start, size, first, lines)
                    number, start, size, first, lines = number + 1, start + size, 0, line_number, 0
                if check is not None:
                    check(raw.removeprefix(codecs.BOM_UTF8) if line_number == 1 else raw, f"{shard}:{line_number}")
                size, lines = size + len(raw), lines + 1
    except OSError as error:
        raise DataError(f"{shard}: {error.strerror}") from None
    if lines:
        yield Block(shard, number, start, size, first, lines)


def read_block(block: Block) -> list[bytes]:
    """Return the lines of a block, with their line feeds; raise DataError if the shard has changed."""
    try:
        with block.shard.open("rb") as file:
            file.seek(block.start)
            raw = file.read(block.size)
    except OSError as error:
        raise DataError(f"{block.shard}: {error.strerror}") from None
    lines = [line + b"\n" for line in raw.split(b"\n")]
    lines[-1] = lines[-1].removesuffix(b"\n")
    lines = lines if lines[-1] else lines[:-1]
    if len(raw) != block.size or len(lines) != block.lines:
        raise DataError(
            f"{block.shard}: expected {block.lines} lines from line {block.first}; got {len(lines)}",
            "the file has changed since the work was begun; choose another --output to start again",
        )
    return lines
