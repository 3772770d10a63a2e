"""Many files of lines as blocks, each translated into a file of its own, so that a kill costs a block and no line."""

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
from sixfold.files import claim

BLOCK_LINES = 1024  # of a block
BLOCK_BYTES = 1 << 18  # bytes of a block, where lines are long
PARTS = ".parts"
FACTS = ".made-from.json"  # no shard has such a name
SIZE = "bytes of "  # and a shard's name
CUTS = "blocks.json"
TOLD = 5  # differences that an error lists

Check = Callable[[bytes, str], object]  # a line and where it stands; complains of one that cannot be translated


class Block(NamedTuple):
    """Some lines of a shard, by their bytes."""

    shard: Path
    number: int
    start: int
    size: int
    first: int  # line, counted from 1
    lines: int


class ShardJob:
    """Shards, the folder for their translations, and which blocks are still to be done."""

    def __init__(self, shards: Sequence[Path], out: Path) -> None:
        self.out = out.resolve()
        self.parts = self.out / PARTS
        self.shards = {shard.name: shard.resolve() for shard in shards}
        self._missing: dict[str, set[int]] = {}
        self._count: dict[str, int] = {}
        for name, count in Counter(shard.name for shard in shards).items():
            if count > 1:
                raise ConfigError(f"{name}: {count} files have this name", "rename them: it names their translations")
        for shard in shards:
            if shard.name.startswith("."):
                raise ConfigError(f"{shard}: expected a name that does not begin with a dot", "rename the file")
            if self.out / shard.name == self.shards[shard.name]:
                raise ConfigError(f"--output: expected another folder than that of {shard}", "choose another one")

    @contextmanager
    def claim(self, made_from: Mapping[str, Any]) -> Iterator[None]:
        """For one process at a time, and only to go on with what was begun."""
        if self.out.exists() and not self.out.is_dir():
            raise ConfigError(f"--output: {self.out}: expected a folder; got a file", "choose a folder")
        with claim(self.parts, f"--output: {self.out}", "another process is translating there", ["*"]):
            facts = {**made_from, "lines of a block": BLOCK_LINES, "bytes of a block": BLOCK_BYTES}
            facts |= {f"{SIZE}{name}": shard.stat().st_size for name, shard in self.shards.items()}
            self._agree(json.loads(json.dumps(facts)))
            self._tidy()
            yield

    def remaining_blocks(self, check: Mapping[str, Check]) -> list[Block]:
        """What is still to be translated, after a look at every line of a shard that is new.

        `check` has an entry for each shard whose lines may be wrong.
        """
        found: list[Block] = []
        for name, shard in self.shards.items():
            if (self.out / name).exists():
                continue
            blocks = self._cut(shard, check.get(name))
            folder = self.parts / name
            done = {int(path.name) for path in folder.iterdir() if path.name.isdecimal()}
            self._count[name] = len(blocks)
            self._missing[name] = {block.number for block in blocks} - done
            found += [block for block in blocks if block.number in self._missing[name]]
            if not self._missing[name]:
                self._join(name)
        return found

    def finish(self, name: str, number: int) -> None:
        """A block's part is there; the last one of a shard makes the shard."""
        missing = self._missing[name]
        if number in missing:
            missing.remove(number)
            if not missing:
                self._join(name)

    def _cut(self, shard: Path, check: Check | None) -> list[Block]:
        """Kept beside the parts, as looking at every line of a large shard takes a while."""
        kept = self.parts / shard.name / CUTS
        if not kept.exists():
            cuts = [block[1:] for block in cut(shard, check)]
            kept.parent.mkdir(exist_ok=True)
            with files.atomic(kept) as file:
                file.write(json.dumps(cuts).encode())
        return [Block(shard, *numbers) for numbers in json.loads(kept.read_bytes())]

    def _join(self, name: str) -> None:
        with files.atomic(self.out / name) as file:
            for number in range(self._count[name]):
                with (self.parts / name / str(number)).open("rb") as part:
                    shutil.copyfileobj(part, file)
        shutil.rmtree(self.parts / name)

    def _agree(self, facts: Mapping[str, Any]) -> None:
        """What is there was made from the same, or there is nothing yet."""
        kept = self.parts / FACTS
        before: dict[str, Any] = {}
        with suppress(OSError, ValueError):
            before = json.loads(kept.read_text(encoding="utf-8"))
        begun = self._begun([*self.shards, *(name.removeprefix(SIZE) for name in before if name.startswith(SIZE))])
        if not before:  # then no folder of ours is there yet
            begun = begun or next((path for path in self.parts.iterdir() if path.is_dir()), None)
        if begun and not before:
            raise ConfigError(f"{begun}: is there, and nobody knows what it was made from", "choose another --output")
        differences = changes(before, facts)
        if differences and begun:
            more = f"; and {len(differences) - TOLD} more" if len(differences) > TOLD else ""
            raise ConfigError(
                f"{self.out}: was begun with other settings: {'; '.join(differences[:TOLD])}{more}",
                f"give the same to go on, or choose another --output, or delete {self.out} to begin anew",
            )
        if differences:
            for old in (self.parts / name.removeprefix(SIZE) for name in before if name.startswith(SIZE)):
                if old.is_dir():
                    shutil.rmtree(old)
            with files.atomic(kept) as file:
                file.write(json.dumps(facts, indent=1, ensure_ascii=False).encode())

    def _begun(self, names: Iterable[str]) -> Path | None:
        """A translation of some shard or block, if there is one."""
        parts = (path for path in self.parts.glob("*/*") if path.name.isdecimal())
        whole = (path for path in map(self.out.joinpath, names) if path.exists())
        return next(chain(parts, whole), None)

    def _tidy(self) -> None:
        """What a kill left behind: halves of joined shards, and parts of whole ones."""
        files.discard_unfinished(self.out)
        for path in self.out.iterdir():
            if path.name in self.shards and (self.parts / path.name).exists():
                shutil.rmtree(self.parts / path.name)


def cut(shard: Path, check: Check | None = None) -> Iterator[Block]:
    """Blocks of so many lines, or fewer where these are long."""
    number = start = size = lines = 0
    first = 1
    try:
        with shard.open("rb") as file:
            for at, raw in enumerate(file, start=1):
                if lines == BLOCK_LINES or (lines and size + len(raw) > BLOCK_BYTES):
                    yield Block(shard, number, start, size, first, lines)
                    number, start, size, first, lines = number + 1, start + size, 0, at, 0
                if check is not None:
                    check(raw.removeprefix(codecs.BOM_UTF8) if at == 1 else raw, f"{shard}:{at}")
                size, lines = size + len(raw), lines + 1
    except OSError as error:
        raise DataError(f"{shard}: {error.strerror}") from None
    if lines:
        yield Block(shard, number, start, size, first, lines)


def read_block(block: Block) -> list[bytes]:
    """Its lines, with their line feeds."""
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
            "the file has changed since the work was begun; choose another --output to begin anew",
        )
    return lines
