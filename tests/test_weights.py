import math

import pytest
from small_models import SMALL, variants

from sixfold.model.transformer import build
from sixfold.presets import PRESETS, preset
from sixfold.weights import PARTS, cost, part_of, shapes


@pytest.mark.parametrize("kind", ["encoder-decoder", "encoder", "decoder"])
def test_the_list_of_weights_is_what_the_model_has(kind):
    from dataclasses import replace

    for name, config in variants().items():
        model = build(replace(config, kind=kind))
        actual = {weight: tuple(parameter.shape) for weight, parameter in model.named_parameters()}
        assert shapes(replace(config, kind=kind)) == actual, name


def test_published_models_have_their_published_sizes():
    def size(name):
        return sum(math.prod(shape) for shape in shapes(preset(name).model).values())

    assert size("gpt2") == 124_439_808
    assert size("llama-7b") == 6_738_415_616
    assert size("bert-base") == 109_514_298  # BertForMaskedLM, which has no pooler


def test_every_weight_belongs_to_a_part():
    assert {part_of(name) for preset_name in PRESETS for name in shapes(preset(preset_name).model)} == set(PARTS)


def test_two_thirds_of_a_large_model_are_feed_forward():
    sizes = {name: math.prod(shape) for name, shape in shapes(preset("llama-7b").model).items()}
    feed_forward = sum(size for name, size in sizes.items() if part_of(name) == "feed-forward")
    assert 0.62 < feed_forward / sum(sizes.values()) < 0.70


def test_the_cost_of_a_token_is_two_operations_a_weight_and_four_a_key():
    dense = cost(SMALL, 0)
    d, ff, vocab = SMALL.d_model, SMALL.d_ff, SMALL.vocab
    assert dense.encoder == 2 * 2 * (4 * d * d + 2 * d * ff)
    assert dense.decoder == 2 * 2 * (8 * d * d + 2 * d * ff)
    assert dense.output == 2 * d * vocab
    assert cost(SMALL, 10).encoder - dense.encoder == 2 * 4 * 10 * d
    assert cost(SMALL, 10).decoder - dense.decoder == 2 * 4 * (10 + 5) * d
