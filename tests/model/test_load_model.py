import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_models import SMALL, random_batch, random_model, run, variants

from sixfold.errors import ModelFileError
from sixfold.model import transformer
from sixfold.model.transformer import build, load_model, load_weights, weights_of

KINDS = ("encoder-decoder", "encoder", "decoder")
VARIANTS = variants(pairs=False)


def ties_of(model):
    """Return the names of each weight that has several."""
    names = {}
    for name, weight in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(weight), []).append(name)
    return sorted(sorted(each) for each in names.values() if len(each) > 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VARIANTS)
def test_a_loaded_model_is_one_that_was_built_and_then_filled(name, kind):
    config = replace(VARIANTS[name], kind=kind)
    weights = weights_of(random_model(config))
    built = build(config)
    load_weights(built, weights)
    loaded = load_model(config, weights)
    assert ties_of(loaded) == ties_of(built)
    assert str(loaded) == str(built)
    assert loaded.training == built.training
    for (key, weight), (expected_key, expected) in zip(
        loaded.named_parameters(), built.named_parameters(), strict=True
    ):
        assert key == expected_key
        assert torch.equal(weight, expected)
        assert (weight.dtype, weight.device, weight.requires_grad) == (expected.dtype, expected.device, True)
    batch = random_batch(config)
    with torch.no_grad():
        assert torch.equal(run(loaded.eval(), config, *batch), run(built.eval(), config, *batch))


def test_tied_weights_learn_together():
    model = load_model(SMALL, weights_of(random_model(SMALL)))
    assert model.output.projection.weight is model.encoder.embedding.token.weight
    run(model, SMALL, *random_batch(SMALL)).square().sum().backward()
    assert model.encoder.embedding.token.weight.grad is not None


def test_no_number_is_drawn_at_random(monkeypatch):
    weights = weights_of(random_model(SMALL))
    monkeypatch.setattr(transformer, "initialise", lambda *_: pytest.fail("the weights are initialised in vain"))
    before = torch.random.get_rng_state()
    load_model(SMALL, weights)
    assert torch.equal(torch.random.get_rng_state(), before)


IMPORTS = """
import sys
from small_models import SMALL
from sixfold.model.transformer import build, load_model, weights_of
weights = weights_of(build(SMALL))
before = set(sys.modules)
load_model(SMALL, weights)
print(len(set(sys.modules) - before))
"""


def test_loading_imports_next_to_nothing():
    # On the meta device some of torch's initialisations import hundreds of modules.
    run = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, env={"PYTHONPATH": "src:tests"}
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 5


def test_the_model_has_a_copy_of_the_weights():
    weights = weights_of(random_model(SMALL))
    model = load_model(SMALL, weights)
    for array in weights.values():
        array += 1
    assert not any(np.array_equal(weight, weights[name]) for name, weight in weights_of(model).items())
    for array in weights.values():
        array.flags.writeable = False
    load_model(SMALL, weights)  # torch warns where it shares an array that may not be written to


def test_the_type_is_that_of_the_call_or_torchs_default(double_precision):  # noqa: ARG001
    weights = {name: array.astype(np.float32) for name, array in weights_of(random_model(SMALL)).items()}
    assert {weight.dtype for weight in load_model(SMALL, weights).parameters()} == {torch.float64}
    half = load_model(SMALL, weights, dtype=torch.bfloat16)
    for name, weight in half.named_parameters():
        assert torch.equal(weight, torch.from_numpy(weights[name]).bfloat16())


def test_all_weights_that_do_not_fit_are_named():
    weights = weights_of(random_model(SMALL))
    weights["extra"] = weights.pop("encoder.layers.0.feed_forward.up.bias")
    weights["encoder.embedding.token.weight"] = weights["encoder.embedding.token.weight"][:-1]
    with pytest.raises(ModelFileError) as caught:
        load_model(SMALL, weights, "the file")
    for fault in ("the file: ", "missing encoder.layers.0.feed_forward.up.bias", "unexpected extra", "is (22, 16)"):
        assert fault in str(caught.value)
