"""What only a GPU can show; skipped where there is none."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_models import SMALL
from small_stores import make_examples
from small_tasks import token_loss

from sixfold.cli.main import main
from sixfold.config import TrainingConfig
from sixfold.data.examples import Examples
from sixfold.data.store import Ragged
from sixfold.model.transformer import build
from sixfold.presets import preset
from sixfold.tasks.translation import TranslationTask
from sixfold.training.loop import add_gradients, train
from sixfold.training.memory_probe import fit_tokens, largest_examples
from sixfold.training.state import State

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.filterwarnings("ignore"),  # the compiler's own, which differ from version to version
]
CONFIG = TrainingConfig(steps=10, warmup=1, precision="float32", batch_tokens=65536)
BASE = preset("base").model
TASK = TranslationTask(("", ""))


@pytest.fixture
def little_memory():
    """As if the GPU had 6 GB."""
    share = 6e9 / torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(share)
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)


def random_batch(shape, rows, length, seed=0):
    random = np.random.default_rng(seed)
    lengths = random.integers(length // 2, length, (2, rows))
    ids = [random.integers(4, shape.vocab, int(each.sum())) for each in lengths]
    columns = {
        name: Ragged(*side) for name, side in zip(("source", "target"), zip(ids, lengths, strict=True), strict=True)
    }
    return TASK.collate(Examples(columns, np.arange(rows)), shape)


@pytest.mark.parametrize("norm_position", ["post", "pre"])
def test_compiled_parts_give_the_gradients_of_eager_ones(norm_position):
    shape = replace(SMALL, d_model=64, heads=4, d_ff=128, dropout=0.0, norm_position=norm_position)
    found = []
    for compiled in (False, True):
        state = State(build(shape).cuda().train(), CONFIG, token_loss(CONFIG), True, compiled)
        for seed in range(3):  # three shapes
            batch = random_batch(shape, 16 + 8 * seed, 20 + 7 * seed, seed).to(state.device)
            add_gradients(state, [batch], len(batch.labels), CONFIG)
        found.append([weight.grad for weight in state.weights.values()])
    for eager, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, eager, rtol=1e-3, atol=1e-5)


def test_the_trial_before_the_first_step_finds_what_fits(little_memory):  # noqa: ARG001
    config = replace(CONFIG, precision="bf16", batch_tokens=200_000)
    state = State(build(BASE).cuda(), config, token_loss(config))
    examples, row_lengths = make_examples([(200, 200)]), {"source": 200, "target": 200}
    tokens = fit_tokens(state, examples, row_lengths, lambda batch: TASK.collate(batch, BASE), config)
    assert 1_000 < tokens < 200_000
    batch = TASK.collate(largest_examples(tokens, examples, row_lengths), BASE)
    for metrics in train(state, [[batch]] * 3, BASE, replace(config, steps=3)):
        assert metrics.loss.isfinite()


def test_a_step_that_runs_out_of_memory_is_made_in_pieces(little_memory):  # noqa: ARG001
    config = replace(CONFIG, precision="bf16")
    state = State(build(replace(BASE, dropout=0.0)).cuda(), config, token_loss(config))
    batch = random_batch(BASE, 1500, 120)
    (metrics,) = train(state, [[batch]], BASE, replace(config, steps=1))
    assert metrics.tokens == len(batch.labels)
    assert 9 < metrics.loss.item() < 13
    assert not metrics.skipped


def test_a_bad_step_changes_nothing_on_the_device():
    shape = replace(SMALL, dropout=0.0)
    state = State(build(shape).cuda(), CONFIG, token_loss(CONFIG))
    batch = random_batch(shape, 8, 10)
    steps = train(state, [[batch]] * 3, shape, CONFIG)
    next(steps)
    before = {name: weight.detach().clone() for name, weight in state.weights.items()}
    with torch.no_grad():
        kept = state.weights["encoder.embedding.token.weight"][5:].clone()
        state.weights["encoder.embedding.token.weight"][5:] = float("nan")
    assert next(steps).skipped
    with torch.no_grad():
        state.weights["encoder.embedding.token.weight"][5:] = kept
    assert all(torch.equal(weight, before[name]) for name, weight in state.weights.items())
    assert not next(steps).skipped


def test_a_run_on_the_gpu_ends_in_a_model_and_is_not_run_again(command, capsys):
    for _ in range(2):
        with pytest.raises(SystemExit) as done:
            main(command("--json", "--device", "cuda", "--set", "training.compile=on", steps=20))
        assert done.value.code == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["step"] == 20
