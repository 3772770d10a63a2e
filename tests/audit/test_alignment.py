"""The words of a corpus distinguish translations from unrelated texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_pairs import dictionary, pairs

from sixfold.audit.alignment import Lexicon, Separation, Side, area_under_curve, unrelated_pairs
from sixfold.audit.text_arrays import TextArrays


def side(texts):
    return Side.of(TextArrays.of(texts))


def words(text):
    """Return the hashes of the words of a text."""
    return set(side([text]).words.tolist())


@pytest.fixture(scope="module")
def lexicon():
    learned_from = pairs(3000)
    return Lexicon.learn(side([source for source, _ in learned_from]), side([target for _, target in learned_from]))


def test_translations_score_better_than_unrelated_pairs(lexicon):
    other_pairs = pairs(1000, seed=2)
    sources, targets = [source for source, _ in other_pairs], [target for _, target in other_pairs]
    lengths = TextArrays.of(sources).lengths(), TextArrays.of(targets).lengths()
    others = unrelated_pairs(*lengths)
    good = lexicon.score(side(sources), side(targets))
    bad = lexicon.score(side(sources), side(targets).take(others))
    assert area_under_curve(good, bad) > 0.99
    assert np.abs(lengths[1] - lengths[1][others]).mean() < np.abs(lengths[1] - np.roll(lengths[1], 1)).mean()


def test_a_corpus_of_unrelated_texts_flags_nothing():
    sources, targets = [source for source, _ in pairs(2000)], [target for _, target in pairs(2000, seed=2)]
    learned_from = Lexicon.learn(side(sources[:1000]), side(targets[:1000]))
    corpus_scores = learned_from.score(side(sources[1000:]), side(targets[1000:]))
    unrelated = learned_from.score(side(sources[1000:]), side(targets[1000:][::-1]))
    separation = Separation.between(corpus_scores, unrelated)
    assert separation.threshold == -np.inf
    assert 0.4 < area_under_curve(corpus_scores, unrelated) < 0.6


def test_the_threshold_is_between_two_distributions():
    generator = np.random.default_rng(1)
    unrelated = generator.normal(-2, 0.5, 5000)
    corpus_scores = np.concatenate([generator.normal(2, 0.8, 4750), generator.normal(-2, 0.5, 250)])
    separation = Separation.between(corpus_scores, unrelated)
    assert -1.2 < separation.threshold < 0.5
    assert separation.share == pytest.approx(0.05, abs=0.01)
    assert separation.area == pytest.approx(0.975, abs=0.005)  # a twentieth are unrelated, and win half of the time


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("distance", [2.5, 3.0, 4.0])  # in standard deviations
def test_most_unrelated_pairs_and_few_others_are_below_the_threshold(share, distance):
    """This holds for several shares of unrelated pairs, and where the scores of both kinds overlap."""
    generator = np.random.default_rng(1)
    bad, good = generator.normal(0, 1, int(share * 8000)), generator.normal(distance, 1, 8000 - int(share * 8000))
    separation = Separation.between(np.concatenate([bad, good]), generator.normal(0, 1, 8000))
    assert separation.share == pytest.approx(share, abs=0.05)
    assert separation.good_area == pytest.approx(area_under_curve(good, bad), abs=0.02)
    assert (good < separation.threshold).mean() < 0.05
    assert (bad < separation.threshold).mean() > (0.7 if distance >= 3 and share >= 0.2 else 0.3)


def test_a_clean_corpus_loses_almost_nothing():
    generator = np.random.default_rng(1)
    separation = Separation.between(generator.normal(2, 1, 5000), generator.normal(-2, 0.5, 5000))
    assert (generator.normal(2, 1, 5000) < separation.threshold).mean() < 0.002


def test_a_text_in_the_language_of_the_other_side_has_negative_log_odds(lexicon):
    other_pairs = pairs(50, seed=3)
    sources, targets = side([source for source, _ in other_pairs]), side([target for _, target in other_pairs])
    assert (lexicon.side_log_odds(0, sources) > 2).all()
    assert (lexicon.side_log_odds(1, targets) > 2).all()
    assert (lexicon.side_log_odds(0, targets) < -2).all()
    assert (lexicon.side_log_odds(1, sources) < -2).all()


def test_pairs_of_unknown_words_are_not_judged(lexicon):
    assert np.isnan(lexicon.score(side(["龘龘", "", "龘"]), side(["xyzzy", "", ""]))).all()


def test_a_name_on_both_sides_raises_the_score(lexicon):
    first, second, third, fourth, *_ = dictionary()
    source, stranger = first[0] + second[0], f"{third[1]} {fourth[1]}"
    plain, named = lexicon.score(side([source, source + " Xyzzy"]), side([stranger, stranger + " xyzzy"]))
    assert named > plain + 0.5


def test_words_are_separated_by_spaces_or_are_characters_and_their_pairs():
    assert words("Hello, WORLD!") == words("hello world") == words("world — hello")
    assert len(words("hello world")) == 2
    assert words("ｈｅｌｌｏ") == words("hello")
    assert len(words("你好吗")) == 5  # three characters and two pairs
    assert words("你好") < words("你好吗")
    assert len(words("你，好")) == 2
    assert len(words("用Python3写")) == 3
    assert words("...") == words("") == set()


@given(st.lists(st.text(), max_size=5))
def test_a_text_has_the_same_words_alone_and_among_others(texts):
    batch = side(texts)
    for row, text in enumerate(texts):
        assert batch.take(np.array([row])).words.tolist() == side([text]).words.tolist()


@given(st.lists(st.floats(-5, 5), min_size=1), st.lists(st.floats(-5, 5), min_size=1))
def test_the_area_is_the_share_of_pairs_that_are_in_order(better, worse):
    wins = sum((first > second) + (first == second) / 2 for first in better for second in worse)
    assert area_under_curve(np.array(better), np.array(worse)) == pytest.approx(wins / len(better) / len(worse))
