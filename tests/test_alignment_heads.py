"""The aligning heads are read from a model's card, and attention becomes an alignment."""

from dataclasses import replace

import numpy as np
import pytest
from small_models import SMALL

from sixfold.alignment_heads import AligningHeads, align, aligning_heads, word_weights

LAST_LAYER = AligningHeads(1, (0, 1, 2, 3), False)


def test_a_card_keeps_the_heads():
    chosen = AligningHeads(0, (3, 1), True)
    assert aligning_heads(chosen.to_card(), SMALL) == chosen
    assert aligning_heads({}, SMALL) == LAST_LAYER


@pytest.mark.parametrize(
    "entry",
    [
        None,
        "layer 0",
        {},
        {"layer": 0, "heads": [1]},
        {"layer": 2, "heads": [1], "reads_token": True},
        {"layer": 0, "heads": [4], "reads_token": True},
        {"layer": 0, "heads": [], "reads_token": True},
        {"layer": 0, "heads": [1, 1], "reads_token": True},
        {"layer": 0, "heads": ["1"], "reads_token": True},
        {"layer": 0, "heads": 1, "reads_token": True},
        {"layer": True, "heads": [1], "reads_token": True},
        {"layer": 0, "heads": [1], "reads_token": 1},
    ],
    ids=str,
)
def test_an_entry_that_does_not_fit_the_model_is_as_none(entry):
    assert aligning_heads({"alignment": entry}, SMALL) == LAST_LAYER


def test_of_heads_that_share_keys_only_those_of_a_group_can_be_taken():
    shared = replace(SMALL, kv_heads=2)
    for heads in ((0,), (2, 3), (1, 0)):
        assert aligning_heads(AligningHeads(0, heads, False).to_card(), shared).heads == heads
    assert aligning_heads(AligningHeads(0, (1, 2), False).to_card(), shared) == LAST_LAYER


def test_a_token_is_aligned_at_the_step_that_writes_or_reads_it():
    steps = np.eye(4, dtype=np.float32)
    np.testing.assert_array_equal(AligningHeads(0, (0,), False).token_weights(steps), steps[:3])
    np.testing.assert_array_equal(AligningHeads(0, (0,), True).token_weights(steps), steps[1:])


def test_a_source_token_that_all_look_at_is_the_origin_of_none():
    weights = np.array([[0.4, 0.6, 0], [0, 0.6, 0.4], [0, 0.6, 0], [0, 0, 0]], np.float32)
    alignment = align(weights, [True] * 3)
    np.testing.assert_allclose(alignment.sum(axis=1), [1, 1, 1, 0], atol=1e-6)
    assert alignment[:3].argmax(axis=1).tolist() == [0, 2, 1]


def test_a_source_token_without_text_has_no_share():
    alignment = align(np.array([[0.55, 0.05, 0.4]], np.float32), [False, True, True])
    assert alignment[0].argmax() == 2
    assert alignment[0, 0] == 0


def test_words_have_the_mean_of_their_rows_and_the_sum_of_their_columns():
    weights = np.array([[0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [1, 0, 0]], np.float32)
    np.testing.assert_allclose(word_weights(weights, [[0, 1], [2]], [[0], [1, 2]]), [[0.2, 0.8], [1, 0]], atol=1e-6)
