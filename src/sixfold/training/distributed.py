"""Many processes that train as one: who leads, what is summed over all, and how a model is shared out among them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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
# Whoever waits this long for a step waits for a process that hangs; one that has died is noticed at once.
STEP = timedelta(minutes=10)
PREPARING = timedelta(days=1)  # while the first cleans and tokenises


class Group:
    """The processes of a run. All of them call the same methods in the same order; alone, they cost nothing."""

    def __init__(self, rank: int = 0, ranks: int = 1) -> None:
        self.rank, self.ranks = rank, ranks
        self.patient = dist.new_group(backend="gloo", timeout=PREPARING) if ranks > 1 else None

    @property
    def leads(self) -> bool:
        """Exactly one writes files and speaks."""
        return self.rank == 0

    def total(self, tensor: Tensor) -> Tensor:
        """Summed over all, in place."""
        if self.ranks > 1:
            dist.all_reduce(tensor)
        return tensor

    def any(self, flag: bool) -> bool:
        return bool(self.total(torch.tensor(float(flag))))

    def meet(self) -> None:
        if self.ranks > 1:
            dist.barrier(group=self.patient)

    def lead(self, work: Callable[[], Result]) -> Result:
        """The first does it; all get what it returns, or end when it complains."""
        if self.ranks == 1:
            return work()
        complaint: SixfoldError | None = None
        answer: list[Any] = [None, True]
        if self.leads:
            try:
                answer[0] = work()
            except SixfoldError as error:
                complaint, answer[1] = error, False
        dist.broadcast_object_list(answer, group=self.patient)
        if complaint is not None:
            raise complaint
        if not answer[1]:
            sys.exit(2)  # the first says why
        return answer[0]

    def first(
        self, work: Callable[[], Result], pack: Callable[[Result], Any], unpack: Callable[[Any], Result]
    ) -> Result:
        """The leader does the work while the others wait; they get the same from what it has packed for them."""
        made: list[Result] = []

        def lead() -> Any:
            made.append(work())
            return pack(made[0]) if self.ranks > 1 else None

        packed = self.lead(lead)
        return made[0] if made else unpack(packed)

    def deal(self, items: Sequence[Result]) -> list[Result]:
        """This one's share, for `collect` to put together again."""
        return list(items[self.rank :: self.ranks])

    def collect(self, share: list[Result]) -> list[Result]:
        """What was made of all shares, in the order of the items."""
        if self.ranks == 1:
            return share
        shares: list[Any] = [None] * self.ranks
        dist.all_gather_object(shares, share, group=self.patient)
        whole: list[Any] = [None] * sum(map(len, shares))
        for rank, each in enumerate(shares):
            whole[rank :: self.ranks] = each
        return whole


ALONE = Group()


@contextmanager
def joined(device: torch.device) -> Iterator[Group]:
    """The group that torchrun's environment describes, or nobody else."""
    if int(os.environ.get("WORLD_SIZE", 1)) == 1:
        yield ALONE
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
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=STEP)
    rank = dist.get_rank()
    try:
        yield Group(rank, dist.get_world_size())
    except RuntimeError as error:
        if not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        raise SixfoldError(
            f"process {rank} of this run has lost another, which ended or cannot be reached",
            "what was wrong stands in its own messages; the same command goes on from the last checkpoint",
        ) from None
    finally:
        dist.destroy_process_group()


def share_out(module: nn.Module, group: Group, sharded: bool, device: torch.device) -> nn.Module:
    """Make `module` average its gradients over all: each holds all of it, or where `sharded`, a part of each weight."""
    if group.ranks == 1:
        return module
    if sharded:
        for part in module.modules():
            if isinstance(part, Layer):
                if part.cross_attention is not None:
                    fully_shard(part.cross_attention)
                    for method in ("remember", "look_at"):  # it is not called through forward
                        register_fsdp_forward_method(part.cross_attention, method)
                fully_shard(part)
        fully_shard(module)
        return module
    return DistributedDataParallel(module, device_ids=[device.index] if device.type == "cuda" else None)


def waiting(module: nn.Module, last: bool) -> Any:
    """Gradients of all but the last micro-batch of a step are kept to oneself."""
    if isinstance(module, FSDPModule):
        module.set_requires_gradient_sync(last)
    if isinstance(module, DistributedDataParallel) and not last:
        return module.no_sync()
    return nullcontext()


def whole(tensor: Tensor) -> Tensor:
    """Put together from the parts that all have; all must ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def set_whole(tensor: Tensor, value: Tensor) -> None:
    """The inverse: each takes its part."""
    if isinstance(tensor, DTensor):
        value = distribute_tensor(value.to(tensor.device), tensor.device_mesh, tensor.placements)
    tensor.copy_(value)
