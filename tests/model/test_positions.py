import math

import pytest
import torch

from sixfold.model.positions import AngleScaling, Rotary, Sinusoid, rotate


def sinusoids(length, d_model, layout="interleaved"):
    return Sinusoid(d_model, layout, 0)(torch.arange(length)[None])[0].double()


def test_sinusoids_are_the_papers_formula():
    table = sinusoids(50, 16)
    for position in (0, 1, 7, 49):
        for pair in range(8):
            angle = position / 10000 ** (2 * pair / 16)
            assert table[position, 2 * pair].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * pair + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


@pytest.mark.parametrize("offset", [1, 5, 30])
def test_an_offset_is_one_linear_map_for_all_positions(offset):
    # sin(a + b) = sin a cos b + cos a sin b: a turn of each pair by an angle that only the offset decides.
    turns = []
    for pair in range(8):
        angle = offset / 10000 ** (2 * pair / 16)
        turns.append(torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]).double())
    linear = torch.block_diag(*turns)
    table = sinusoids(100, 16)
    torch.testing.assert_close(table[: 100 - offset] @ linear.T, table[offset:], atol=1e-6, rtol=0)


def test_inner_products_depend_on_the_distance_only():
    table = sinusoids(60, 32)
    products = table @ table.T
    for distance in (0, 1, 10):
        along = products.diagonal(distance)
        assert along.max() - along.min() < 1e-4


def test_layouts_hold_the_same_numbers():
    interleaved, halves = sinusoids(20, 8), sinusoids(20, 8, "halves")
    torch.testing.assert_close(halves, torch.cat((interleaved[:, 0::2], interleaved[:, 1::2]), dim=1))


def test_far_positions_stay_exact():
    encoding = Sinusoid(8, "interleaved", 0)(torch.tensor([[123456]]))[0, 0]
    assert encoding[0].item() == pytest.approx(math.sin(123456), abs=1e-6)


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_rotated_products_depend_on_the_distance_only(layout):
    rotary = Rotary(8, layout, 100.0)
    query, key = torch.randn(2, 1, 1, 1, 8).expand(2, 1, 1, 30, 8)
    rotation = rotary(torch.arange(30)[None])
    scores = (rotate(query, rotation) @ rotate(key, rotation).mT)[0, 0]
    for distance in (-9, 0, 4):
        along = scores.diagonal(distance)
        assert (along.max() - along.min()).item() < 1e-4
    assert (scores[0, 0] - scores[0, 20]).abs() > 1e-3


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_rotation_keeps_lengths_and_leaves_position_zero(layout):
    x = torch.randn(2, 3, 5, 8)
    turned = rotate(x, Rotary(8, layout, 10000.0)(torch.arange(5)[None]))
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    torch.testing.assert_close(turned[:, :, 0], x[:, :, 0])


def angle_at(scaling, position=7):
    rotation = Rotary(8, "halves", 100.0, scaling)(torch.tensor([[position]]))
    return torch.atan2(rotation.sin, rotation.cos)[0, 0, 0, :4].double()


def test_llama_3_slows_the_pairs_that_turn_seldom_in_the_original_length_and_leaves_the_others():
    lengths = [2 * math.pi * 100.0 ** (2 * pair / 8) for pair in range(4)]  # positions of a full turn
    scaling = AngleScaling("llama3", factor=8.0, low=1.0, high=4.0, original_length=30)
    factors = []
    for length in lengths:
        turns = 30 / length
        share = (turns - 1) / (4 - 1)
        factors.append(1.0 if turns > 4 else 1 / 8 if turns < 1 else (1 - share) / 8 + share)
    assert factors[0] == 1.0
    assert factors[-1] == 1 / 8
    assert 1 / 8 < factors[1] < 1
    expected = torch.tensor(
        [7 * 2 * math.pi / length * factor for length, factor in zip(lengths, factors, strict=True)]
    )
    torch.testing.assert_close(angle_at(scaling).sin(), expected.double().sin(), rtol=0, atol=1e-6)


def test_linear_scaling_is_the_angle_of_a_nearer_position():
    torch.testing.assert_close(angle_at(AngleScaling("linear", 3.5)), angle_at(AngleScaling(), 2), rtol=0, atol=1e-6)
