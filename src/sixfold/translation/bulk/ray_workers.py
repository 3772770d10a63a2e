"""Blocks of shards translated by Ray Data, on all cores or GPUs of this machine or of a cluster."""

from __future__ import annotations

import importlib
import json
import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sixfold import errors
from sixfold.errors import RequestError, SixfoldError
from sixfold.translation.bulk.shards import Block
from sixfold.translation.bulk.workers import BlockResult, Worker, WorkerOptions

MAX_TASKS = 4096  # of Ray; each is one block or several
CLUSTER_HINT = "is the cluster up? Where it asks for a token, set RAY_AUTH_MODE=token as on its nodes"
OBJECT_STORE_BYTES = 2**27  # of Ray on this machine; besides the options it only holds blocks' numbers and counts


class Actor:
    """A worker as Ray Data calls it: rows that describe blocks in, rows with their counts out.

    A SixfoldError is a row too. Ray would take an exception for a fault of the machine, and would retry without end.
    """

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._worker: Worker | None = None

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, list[str]]:
        rows = (dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True))
        return {"result": [self._translate_block(row) for row in rows]}

    def _translate_block(self, row: dict[str, Any]) -> str:
        numbers = {name: int(value) for name, value in row.items() if name != "shard"}
        try:
            self._worker = self._worker or Worker(self._options)
            return json.dumps(self._worker.translate_block(Block(Path(row["shard"]), **numbers)))
        except SixfoldError as error:
            return json.dumps({"kind": type(error).__name__, "message": str(error), "hint": error.hint})


def translate_with_ray(options: WorkerOptions, blocks: Sequence[Block], workers: int | None) -> Iterator[BlockResult]:
    """Translate blocks with Ray Data; yield results as blocks are finished.

    A worker that dies is replaced, and its blocks are translated again: Ray Data restarts actors and retries their
    tasks without end by default.
    """
    if not blocks:
        return
    with _cluster(workers) as ray:
        resources = ray.cluster_resources()
        if options.device == "auto":
            options = replace(options, device="cuda" if resources.get("GPU", 0) >= 1 else "cpu")
        kind, share = ("GPU", {"num_gpus": 1}) if options.device == "cuda" else ("CPU", {"num_cpus": 1})
        available = int(resources.get(kind, 0))
        if available < 1:
            raise RequestError(f"--workers ray: expected a {kind} in the cluster; found none", "take another --device")
        size = min(available, workers or available, len(blocks))
        rows = [{**block._asdict(), "shard": str(block.shard)} for block in blocks]
        # Results come when a task ends, so tasks should be small; but too many of them would keep Ray busy.
        data = ray.data.from_items(rows, override_num_blocks=min(len(blocks), max(MAX_TASKS, 8 * size)))
        results = data.map_batches(
            Actor, fn_constructor_args=(options,), batch_size=1, batch_format="numpy",
            compute=ray.data.ActorPoolStrategy(size=size), **share,
        )  # fmt: skip
        for batch in results.iter_batches(batch_size=None, batch_format="numpy", prefetch_batches=0):
            yield from map(_block_result, batch["result"])


def _block_result(row: str) -> BlockResult:
    """Return the result in a row, or raise the error in it."""
    values = json.loads(row)
    if isinstance(values, dict):
        raise getattr(errors, values["kind"])(values["message"], values["hint"])
    return BlockResult(*values)


@contextmanager
def _cluster(workers: int | None) -> Iterator[Any]:
    """Connect to the cluster that RAY_ADDRESS names, or start Ray on this machine; yield the module `ray`.

    Ray starts without its dashboard and sends no usage reports.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        ray = importlib.import_module("ray")
        importlib.import_module("ray.data")
    except ModuleNotFoundError:
        raise RequestError("--workers ray: ray is not installed", "pip install 'sixfold[ray]'") from None
    address = os.environ.get("RAY_ADDRESS")
    _check_reachable(address or "")
    arguments: dict[str, Any] = {"address": address} if address else {"address": "local", "num_cpus": workers}
    if not address:
        arguments |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES}
    with redirect_stdout(sys.stderr):  # Ray prints there that a worker has died
        try:
            with _discard_stderr():
                ray.init(**arguments, logging_level=logging.ERROR, log_to_driver=False)
        except ConnectionError as error:
            raise RequestError(f"--workers ray: RAY_ADDRESS={address}: {error}", CLUSTER_HINT) from None
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        try:
            yield ray
        finally:
            ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise RequestError if nothing answers at an address; Ray itself would try for minutes without a message."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError as error:
            reason = error.strerror or str(error)
            raise RequestError(f"--workers ray: RAY_ADDRESS={address}: {reason}", CLUSTER_HINT) from None


@contextmanager
def _discard_stderr() -> Iterator[None]:
    """Discard what Ray's core writes to stderr past Python's streams: a message that its log level was set."""
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)
