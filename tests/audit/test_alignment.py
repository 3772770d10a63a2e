"""The words of a corpus tell translations from unrelated texts, and no pair vouches for itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_pairs import dictionary, pairs

from sixfold.audit.alignment import Lexicon, Side, Verdict, area_under_curve, strangers
from sixfold.audit.text_arrays import Lines


def side(texts):
    return Side.of(Lines.of(texts))


def words(text):
    """The hashes of a text's words, as a set."""
    return set(side([text]).words.tolist())


@pytest.fixture(scope="module")
def lexicon():
    taught = pairs(3000)
    return Lexicon.learn(side([source for source, _ in taught]), side([target for _, target in taught]))


def test_translations_score_better_than_strangers(lexicon):
    fresh = pairs(1000, seed=2)
    sources, targets = [source for source, _ in fresh], [target for _, target in fresh]
    lengths = Lines.of(sources).lengths(), Lines.of(targets).lengths()
    others = strangers(*lengths)
    good = lexicon.score(side(sources), side(targets))
    bad = lexicon.score(side(sources), side(targets).take(others))
    assert area_under_curve(good, bad) > 0.99
    assert np.abs(lengths[1] - lengths[1][others]).mean() < np.abs(lengths[1] - np.roll(lengths[1], 1)).mean()


def test_a_corpus_of_unrelated_texts_condemns_nothing():
    sources, targets = [source for source, _ in pairs(2000)], [target for _, target in pairs(2000, seed=2)]
    taught = Lexicon.learn(side(sources[:1000]), side(targets[:1000]))
    given = taught.score(side(sources[1000:]), side(targets[1000:]))
    unrelated = taught.score(side(sources[1000:]), side(targets[1000:][::-1]))
    verdict = Verdict.between(given, unrelated)
    assert verdict.threshold == -np.inf
    assert 0.4 < area_under_curve(given, unrelated) < 0.6


def test_the_line_is_drawn_between_two_heaps():
    chance = np.random.default_rng(1)
    unrelated = chance.normal(-2, 0.5, 5000)
    given = np.concatenate([chance.normal(2, 0.8, 4750), chance.normal(-2, 0.5, 250)])
    verdict = Verdict.between(given, unrelated)
    assert -1.2 < verdict.threshold < 0.5
    assert verdict.share == pytest.approx(0.05, abs=0.01)
    assert verdict.area == pytest.approx(0.975, abs=0.005)  # a twentieth are strangers, who win half of the time


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
@pytest.mark.parametrize("distance", [2.5, 3.0, 4.0])  # in standard deviations
def test_most_unrelated_pairs_and_few_others_are_below_the_line(share, distance):
    """Whatever the share of the unrelated pairs is, and where the two kinds overlap."""
    chance = np.random.default_rng(1)
    bad, good = chance.normal(0, 1, int(share * 8000)), chance.normal(distance, 1, 8000 - int(share * 8000))
    verdict = Verdict.between(np.concatenate([bad, good]), chance.normal(0, 1, 8000))
    assert verdict.share == pytest.approx(share, abs=0.05)
    assert verdict.good_area == pytest.approx(area_under_curve(good, bad), abs=0.02)
    assert (good < verdict.threshold).mean() < 0.05
    assert (bad < verdict.threshold).mean() > (0.7 if distance >= 3 and share >= 0.2 else 0.3)


def test_a_clean_corpus_loses_almost_nothing():
    chance = np.random.default_rng(1)
    verdict = Verdict.between(chance.normal(2, 1, 5000), chance.normal(-2, 0.5, 5000))
    assert (chance.normal(2, 1, 5000) < verdict.threshold).mean() < 0.002


def test_a_text_in_the_language_of_the_other_side_leans_there(lexicon):
    fresh = pairs(50, seed=3)
    sources, targets = side([source for source, _ in fresh]), side([target for _, target in fresh])
    assert (lexicon.leaning(0, sources) > 2).all()
    assert (lexicon.leaning(1, targets) > 2).all()
    assert (lexicon.leaning(0, targets) < -2).all()
    assert (lexicon.leaning(1, sources) < -2).all()


def test_pairs_of_unknown_words_are_not_judged(lexicon):
    assert np.isnan(lexicon.score(side(["龘龘", "", "龘"]), side(["xyzzy", "", ""]))).all()


def test_a_name_that_stands_on_both_sides_speaks_for_the_pair(lexicon):
    first, second, third, fourth, *_ = dictionary()
    source, stranger = first[0] + second[0], f"{third[1]} {fourth[1]}"
    plain, named = lexicon.score(side([source, source + " Xyzzy"]), side([stranger, stranger + " xyzzy"]))
    assert named > plain + 0.5


def test_words_are_told_apart_by_spaces_or_are_characters_and_their_pairs():
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
    together = side(texts)
    for row, text in enumerate(texts):
        assert together.take(np.array([row])).words.tolist() == side([text]).words.tolist()


@given(st.lists(st.floats(-5, 5), min_size=1), st.lists(st.floats(-5, 5), min_size=1))
def test_the_area_is_the_share_of_pairs_that_are_in_order(better, worse):
    wins = sum((first > second) + (first == second) / 2 for first in better for second in worse)
    assert area_under_curve(np.array(better), np.array(worse)) == pytest.approx(wins / len(better) / len(worse))
