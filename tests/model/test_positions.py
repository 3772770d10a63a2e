import math

import pytest
import torch

from sixfold.model.positions import Rotary, Sinusoid, rotate


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
