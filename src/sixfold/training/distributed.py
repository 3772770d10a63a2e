"""Several processes that train as one: their group, its collective operations, and how a model is distributed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from sixfold.errors import ConfigError, SixfoldError
from sixfold.model.layers import Layer

Result = TypeVar("Result")
# After this time in a step another process is taken to hang; one that has died is noticed at once.
STEP_TIMEOUT = timedelta(minutes=10)
PREPARATION_TIMEOUT = timedelta(days=1)  # while the leader cleans and tokenises


class Group:
    """The processes of a run. All of them call the same methods in the same order; a single process pays nothing."""

    def __init__(self, rank: int = 0, ranks: int = 1) -> None:
        self.rank, self.ranks = rank, ranks
        self.slow_group = dist.new_group(backend="gloo", timeout=PREPARATION_TIMEOUT) if ranks > 1 else None

    @property
    def is_leader(self) -> bool:
        """Return whether this is the one process that writes files and prints messages."""
        return self.rank == 0

    def all_reduce(self, tensor: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if self.ranks > 1:
            dist.all_reduce(tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        """Return whether the flag is set in any process."""
        return bool(self.all_reduce(torch.tensor(float(flag))))

    def barrier(self) -> None:
        """Wait until all processes have come here."""
        if self.ranks > 1:
            dist.barrier(group=self.slow_group)

    def on_leader(self, work: Callable[[], Result]) -> Result:
        """Do the work in the leader alone. All get its result; if it raises an error for the user, all end."""
        if self.ranks == 1:
            return work()
        error_of_leader: SixfoldError | None = None
        result: list[Any] = [None, True]
        if self.is_leader:
            try:
                result[0] = work()
            except SixfoldError as error:
                error_of_leader, result[1] = error, False
        dist.broadcast_object_list(result, group=self.slow_group)
        if error_of_leader is not None:
            raise error_of_leader
        if not result[1]:
            sys.exit(2)  # the leader prints the error
        return result[0]

    def leader_first(
        self, work: Callable[[], Result], pack: Callable[[Result], Any], unpack: Callable[[Any], Result]
    ) -> Result:
        """Do the work in the leader while the others wait; they unpack what the leader has packed for them."""
        results: list[Result] = []

        def lead() -> Any:
            results.append(work())
            return pack(results[0]) if self.ranks > 1 else None

        packed = self.on_leader(lead)
        return results[0] if results else unpack(packed)

    def scatter(self, items: Sequence[Result]) -> list[Result]:
        """Return this process's share of the items: every `ranks`-th one."""
        return list(items[self.rank :: self.ranks])

    def gather(self, share: list[Result]) -> list[Result]:
        """Return the results of all processes' shares, in the order of the items before `scatter`."""
        if self.ranks == 1:
            return share
        shares: list[Any] = [None] * self.ranks
        dist.all_gather_object(shares, share, group=self.slow_group)
        gathered: list[Any] = [None] * sum(map(len, shares))
        for rank, results in enumerate(shares):
            gathered[rank :: self.ranks] = results
        return gathered


SINGLE_PROCESS = Group()


@contextmanager
def process_group(device: torch.device) -> Iterator[Group]:
    """Join the group that torchrun's environment variables describe; without them this process is alone."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield SINGLE_PROCESS
        return
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ConfigError(f"WORLD_SIZE is set, {', '.join(missing)} not", "start it with torchrun")
    if device.type == "cuda":
        local = int(os.environ.get("LOCAL_RANK", 0))
        if local >= torch.cuda.device_count():
            raise ConfigError(
                f"expected a GPU for each process of this machine; it has {torch.cuda.device_count()}",
                "lower --nproc-per-node",
            )
        torch.cuda.set_device(local)
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=STEP_TIMEOUT)
    rank = dist.get_rank()
    try:
        yield Group(rank, dist.get_world_size())
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        raise SixfoldError(
            f"process {rank} of this run has lost another, which ended or cannot be reached",
            "its own messages say what was wrong; the same command goes on from the last checkpoint",
        ) from None
    finally:
        dist.destroy_process_group()


def distribute(module: nn.Module, group: Group, sharded: bool, device: torch.device) -> nn.Module:
    """Make a module average its gradients over all processes.

    Each process holds the whole module (DDP) or, where `sharded`, a part of every weight (FSDP2).
    """
    if group.ranks == 1:
        return module
    if sharded:
        for part in module.modules():
            if isinstance(part, Layer):
                if part.cross_attention is not None:
                    fully_shard(part.cross_attention)
                    for method in ("project_memory", "cross_attend"):  # it is not called through forward
                        register_fsdp_forward_method(part.cross_attention, method)
                fully_shard(part)
        fully_shard(module)
        return module
    return DistributedDataParallel(module, device_ids=[device.index] if device.type == "cuda" else None)


def gradient_sync(module: nn.Module, enabled: bool) -> AbstractContextManager[None]:
    """Return a context in which gradients are exchanged only if `enabled`: for the last micro-batch of a step."""
    if isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(enabled)
    if isinstance(module, DistributedDataParallel) and not enabled:
        return module.no_sync()
    return nullcontext()


def full_tensor(tensor: Tensor) -> Tensor:
    """Return a sharded tensor as a whole; all processes must call this."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def set_full_tensor(tensor: Tensor, value: Tensor) -> None:
    """Set a tensor from its whole value; each process takes its part."""
    if isinstance(tensor, DTensor):
        value = distribute_tensor(value.to(tensor.device), tensor.device_mesh, tensor.placements)
    tensor.copy_(value)
