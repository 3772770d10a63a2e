from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import OPTIONS, SMALL, in_memory, random_batch, random_model, run, variants

from sixfold.explorer.forward import forward

KINDS = ("encoder-decoder", "encoder", "decoder")
VARIANTS = variants()


def trace_of(config, model, sources, targets, padding):
    file = in_memory(config, model)
    if config.kind == "encoder-decoder":
        return forward(file, sources.numpy(), targets.numpy(), padding.numpy())
    if config.kind == "encoder":
        return forward(file, sources.numpy(), padding=padding.numpy())
    return forward(file, target=targets.numpy())


def check(config, seed=1):
    model = random_model(config, seed)
    batch = random_batch(config, seed=seed)
    with torch.no_grad():
        expected = run(model, config, *batch).numpy()
    trace = trace_of(config, model, *batch)
    np.testing.assert_allclose(trace["logits"], expected, rtol=0, atol=1e-4)
    return trace


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", VARIANTS)
def test_the_numpy_pass_equals_the_model(name, kind):
    check(replace(VARIANTS[name], kind=kind))


@settings(max_examples=100, deadline=None)
@given(
    changes=st.lists(st.sampled_from(list(OPTIONS)), min_size=3, max_size=8, unique=True),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 1000),
)
def test_the_numpy_pass_equals_the_model_under_many_options_at_once(changes, kind, seed):
    merged = {}
    for name in changes:
        merged |= OPTIONS[name]
    check(replace(SMALL, kind=kind, **merged), seed)


def test_every_step_of_the_paper_is_there_by_name():
    trace = check(SMALL)
    for name in ("token", "position", "sum"):
        assert f"encoder.embedding.{name}" in trace
    steps = (
        "query",
        "key",
        "value",
        "scores",
        "masked_scores",
        "weights",
        "heads",
        "concatenation",
        "output",
        "residual",
    )
    for layer in range(2):
        for attention in ("encoder.layers.{}.self", "decoder.layers.{}.self", "decoder.layers.{}.cross"):
            assert all(f"{attention.format(layer)}_attention.{step}" in trace for step in steps)
            assert f"{attention.format(layer)}_attention_norm" in trace
        for step in ("hidden", "down", "residual"):
            assert f"encoder.layers.{layer}.feed_forward.{step}" in trace
    assert list(trace)[-2:] == ["logits", "probabilities"]
    assert all(array.dtype == np.float32 for array in trace.values())


def test_all_attention_rows_sum_to_one_and_hidden_keys_get_nothing():
    sources, targets, padding = random_batch(SMALL)
    trace = trace_of(SMALL, random_model(SMALL), sources, targets, padding)
    for name, weights in trace.items():
        if name.endswith("attention.weights"):
            np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
            if "cross" in name or "encoder" in name:
                hidden = np.broadcast_to(~padding.numpy()[:, None, None], weights.shape)
                assert (weights[hidden] == 0).all()
            else:
                assert (np.triu(weights, 1) == 0).all()
    np.testing.assert_allclose(trace["probabilities"].sum(-1), 1, atol=1e-5)
