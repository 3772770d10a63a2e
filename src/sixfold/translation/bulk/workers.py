"""Workers that translate blocks of shards, one thread each, and threads of them in this process.

A worker decodes with one thread, so that a block has the same translation wherever it is translated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple, Self

from sixfold import files
from sixfold.config import Compute
from sixfold.errors import ModelFileError
from sixfold.translation.bulk.json_lines import text_of, with_translation
from sixfold.translation.bulk.shards import PARTS_FOLDER, Block, LineCheck, ShardJob, read_block
from sixfold.translation.line_translator import (
    LineTranslator,
    NoticeCount,
    add_notice_count,
    byte_order_mark,
    check_strict,
    warning_lines,
)
from sixfold.translation.loading import Device, read_model
from sixfold.translation.request import TranslationRequest
from sixfold.translation.translator import Translator


@dataclass(frozen=True)
class WorkerOptions:
    """Everything that a worker needs, on this machine or on another."""

    out: Path
    models: tuple[tuple[Path, str], ...]  # files and their checksums
    request: TranslationRequest
    compute: Compute
    device: Device
    field: str = "text"  # of JSON lines
    records: frozenset[str] = frozenset()  # the names of the shards whose lines are JSON
    strict: bool = False  # a line in a language that no model reads is an error

    def settings(self) -> dict[str, Any]:
        """Return the settings that must stay the same when an interrupted job continues.

        Device and number of workers are not among them: a job may continue on another machine. `strict` changes no
        translation, so a job may continue without it.
        """
        return {
            "model": [checksum for _, checksum in self.models], **self.request.settings(), "compute": self.compute,
            "field": self.field, "records": sorted(self.records),
        }  # fmt: skip

    def line_checks(self) -> dict[str, LineCheck]:
        """Return a check for the lines of each shard of JSON lines."""
        return dict.fromkeys(self.records, lambda raw, where: text_of(raw.decode(errors="replace"), self.field, where))


class BlockResult(NamedTuple):
    """The counts of a translated block."""

    shard: str
    number: int
    size: int
    lines: int
    notices: Mapping[str, NoticeCount]
    invalid_bytes: int = 0
    first_invalid_line: int = 0


class Worker:
    """Loads the models once, then translates blocks and writes a file for each."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        models = [read_model(path) for path, _ in options.models]
        for model, (path, checksum) in zip(models, options.models, strict=True):
            if model.checksum != checksum:
                raise ModelFileError(f"{path}: is not the same here as where the work was begun", "copy it again")
        # One thread: how sentences are grouped depends on the threads, and a shortlist depends on the group.
        self._translator = Translator(models, options.device, 1, options.compute)
        request = options.request
        self._translator.check_languages(request.source, request.target, request.pivot)

    def translate_block(self, block: Block) -> BlockResult:
        """Translate a block and write its file, unless a worker that died had written it already.

        A block that `strict` refuses leaves no file, so that the next start refuses it too.
        """
        options, name = self._options, block.shard.name
        part = options.out / PARTS_FOLDER / name / str(block.number)
        if part.exists() or (options.out / name).exists():
            return BlockResult(name, block.number, block.size, block.lines, {})
        lines = LineTranslator(self._translator, options.request, str(block.shard))
        translate = self._translate_records if name in options.records else self._translate_lines
        text = "".join(translate(block, lines))
        if options.strict:
            check_strict(lines.notices)
        with files.atomic_write(part) as file:
            file.write(text.encode())
        return BlockResult(
            name, block.number, block.size, block.lines, lines.notices, lines.invalid_bytes, lines.first_invalid_line
        )

    def _translate_lines(self, block: Block, lines: LineTranslator) -> Iterator[str]:
        raw_lines = read_block(block)
        texts = [
            lines.decode_line(raw.removesuffix(b"\n"), number)
            for number, raw in enumerate(raw_lines, start=block.first)
        ]
        yield byte_order_mark(raw_lines[0], block.first) if raw_lines else ""
        for raw, translation in zip(raw_lines, lines.translate(texts, block.first), strict=True):
            yield translation.text + ("\n" if raw.endswith(b"\n") else "")

    def _translate_records(self, block: Block, lines: LineTranslator) -> Iterator[str]:
        raw_lines = read_block(block)
        records = [lines.decode_line(raw, number) for number, raw in enumerate(raw_lines, start=block.first)]
        texts = [
            text_of(record, self._options.field, f"{block.shard}:{number}")
            for number, record in enumerate(records, start=block.first)
        ]
        yield byte_order_mark(raw_lines[0], block.first) if raw_lines else ""
        for record, translation in zip(records, lines.translate(texts, block.first), strict=True):
            kinds = list(dict.fromkeys(notice.kind for notice in translation.warnings))
            yield with_translation(record, translation.text, kinds)

    def close(self) -> None:
        """Release the models."""
        self._translator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def translate_in_threads(options: WorkerOptions, blocks: Iterable[Block], threads: int) -> Iterator[BlockResult]:
    """Translate blocks in threads of this process, each with its own worker; yield results as blocks are finished."""
    with ExitStack() as stack:
        idle: SimpleQueue[Worker] = SimpleQueue()
        for _ in range(threads):
            idle.put(stack.enter_context(Worker(options)))

        def work(block: Block) -> BlockResult:
            worker = idle.get()
            try:
                return worker.translate_block(block)
            finally:
                idle.put(worker)

        pool = stack.enter_context(ThreadPoolExecutor(threads))
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        remaining = iter(blocks)
        running: set[Future[BlockResult]] = {pool.submit(work, block) for block in islice(remaining, 2 * threads)}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(work, block) for block in islice(remaining, len(finished))}
            yield from (future.result() for future in finished)


@dataclass
class JobSummary:
    """The counts of all blocks that were translated, for the messages at the end."""

    lines: int = 0
    invalid_bytes: int = 0
    first_invalid_place: str = ""  # file:line
    notices: dict[str, NoticeCount] = field(default_factory=dict)

    def add(self, job: ShardJob, result: BlockResult) -> None:
        """Add the counts of a block, and note in the job that it is finished."""
        self.lines += result.lines
        for kind, count in result.notices.items():
            add_notice_count(self.notices, kind, count)
        if result.invalid_bytes and not self.invalid_bytes:
            self.first_invalid_place = f"{job.shards[result.shard]}:{result.first_invalid_line}"
        self.invalid_bytes += result.invalid_bytes
        job.finish(result.shard, result.number)

    def warning_lines(self) -> Iterator[str]:
        """Yield one line for people about each kind of notice, with the place of its first occurrence."""
        yield from warning_lines(self.invalid_bytes, self.first_invalid_place, self.notices)
