from dataclasses import replace

import numpy as np
import pytest
from small_models import SMALL, in_memory, random_batch, random_model, variants

from sixfold.errors import RequestError
from sixfold.explorer.forward import forward
from sixfold.explorer.incremental import IncrementalDecoder

SINGLE = variants(pairs=False)


def full_and_incremental(config, rows=3):
    """Return targets, the arrays of one pass over them, and a decoder that takes them one by one."""
    model = in_memory(config, random_model(config))
    sources, targets, padding = (each.numpy() for each in random_batch(config, rows))
    if config.kind == "decoder":
        return targets, forward(model, None, targets), IncrementalDecoder(model)
    arrays = forward(model, sources, targets, padding)
    return targets, arrays, IncrementalDecoder(model, arrays["encoder.output"], padding)


@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder"])
@pytest.mark.parametrize("name", SINGLE)
def test_step_by_step_equals_the_whole_pass(name, kind):
    targets, arrays, decoder = full_and_incremental(replace(SINGLE[name], kind=kind))
    for index, tokens in enumerate(targets.T):
        np.testing.assert_allclose(decoder.step(tokens), arrays["logits"][:, index], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["as is", "rotary", "grouped queries"])
def test_the_cache_follows_the_rows(name):
    targets, arrays, decoder = full_and_incremental(SINGLE[name])
    decoder.step(targets[:, 0])
    decoder.step(targets[:, 1])
    rows = np.array([2, 0, 0, 1])
    decoder.reorder(rows)
    np.testing.assert_allclose(decoder.step(targets[rows, 2]), arrays["logits"][rows, 2], rtol=1e-4, atol=1e-4)


def test_a_learned_table_is_a_limit_of_steps_too():
    config = replace(SMALL, kind="decoder", positions="learned", max_length=2)
    decoder = IncrementalDecoder(in_memory(config, random_model(config)))
    for _ in range(2):
        decoder.step(np.array([5]))
    with pytest.raises(RequestError, match="expected at most 2"):
        decoder.step(np.array([5]))


@pytest.mark.parametrize("changes", [{}, {"tie_output": False, "output_bias": True}])
def test_candidates_have_their_logits_and_others_none(changes):
    config = replace(SMALL, kind="decoder", **changes)
    model, tokens = in_memory(config, random_model(config)), np.array([5, 7])
    candidates = np.array([2, 9, 11])
    logits, all_logits = (
        IncrementalDecoder(model, candidates=candidates).step(tokens),
        IncrementalDecoder(model).step(tokens),
    )
    np.testing.assert_allclose(logits[:, candidates], all_logits[:, candidates], rtol=1e-5)
    assert np.isneginf(np.delete(logits, candidates, axis=1)).all()


def test_weights_are_dequantised_once():
    decoder = IncrementalDecoder(in_memory(SMALL, random_model(SMALL)), np.zeros((1, 3, SMALL.d_model), np.float32))
    decoder.step(np.array([1]))
    misses = decoder.weight.cache_info().misses
    decoder.step(np.array([5]))
    assert decoder.weight.cache_info().misses == misses > 0
