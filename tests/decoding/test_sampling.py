import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from sixfold.decoding.constraints import penalise
from sixfold.decoding.options import GREEDY, SamplingOptions
from sixfold.decoding.sampling import distribution, draw, restrict, sampler


def random_logits(seed, rows=4, vocab=50):
    return 3 * torch.randn(rows, vocab, generator=torch.Generator().manual_seed(seed))


def peer_distribution(logits, options):
    """Return the distribution of transformers, whose processors act in this order."""
    warpers = [TemperatureLogitsWarper(options.temperature)]
    if options.top_k:
        warpers.append(TopKLogitsWarper(options.top_k))
    if options.top_p < 1:
        warpers.append(TopPLogitsWarper(options.top_p))
    if options.min_p > 0:
        warpers.append(MinPLogitsWarper(options.min_p))
    for warper in warpers:
        logits = warper(None, logits)
    return logits.softmax(-1)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6), temperature=st.sampled_from([0.3, 0.7, 1.0, 1.7]), top_k=st.integers(0, 60),
    top_p=st.sampled_from([0.05, 0.5, 0.9, 0.99, 1.0]), min_p=st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0]),
)  # fmt: skip
def test_the_distribution_is_that_of_transformers(seed, temperature, top_k, top_p, min_p):
    options = SamplingOptions(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    logits = random_logits(seed)
    torch.testing.assert_close(distribution(logits, options), peer_distribution(logits, options))


@pytest.mark.parametrize("penalty", [0.5, 1.0, 1.3, 5.0])
def test_the_repetition_penalty_is_that_of_transformers(penalty):
    logits = random_logits(5, rows=3)
    texts = [[4, 4, 9, 31, 4], [30, 9, 49], [7, 7]]
    penalised = torch.stack([penalise(row, text, penalty) for row, text in zip(logits, texts, strict=True)])
    peer = RepetitionPenaltyLogitsProcessor(penalty)
    for row, text in enumerate(texts):
        expected = peer(torch.tensor([text]), logits[row : row + 1].clone())
        torch.testing.assert_close(penalised[row : row + 1], expected)
    assert penalty == 1 or not torch.equal(penalised, logits)


def test_limits_keep_the_likeliest_token_and_cut_the_tail():
    scores = torch.tensor([[0.5, 0.25, 0.15, 0.1]]).log()
    is_allowed = lambda **cut: (restrict(scores, **cut) > -math.inf)[0].tolist()  # noqa: E731
    assert is_allowed(top_k=2) == [True, True, False, False]
    assert is_allowed(top_p=0.5) == [True, False, False, False]
    assert is_allowed(top_p=0.6) == [True, True, False, False]
    assert is_allowed(top_p=1e-9) == [True, False, False, False]
    assert is_allowed(top_k=9) == [True] * 4
    assert is_allowed(top_k=3, top_p=0.95) == [True, True, True, False]
    assert is_allowed(min_p=0.4) == [True, True, False, False]
    assert is_allowed(min_p=1.0) == [True, False, False, False]


def test_tokens_are_drawn_with_their_probabilities():
    numbers = torch.rand(20000, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for probabilities in ([0.5, 0.3, 0.0, 0.2], [0.0, 1e-3, 0.999, 0.0]):
        expected = torch.tensor(probabilities)
        drawn = draw(expected.expand(20000, 4), numbers).bincount(minlength=4) / 20000
        torch.testing.assert_close(drawn, expected, atol=0.02, rtol=0)
        assert ((drawn == 0) == (expected == 0)).all()


def test_a_number_at_the_border_takes_the_token_after_it_and_never_one_without_probability():
    probabilities = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]])
    take = lambda number: int(draw(probabilities, torch.tensor([number], dtype=torch.float64)))  # noqa: E731
    assert [take(number) for number in (0.0, 0.499999, 0.5, 1 - 2**-53)] == [1, 1, 3, 3]


def draw_tokens(options, sentences, steps=30):
    """Return the tokens that each of these sentences draws, a row each."""
    choose = sampler(options)
    logits = random_logits(3, rows=1).expand(len(sentences), -1)
    return torch.stack([choose(logits, torch.tensor(sentences)) for _ in range(steps)], dim=1).tolist()


def test_the_same_seed_draws_the_same_tokens_and_another_seed_others():
    first, second = (draw_tokens(SamplingOptions(seed=seed), [0]) for seed in (1, 2))
    assert first == draw_tokens(SamplingOptions(seed=1), [0])
    assert first != second


def test_a_sentence_draws_the_same_tokens_whatever_else_is_in_its_batch():
    (alone,) = draw_tokens(SamplingOptions(), [0])
    together = draw_tokens(SamplingOptions(), [4, 7, 0])
    assert together[2] == alone
    assert len(set(map(tuple, together))) == 3


def test_a_temperature_of_0_takes_the_likeliest_token():
    logits = random_logits(2)
    for options in (GREEDY, SamplingOptions(temperature=1e-4)):
        assert torch.equal(sampler(options)(logits, torch.arange(4)), logits.argmax(-1))
