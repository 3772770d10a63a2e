import numpy as np
import pytest
from small_models import SMALL, in_memory, random_model

from sixfold.errors import RequestError
from sixfold.explorer.forward import causal_mask, forward, log_softmax, sinusoids, softmax


@pytest.fixture(scope="module")
def model():
    return in_memory(SMALL, random_model(SMALL))


SOURCE, TARGET = np.array([[5, 6, 2]]), np.array([[1, 7]])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"source": SOURCE}, "target: expected one for an encoder-decoder model"),
        ({"source": SOURCE[0], "target": TARGET}, r"source: expected whole numbers, .* got int64 of shape \(3,\)"),
        ({"source": SOURCE, "target": TARGET.astype(float)}, "target: expected whole numbers"),
        ({"source": SOURCE, "target": np.zeros((1, 0), int)}, r"target: expected whole numbers.*\(1, 0\)"),
        ({"source": SOURCE, "target": np.array([[1, 23]])}, "target: expected ids from 0 to 22; got 1 to 23"),
        ({"source": -SOURCE, "target": TARGET}, "source: expected ids from 0 to 22; got -6 to -2"),
        ({"source": SOURCE, "target": TARGET, "padding": TARGET > 0}, r"padding: expected .* source, \(1, 3\)"),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit_the_model_are_refused(model, inputs, message):
    with pytest.raises(RequestError, match=message):
        forward(model, **inputs)


def test_a_learned_table_is_a_limit():
    from dataclasses import replace

    config = replace(SMALL, kind="decoder", positions="learned", max_length=4)
    with pytest.raises(RequestError, match=r"expected at most 4 \(model\.max_length\); got 5"):
        forward(in_memory(config, random_model(config)), target=np.ones((1, 5), int))


def test_softmax_of_a_masked_row_is_zero():
    rows = softmax(np.array([[-np.inf, -np.inf], [0.0, -np.inf], [1e4, 1e4]], np.float32))
    np.testing.assert_allclose(rows, [[0, 0], [1, 0], [0.5, 0.5]])


def test_log_softmax_is_finite_where_softmax_underflows():
    np.testing.assert_allclose(log_softmax(np.array([[0, -500, -np.inf]], np.float32)), [[0, -500, -np.inf]])


def test_the_causal_mask_is_a_triangle():
    np.testing.assert_array_equal(causal_mask(3)[0, 0], [[1, 0, 0], [1, 1, 0], [1, 1, 1]])


def test_sinusoids_begin_with_zero_and_one():
    np.testing.assert_allclose(sinusoids(np.arange(3), 4, "interleaved")[0], [0, 1, 0, 1])
