"""Training, engines and plain calls share one model: how they compute is passed with a call and stored in no module."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_models import SMALL, random_batch, random_model, variants
from small_tasks import token_loss

import sixfold
from sixfold.config import TrainingConfig
from sixfold.decoding.options import SearchOptions
from sixfold.engines.gpu import GpuEngine
from sixfold.model.attention import ScaledDot
from sixfold.model.positions import Sinusoid
from sixfold.model.transformer import Execution, evaluation_mode, load_model, weights_of
from sixfold.tasks.translation_batches import pair_batch
from sixfold.training.loop import train
from sixfold.training.state import State

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]
SINGLE = variants(pairs=False)
SOURCES = [[5, 6, 7, 8, 2], [9, 2], [4, 5, 4, 5, 4, 2]]
TARGETS = [[7, 8], [], [4, 5, 6, 9, 8]]
SEARCH = SearchOptions(beam=3, n_best=2, max_length=9)
PAIRS = [([5, 6, 7], [8, 9]), ([4], [5, 6, 7, 8]), ([9, 10, 11, 12], [4])]
DROPOUT = replace(SMALL, dropout=0.1)


def attributes_of(model):
    """Return the identity of all that each module holds: class, methods, submodules, weights, hooks and mode."""
    identities = {}
    for name, module in model.named_modules(remove_duplicate=False):
        identities[name, "class"] = id(type(module))
        for key, value in vars(module).items():
            identities[name, key] = {k: id(v) for k, v in value.items()} if isinstance(value, dict) else id(value)
    return identities


def copied_weights(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def call_everything(engine):
    """Return the results of each kind of call, as they can be compared."""
    results = [engine.decode(SOURCES, replace(SEARCH, beam=beam, n_best=1)) for beam in (1, 3)]
    results.append(engine.decode(SOURCES, replace(SEARCH, no_repeat=2), TARGETS))
    results.append(engine.alternatives(SOURCES[0], [9], SEARCH))
    return [*results, engine.score(SOURCES, TARGETS), [each.tolist() for each in engine.align(SOURCES, TARGETS)]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ["as is", "learned positions", "rotary", "additive"])
def test_an_engine_changes_nothing_in_its_model(name, training, device):
    model = random_model(SINGLE[name]).to(device).train(training)
    attributes, weights = attributes_of(model), copied_weights(model)
    call_everything(GpuEngine(model, SINGLE[name]))
    assert attributes_of(model) == attributes
    assert all(torch.equal(weight, weights[key]) for key, weight in model.named_parameters())


@pytest.mark.parametrize("recompute", [False, True])
def test_training_changes_only_the_values_of_the_weights_and_the_mode(recompute):
    config = TrainingConfig(steps=2, warmup=1, recompute=recompute)
    model = random_model(DROPOUT).train()
    attributes, weights = attributes_of(model), copied_weights(model)
    for _ in train(State(model, config, token_loss(config)), [[pair_batch(PAIRS, DROPOUT)]] * 2, DROPOUT, config):
        pass
    assert attributes_of(model) == attributes
    assert not all(torch.equal(weight, weights[key]) for key, weight in model.named_parameters())


@pytest.mark.parametrize("recompute", [False, True])
def test_one_model_trains_decodes_and_runs_in_turns(recompute):
    config = TrainingConfig(steps=3, warmup=1, learning_rate=1e-2, recompute=recompute)
    steps = [[pair_batch(PAIRS, DROPOUT)]] * 3
    reference = State(random_model(DROPOUT), config, token_loss(config))
    expected = [metrics.loss.item() for metrics in train(reference, steps, DROPOUT, config)]
    model = random_model(DROPOUT)
    engine, losses, batch = GpuEngine(model, DROPOUT), [], random_batch(DROPOUT)
    for metrics in train(State(model, config, token_loss(config)), steps, DROPOUT, config):
        losses.append(metrics.loss.item())
        assert model.training
        copy = load_model(DROPOUT, weights_of(model)).eval()
        with evaluation_mode(model), torch.no_grad():
            assert torch.equal(model(*batch), copy(*batch))
        assert call_everything(engine) == call_everything(GpuEngine(copy, DROPOUT))
    assert losses == expected
    for weight, expected_weight in zip(model.parameters(), reference.model.parameters(), strict=True):
        assert torch.equal(weight, expected_weight)


def test_evaluation_mode_is_left_as_it_was_entered_also_after_an_error():
    model = random_model(DROPOUT).train()
    model.encoder.eval()
    modes = [module.training for module in model.modules()]

    def fail_inside():
        with evaluation_mode(model):
            assert not any(module.training for module in model.modules())
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail_inside()
    assert [module.training for module in model.modules()] == modes


@pytest.mark.parametrize("name", SINGLE)
def test_recomputed_layers_have_the_same_gradients(name):
    gradients = []
    for recompute in (False, True):
        model = random_model(replace(SINGLE[name], dropout=0.1)).train()
        torch.manual_seed(1)
        model.hidden(*random_batch(SINGLE[name]), execution=Execution(recompute=recompute)).square().sum().backward()
        gradients.append([weight.grad for weight in model.parameters() if weight.grad is not None])
    assert all(torch.equal(*pair) for pair in zip(*gradients, strict=True))


def test_an_attention_function_and_position_vectors_are_used_in_place_of_the_modules():
    model = random_model(SMALL)
    batch = random_batch(SMALL)
    calls = []

    def attend(*arguments):
        calls.append(arguments)
        return ScaledDot()(*arguments)

    vectors = Sinusoid(SMALL.d_model, SMALL.position_layout, SMALL.position_offset)(torch.arange(9)[None])[0]
    with torch.no_grad():
        expected = model.hidden(*batch)
        assert torch.equal(model.hidden(*batch, execution=Execution(attend, vectors)), expected)
        assert len(calls) == SMALL.encoder_layers + 2 * SMALL.decoder_layers
        changed = model.hidden(*batch, execution=Execution(position_vectors=vectors.flip(0)))
    assert not torch.allclose(changed, expected)


REWRITES = re.compile(
    r"\.forward = |\.compatibility = |(?<!self)\.position = |\.register_forward|\.register_module|\.add_module"
    r"|setattr\(|(?<!torch)(?<!\bre)\.compile\("
)


@pytest.mark.parametrize("folder", ["engines", "training", "translation"])
def test_no_source_outside_of_the_model_rewrites_a_module(folder):
    """LoRA and FSDP, which add weights to a model or distribute them, use torch's own functions for that."""
    for path in sorted((Path(sixfold.__file__).parent / folder).rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        rewrites = [(number, line) for number, line in enumerate(lines, 1) if REWRITES.search(line)]
        assert not rewrites, path


COMPILE = """
from dataclasses import replace
import torch
from small_models import SMALL, random_batch, random_model
from sixfold.model.transformer import Execution, call_module

def gradients(layers, recompute, compiled):
    graphs = []
    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward
    torch._dynamo.reset()
    model = random_model(replace(SMALL, encoder_layers=layers, decoder_layers=layers))
    call = torch.compile(call_module, dynamic=False, backend=count) if compiled else call_module
    execution = Execution(recompute=recompute, call=call)
    model.hidden(*random_batch(SMALL), execution=execution).square().sum().backward()
    return [weight.grad for weight in model.parameters()], len(graphs)

for recompute in (False, True):
    compiled, few = gradients(2, recompute, True)
    plain, _ = gradients(2, recompute, False)
    for pair in zip(compiled, plain, strict=True):
        torch.testing.assert_close(*pair, rtol=1e-4, atol=1e-5)
    _, many = gradients(5, recompute, True)
    assert 0 < few == many, (few, many)
print("shared")
"""


def test_compiled_calls_are_shared_by_the_layers_of_a_stack():
    # In a process of its own: the shape checks of this one are wrappers that a compiler cannot look through.
    run = subprocess.run(
        [sys.executable, "-c", COMPILE], capture_output=True, text=True, env={"PYTHONPATH": "src:tests"}
    )
    assert run.stdout == "shared\n", run.stderr
