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

TASKS = 4096  # that Ray is given at most; each is one block or several
HINT = "is the cluster up? Where it asks for a token, set RAY_AUTH_MODE=token as on its nodes"
STORE = 2**27  # bytes of Ray's store of objects on this machine: beside the order only places and counts travel


class Actor:
    """A worker as Ray Data calls it: places of blocks in, counts out. A mistake of the user's is a row too.

    Ray would take an exception for a fault of the machine's, and would try again without end.
    """

    def __init__(self, order: WorkerOptions) -> None:
        self._order = order
        self._worker: Worker | None = None

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, list[str]]:
        rows = (dict(zip(batch, values, strict=True)) for values in zip(*batch.values(), strict=True))
        return {"done": [self._carry_out(row) for row in rows]}

    def _carry_out(self, row: dict[str, Any]) -> str:
        numbers = {name: int(value) for name, value in row.items() if name != "shard"}
        try:
            self._worker = self._worker or Worker(self._order)
            return json.dumps(self._worker.carry_out(Block(Path(row["shard"]), **numbers)))
        except SixfoldError as error:
            return json.dumps({"kind": type(error).__name__, "message": str(error), "hint": error.hint})


def translate_with_ray(order: WorkerOptions, blocks: Sequence[Block], workers: int | None) -> Iterator[BlockResult]:
    """As they are finished. A worker that dies is replaced, and what it had in hand is done again: Ray Data restarts
    actors and retries their tasks without end unless it is told otherwise.
    """
    if not blocks:
        return
    with _cluster(workers) as ray:
        there = ray.cluster_resources()
        if order.device == "auto":
            order = replace(order, device="cuda" if there.get("GPU", 0) >= 1 else "cpu")
        kind, share = ("GPU", {"num_gpus": 1}) if order.device == "cuda" else ("CPU", {"num_cpus": 1})
        most = int(there.get(kind, 0))
        if most < 1:
            raise RequestError(f"--workers ray: expected a {kind} in the cluster; found none", "take another --device")
        size = min(most, workers or most, len(blocks))
        rows = [{**block._asdict(), "shard": str(block.shard)} for block in blocks]
        # What a task did is seen when it ends, so many small ones; but Ray should not be kept busy by them.
        data = ray.data.from_items(rows, override_num_blocks=min(len(blocks), max(TASKS, 8 * size)))
        said = data.map_batches(
            Actor, fn_constructor_args=(order,), batch_size=1, batch_format="numpy",
            compute=ray.data.ActorPoolStrategy(size=size), **share,
        )  # fmt: skip
        for batch in said.iter_batches(batch_size=None, batch_format="numpy", prefetch_batches=0):
            yield from map(_done, batch["done"])


def _done(row: str) -> BlockResult:
    values = json.loads(row)
    if isinstance(values, dict):
        raise getattr(errors, values["kind"])(values["message"], values["hint"])
    return BlockResult(*values)


@contextmanager
def _cluster(workers: int | None) -> Iterator[Any]:
    """The cluster that RAY_ADDRESS names, or this machine; without dashboard and without reports to Ray's makers."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        ray = importlib.import_module("ray")
        importlib.import_module("ray.data")
    except ModuleNotFoundError:
        raise RequestError("--workers ray: ray is not installed", "pip install 'sixfold[ray]'") from None
    address = os.environ.get("RAY_ADDRESS")
    _reach(address or "")
    where: dict[str, Any] = {"address": address} if address else {"address": "local", "num_cpus": workers}
    if not address:
        where |= {"include_dashboard": False, "object_store_memory": STORE}
    with redirect_stdout(sys.stderr):  # where Ray says that a worker has died
        try:
            with _silent():
                ray.init(**where, logging_level=logging.ERROR, log_to_driver=False)
        except ConnectionError as error:
            raise RequestError(f"--workers ray: RAY_ADDRESS={address}: {error}", HINT) from None
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        try:
            yield ray
        finally:
            ray.shutdown()


def _reach(address: str) -> None:
    """Ray would try for minutes, and say nothing."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except OSError as error:
            what = error.strerror or str(error)
            raise RequestError(f"--workers ray: RAY_ADDRESS={address}: {what}", HINT) from None


@contextmanager
def _silent() -> Iterator[None]:
    """Ray's core writes past Python's streams: here, that its log level was set."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
