"""`sixfold translate` of many files: block by block, in this process or by Ray, restartable whatever was killed."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sixfold import modelfile
from sixfold.cli.translate import Wish
from sixfold.cli.translate_lines import progress
from sixfold.errors import ConfigError, DataError, RequestError
from sixfold.text.encodings import SAMPLE, check_utf8
from sixfold.translation.bulk.ray_workers import translate_with_ray
from sixfold.translation.bulk.shards import Block, ShardJob
from sixfold.translation.bulk.workers import BlockResult, JobSummary, WorkerOptions, translate_in_threads
from sixfold.translation.documents.document import format_of
from sixfold.translation.loading import choose_device

RECORDS = ".jsonl"
WORKERS = ("ray",)


def translate_shards(wish: Wish, shards: Sequence[Path], workers: str | None, field: str) -> None:
    """Every shard into a file of its name in the folder --output."""
    out = check_shards(wish, shards, workers)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    plan = ShardJob(shards, out)
    order = WorkerOptions(
        plan.out, tuple((model.resolve(), modelfile.load(model, verify=False).checksum) for model in wish.models),
        wish.source, wish.target, wish.options, wish.compute, wish.device or "auto", wish.glossary, wish.memory,
        field, frozenset(each.name for each in shards if each.suffix.lower() == RECORDS and wish.form is None),
        wish.strict,
    )  # fmt: skip
    tally, began = JobSummary(), time.perf_counter()
    try:
        with plan.claim(order.settings()):
            blocks = plan.remaining_blocks(order.line_checks())
            size = sum(block.size for block in blocks)
            with progress(size, sys.stderr.isatty(), with_rate=True) as advance:
                for done in carried_out(order, blocks, workers, wish.threads):
                    tally.add(plan, done)
                    advance(done.size, done.lines)
    except KeyboardInterrupt:
        print(f"stopped after {tally.lines} lines; the same command goes on", file=sys.stderr)
        raise
    seconds = time.perf_counter() - began
    print(f"{tally.lines:,} lines in {seconds:.1f} s ({tally.lines / seconds:,.0f}/s): {plan.out}", file=sys.stderr)
    for line in tally.warning_lines():
        print(f"warning: {line}", file=sys.stderr)


def check_shards(wish: Wish, shards: Sequence[Path], workers: str | None) -> Path:
    """Options that do not go with shards, and files that are none; the folder for the translations."""
    if workers is not None and workers not in WORKERS:
        raise ConfigError(f"--workers: expected ray, or left out; got {workers!r}")
    if wish.output is None:
        raise RequestError("--output: expected a folder for the translations of several files", "name it")
    if wish.as_json or wish.details or wish.columns or wish.options.n_best > 1:
        raise RequestError(
            "several files: expected none of --json, --details, --n-best and --columns",
            "the lines of .jsonl files become JSON by themselves; translate a table alone",
        )
    for shard in shards:
        form = format_of(shard, wish.form)
        if form is not None:
            raise RequestError(
                f"{shard}: a document of the format {form}: expected a file of lines",
                "translate it alone, or add --format text to translate its lines",
            )
        if not shard.is_file():
            raise DataError(f"{shard}: expected a file that can be read twice; got something else", "name a file")
        with shard.open("rb") as file:
            check_utf8(file.read(SAMPLE), str(shard))
    return wish.output


def carried_out(
    order: WorkerOptions, blocks: Sequence[Block], workers: str | None, threads: int | None
) -> Iterator[BlockResult]:
    if workers == "ray":
        return translate_with_ray(order, blocks, threads)
    if choose_device(order.device) != "cpu":
        return translate_in_threads(order, blocks, 1)
    from sixfold.engines.cpu import cores

    return translate_in_threads(order, blocks, min(threads or cores(), max(len(blocks), 1)))
