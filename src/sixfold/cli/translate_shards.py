"""`sixfold translate` for many files: block by block, in this process or with Ray, and restartable at any time."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from sixfold.cli.translate_lines import progress
from sixfold.cli.translate_options import CommandOptions
from sixfold.errors import ConfigError, DataError, RequestError
from sixfold.text.encodings import SAMPLE_BYTES, check_utf8
from sixfold.translation.bulk.ray_workers import translate_with_ray
from sixfold.translation.bulk.shards import Block, ShardJob
from sixfold.translation.bulk.workers import BlockResult, JobSummary, WorkerOptions, translate_in_threads
from sixfold.translation.documents.formats import format_of
from sixfold.translation.loading import checksum_of, choose_device

RECORD_SUFFIX = ".jsonl"
WORKERS = ("ray",)


def translate_shards(options: CommandOptions, shards: Sequence[Path], workers: str | None, field: str) -> None:
    """Translate every shard into a file of the same name in the folder --output."""
    out = check_shards(options, shards, workers)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    job = ShardJob(shards, out)
    worker_options = WorkerOptions(
        job.out, tuple((model.resolve(), checksum_of(model)) for model in options.models),
        options.request, options.compute, options.device or "auto", field,
        frozenset(each.name for each in shards if each.suffix.lower() == RECORD_SUFFIX and options.form is None),
        options.strict,
    )  # fmt: skip
    summary, start = JobSummary(), time.perf_counter()
    try:
        with job.claim(worker_options.settings()):
            blocks = job.remaining_blocks(worker_options.line_checks())
            size = sum(block.size for block in blocks)
            with progress(size, sys.stderr.isatty(), with_rate=True) as advance:
                for result in run_workers(worker_options, blocks, workers, options.threads):
                    summary.add(job, result)
                    advance(result.size, result.lines)
    except KeyboardInterrupt:
        print(f"stopped after {summary.lines} lines; run the same command to continue", file=sys.stderr)
        raise
    seconds = time.perf_counter() - start
    print(f"{summary.lines:,} lines in {seconds:.1f} s ({summary.lines / seconds:,.0f}/s): {job.out}", file=sys.stderr)
    for line in summary.warning_lines():
        print(f"warning: {line}", file=sys.stderr)


def check_shards(options: CommandOptions, shards: Sequence[Path], workers: str | None) -> Path:
    """Return the output folder, or raise an error for options and files that do not go with several files."""
    if workers is not None and workers not in WORKERS:
        raise ConfigError(f"--workers: expected ray or nothing; got {workers!r}")
    if options.output is None:
        raise RequestError("--output: expected a folder for the translations of several files", "name it")
    if options.as_json or options.details or options.document.chosen() or options.request.options.n_best > 1:
        raise RequestError(
            "several files: expected none of --json, --details, --n-best and --columns",
            "lines of .jsonl files are written as JSON anyway; translate a table by itself",
        )
    for shard in shards:
        form = format_of(shard, options.form)
        if form is not None:
            raise RequestError(
                f"{shard}: expected a file of lines; got a document of the format {form}",
                "translate it by itself, or add --format text to translate its lines",
            )
        if not shard.is_file():
            kind = "a folder" if shard.is_dir() else "something else"
            raise DataError(f"{shard}: expected a regular file; got {kind}", "name the files in it")
        with shard.open("rb") as file:
            check_utf8(file.read(SAMPLE_BYTES), str(shard))
    return options.output


def run_workers(
    worker_options: WorkerOptions, blocks: Sequence[Block], workers: str | None, threads: int | None
) -> Iterator[BlockResult]:
    if workers == "ray":
        return translate_with_ray(worker_options, blocks, threads)
    if choose_device(worker_options.device) != "cpu":
        return translate_in_threads(worker_options, blocks, 1)
    from sixfold.engines.cpu import cores

    return translate_in_threads(worker_options, blocks, min(threads or cores(), max(len(blocks), 1)))
