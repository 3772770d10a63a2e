"""Train for a few steps on ragged batches in several processes, and write the weights to files.

Usage: python steps_of_ranks.py PROCESSES FILE FILE FILE FILE
"""

import os
import sys
from dataclasses import replace
from itertools import islice

import torch
import torch._dynamo  # optimisers do, and it takes seconds
from safetensors.torch import save_file
from small_models import SMALL
from small_stores import make_documents, make_examples
from small_tasks import token_loss
from torch.distributed import TCPStore
from torch.multiprocessing import start_processes

from sixfold.config import TrainingConfig
from sixfold.data.loader import BatchPlan, Loader
from sixfold.model.transformer import build
from sixfold.tasks.causal_lm import CausalTask
from sixfold.tasks.translation import TranslationTask
from sixfold.training.distributed import full_tensor, process_group
from sixfold.training.loop import train
from sixfold.training.state import State

KINDS = ({}, {"sharded": True}, {"packed": True}, {"is_text": True})  # of each file
STEPS = 8  # the corpus has seven, and the last of them has three micro-batches instead of four
SHAPE = replace(
    SMALL, dropout=0.2, vocab=60, norm_position="pre", bias=False
)  # a bias of keys learns from rounding alone


def make(group, sharded=False, packed=False, is_text=False):
    """Return the trained weights, and the number of tokens of each step in this process."""
    config = TrainingConfig(steps=STEPS, warmup=2, learning_rate=1e-2, sharded=sharded)
    plan = BatchPlan(130, 4, 1, group.rank, group.ranks, packed=packed)
    if is_text:
        shape, task = replace(SHAPE, kind="decoder"), CausalTask(loss=token_loss(config), row_tokens=40)
        examples = make_documents([n % 30 + 1 for n in range(141)], 40, vocab=SHAPE.vocab)
    else:
        shape, task = SHAPE, TranslationTask(("", ""), loss=token_loss(config))
        examples = make_examples([(n % 30 + 1, n % 23 + 2) for n in range(141)])
    loader = Loader(examples, plan, lambda batch: task.collate(batch, shape))
    # In double precision: AdamW divides by the size of a gradient, and so magnifies what rounding did to a small one.
    torch.set_default_dtype(torch.float64)
    try:
        state = State(build(shape), config, task.loss, group=group)
        token_counts = [metrics.tokens for metrics in islice(train(state, loader, shape, config), STEPS)]
    finally:
        torch.set_default_dtype(torch.float32)
    return {name: full_tensor(weight.detach()).clone() for name, weight in state.weights.items()}, token_counts


def work(rank, ranks, port, files):
    """Train in one process. Its environment is that of torchrun, which hosts the rendezvous store itself."""
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in variables.items()} | {"TORCHELASTIC_USE_AGENT_STORE": "True"}
    with process_group(torch.device("cpu")) as group:
        for path, options in zip(files, KINDS, strict=True):
            weights, _ = make(group, **options)
            if group.is_leader:
                save_file(weights, path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    ranks = int(sys.argv[1])
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    # Forked: to import torch takes each of them longer than all else.
    start_processes(work, (ranks, store.port, sys.argv[2:]), ranks, start_method="fork")
