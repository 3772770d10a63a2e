import pytest
import torch

from sixfold.model.attention import COMPATIBILITIES, Attention, AttentionShape, causal_mask

KINDS = list(COMPATIBILITIES)


def compatibility(kind, heads=2, d_head=8):
    module = COMPATIBILITIES[kind](heads, d_head)
    for weight in module.parameters():
        torch.nn.init.normal_(weight)
    return module


def weights_of(kind, query, key, mask=None, causal=False):
    """Attention with values that are unit vectors returns its own weights."""
    keys = key.size(2)
    values = torch.eye(keys).expand(*key.shape[:2], keys, keys)
    return compatibility(kind, query.size(1), query.size(3))(query, key, values, mask, causal)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_sum_to_one(kind):
    weights = weights_of(kind, torch.randn(2, 2, 5, 8), torch.randn(2, 2, 7, 8))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5))
    assert (weights >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_masked_keys_get_nothing_and_the_rest_sums_to_one(kind):
    mask = torch.tensor([[True, True, False, True], [True, False, False, False]])[:, None, None]
    weights = weights_of(kind, torch.randn(2, 2, 3, 8), torch.randn(2, 2, 4, 8), mask)
    assert (weights[~mask.expand_as(weights)] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_masks_combine(kind):
    torch.manual_seed(0)
    query, key = torch.randn(2, 2, 4, 8), torch.randn(2, 2, 4, 8)
    padding = torch.tensor([[True, True, True, True], [True, True, False, False]])[:, None, None]
    torch.manual_seed(1)
    weights = weights_of(kind, query, key, padding, causal=True)
    torch.manual_seed(1)
    by_hand = weights_of(kind, query, key, padding & causal_mask(4, 4))
    torch.testing.assert_close(weights, by_hand)
    assert (weights[1, :, :, 2:] == 0).all()
    assert (weights[0, :, 0, 1:] == 0).all()


@pytest.mark.parametrize("kind", ["scaled-dot", "cosine"])
@pytest.mark.parametrize("d_head", [8, 32, 128, 512])
def test_the_variance_of_scores_stays_near_one(kind, d_head):
    """Read off the weights: log-softmax gives the scores back up to a constant a row."""
    torch.manual_seed(0)
    scores = weights_of(kind, torch.randn(1, 1, 60, d_head), torch.randn(1, 1, 300, d_head)).log()
    assert 0.85 < (scores - scores.mean(-1, keepdim=True)).var() < 1.15


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_may_look_at_nothing_is_zeros_and_harms_no_gradient(kind):
    query, key, value = (torch.randn(2, 2, 3, 8, requires_grad=True) for _ in range(3))
    mask = torch.tensor([[False, False, False], [True, True, False]])[:, None, None]
    out = compatibility(kind)(query, key, value, mask, False)
    assert (out[0] == 0).all()
    out.sum().backward()
    assert all(torch.isfinite(each.grad).all() for each in (query, key, value))


def test_scaled_dot_uses_that_scale():
    query, key = torch.randn(1, 1, 3, 16), torch.randn(1, 1, 4, 16)
    expected = (query @ key.mT / 4).softmax(-1)
    torch.testing.assert_close(weights_of("scaled-dot", query, key), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_grouped_queries_are_repeated_keys(kind):
    torch.manual_seed(0)
    module = compatibility(kind, heads=4)
    query, key, value = torch.randn(2, 4, 3, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    repeated = module(query, key.repeat_interleave(2, 1), value.repeat_interleave(2, 1), None, False)
    torch.testing.assert_close(module(query, key, value, None, False), repeated)


def test_cross_attention_over_itself_is_self_attention():
    attention = Attention(AttentionShape(16, 4, 2, 4), "scaled-dot", (True, True))
    x = torch.randn(2, 5, 16)
    torch.testing.assert_close(attention(x, None, False), attention.cross_attend(x, attention.project_memory(x, None)))
