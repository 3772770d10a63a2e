"""The best ways through the hypotheses of several sentences are those that trying them all would find."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from sixfold.decoding.options import Hypothesis
from sixfold.translation.decode import ways_through

HYPOTHESES = st.builds(Hypothesis, st.lists(st.integers(4, 9), max_size=5), st.floats(-9, 0))
SENTENCES = st.lists(st.lists(HYPOTHESES, min_size=1, max_size=3), max_size=4)


def mean(way, sentences):
    weights = [len(its[0].tokens) + 1 for its in sentences]
    return sum(each.score * weight for each, weight in zip(way, weights, strict=True)) / max(1, sum(weights))


@given(SENTENCES, st.integers(1, 5))
def test_the_best_ways_are_found(sentences, count):
    sentences = [sorted(its, key=lambda each: -each.score)[:count] for its in sentences]
    expected = sorted((mean(way, sentences) for way in product(*sentences)), reverse=True)[:count]
    found = ways_through(sentences, count)
    assert len(found) == len(expected)
    for (way, total), best in zip(found, expected, strict=True):
        assert abs(total - best) < 1e-9
        assert abs(mean(way, sentences) - total) < 1e-9


def test_a_text_without_sentences_has_one_way():
    assert ways_through([], 3) == [([], 0.0)]


def test_a_book_is_no_trouble():
    some = [[Hypothesis([5], -0.1), Hypothesis([6], -0.2)]] * 20_000
    way, total = ways_through(some, 2)[1]
    assert len(way) == 20_000
    assert [each.tokens for each in way].count([6]) == 1
    assert -0.101 < total < -0.1
