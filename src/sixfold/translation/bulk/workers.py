"""Blocks of shards translated, one thread each, so that every block gives the same bytes wherever it is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple, Self

from sixfold import files, modelfile
from sixfold.config import Compute
from sixfold.errors import ModelFileError
from sixfold.translation.bulk.json_lines import text_of, with_translation
from sixfold.translation.bulk.shards import PARTS, Block, Check, ShardJob, read_block
from sixfold.translation.glossary import Glossary
from sixfold.translation.line_translator import (
    LineTranslator,
    NoticeCount,
    add_notice_count,
    byte_order_mark,
    check_strict,
    warning_lines,
)
from sixfold.translation.loading import Device
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.translator import Translator


@dataclass(frozen=True)
class WorkerOptions:
    """All that a worker must know, on whatever machine it is."""

    out: Path
    models: tuple[tuple[Path, str], ...]  # with their checksums
    source: str | None
    target: str | None
    options: TranslateOptions
    compute: Compute
    device: Device
    glossary: Glossary | None = None
    memory: TranslationMemory | None = None
    field: str = "text"
    records: frozenset[str] = frozenset()  # names of the shards whose lines are JSON
    strict: bool = False  # a line in a language that is not read is an error

    def settings(self) -> dict[str, Any]:
        """What a later start must agree with. Neither device nor number of workers: work may go on elsewhere.

        Nor `strict`: it changes no translation, and what it refused may be translated without it.
        """
        return {
            "model": [checksum for _, checksum in self.models], "from": self.source, "to": self.target,
            **asdict(self.options), "compute": self.compute, "field": self.field, "records": sorted(self.records),
            "glossary": [list(term) for term in self.glossary.terms] if self.glossary else None,
            "memory": self.memory.digest() if self.memory else None,
        }  # fmt: skip

    def line_checks(self) -> dict[str, Check]:
        """For the lines of each shard that may be wrong."""
        return dict.fromkeys(self.records, lambda raw, where: text_of(raw.decode(errors="replace"), self.field, where))


class BlockResult(NamedTuple):
    """What became of a block."""

    shard: str
    number: int
    size: int
    lines: int
    notices: Mapping[str, NoticeCount]
    invalid_bytes: int = 0
    first_invalid_line: int = 0


class Worker:
    """Opens the models once, and writes the parts of the blocks that it is given."""

    def __init__(self, order: WorkerOptions) -> None:
        self.order = order
        files = [modelfile.load(path) for path, _ in order.models]
        for file, (path, checksum) in zip(files, order.models, strict=True):
            if file.checksum != checksum:
                raise ModelFileError(f"{path}: is not the same here as where the work was begun", "copy it anew")
        # How sentences are grouped depends on the threads, and a shortlist on the group.
        self._translator = Translator(files, order.device, 1, order.compute)
        self._translator.check_languages(order.source, order.target)

    def carry_out(self, block: Block) -> BlockResult:
        """Translate a block and write its part, unless a worker that died had written it already.

        A block that a strict order refuses leaves no part behind, so that the next start refuses it too.
        """
        name = block.shard.name
        part = self.order.out / PARTS / name / str(block.number)
        if part.exists() or (self.order.out / name).exists():
            return BlockResult(name, block.number, block.size, block.lines, {})
        order = self.order
        lines = LineTranslator(
            self._translator, order.source, order.target, order.options, order.glossary, order.memory
        )
        lines.name = str(block.shard)
        written = "".join(self._records(block, lines) if name in order.records else self._plain(block, lines))
        if order.strict:
            check_strict(lines.notices)
        with files.atomic(part) as file:
            file.write(written.encode())
        return BlockResult(
            name, block.number, block.size, block.lines, lines.notices, lines.invalid_bytes, lines.first_invalid_line
        )

    def _plain(self, block: Block, lines: LineTranslator) -> Iterator[str]:
        raw = read_block(block)
        texts = [
            lines.decode_line(each.removesuffix(b"\n"), number) for number, each in enumerate(raw, start=block.first)
        ]
        yield byte_order_mark(raw[0], block.first) if raw else ""
        for each, said in zip(raw, lines.translate(texts, block.first), strict=True):
            yield said.text + ("\n" if each.endswith(b"\n") else "")

    def _records(self, block: Block, lines: LineTranslator) -> Iterator[str]:
        raw = read_block(block)
        shown = [lines.decode_line(each, number) for number, each in enumerate(raw, start=block.first)]
        texts = [
            text_of(line, self.order.field, f"{block.shard}:{number}")
            for number, line in enumerate(shown, start=block.first)
        ]
        yield byte_order_mark(raw[0], block.first) if raw else ""
        for line, said in zip(shown, lines.translate(texts, block.first), strict=True):
            yield with_translation(line, said.text, list(dict.fromkeys(notice.kind for notice in said.warnings)))

    def close(self) -> None:
        self._translator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def translate_in_threads(order: WorkerOptions, blocks: Iterable[Block], threads: int) -> Iterator[BlockResult]:
    """In this process, each thread with models of its own."""
    with ExitStack() as stack:
        idle: SimpleQueue[Worker] = SimpleQueue()
        for _ in range(threads):
            idle.put(stack.enter_context(Worker(order)))

        def work(block: Block) -> BlockResult:
            worker = idle.get()
            try:
                return worker.carry_out(block)
            finally:
                idle.put(worker)

        pool = stack.enter_context(ThreadPoolExecutor(threads))
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        waiting = iter(blocks)
        running: set[Future[BlockResult]] = {pool.submit(work, block) for block in islice(waiting, 2 * threads)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {pool.submit(work, block) for block in islice(waiting, len(done))}
            yield from (each.result() for each in done)


@dataclass
class JobSummary:
    """What is to be told at the end."""

    lines: int = 0
    invalid_bytes: int = 0
    first_invalid_place: str = ""
    notices: dict[str, NoticeCount] = field(default_factory=dict)

    def add(self, plan: ShardJob, done: BlockResult) -> None:
        """And let the plan know."""
        self.lines += done.lines
        for kind, found in done.notices.items():
            add_notice_count(self.notices, kind, found)
        if done.invalid_bytes and not self.invalid_bytes:
            self.first_invalid_place = f"{plan.shards[done.shard]}:{done.first_invalid_line}"
        self.invalid_bytes += done.invalid_bytes
        plan.finish(done.shard, done.number)

    def warning_lines(self) -> Iterator[str]:
        yield from warning_lines(self.invalid_bytes, self.first_invalid_place, self.notices)
