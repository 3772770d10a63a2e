"""Each sentence is decoded with the beam that it needs, and the n best translations of a text are really the best."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixfold import TranslateOptions, Translator
from sixfold.decoding.options import Hypothesis
from sixfold.text.sequence_format import SpecialTokens
from sixfold.translation import searches
from sixfold.translation.searches import DOUBTFUL_SCORE, SHORT_SOURCE, WIDER, best_hypotheses, combine_hypotheses

HYPOTHESES = st.builds(Hypothesis, st.lists(st.integers(4, 9), max_size=5), st.floats(-9, 0))
SENTENCES = st.lists(st.lists(HYPOTHESES, min_size=1, max_size=3), max_size=4)


def mean_score(choice, sentences):
    weights = [len(hypotheses[0].tokens) + 1 for hypotheses in sentences]
    total = sum(hypothesis.score * weight for hypothesis, weight in zip(choice, weights, strict=True))
    return total / max(1, sum(weights))


@given(SENTENCES, st.integers(1, 5))
def test_the_best_combinations_are_found(sentences, count):
    sentences = [sorted(hypotheses, key=lambda each: -each.score)[:count] for hypotheses in sentences]
    expected = sorted((mean_score(choice, sentences) for choice in product(*sentences)), reverse=True)[:count]
    combined = combine_hypotheses(sentences, count)
    assert len(combined) == len(expected)
    for (choice, score), best in zip(combined, expected, strict=True):
        assert abs(score - best) < 1e-9
        assert abs(mean_score(choice, sentences) - score) < 1e-9


def test_a_text_without_sentences_has_one_combination():
    assert combine_hypotheses([], 3) == [([], 0.0)]


def test_a_book_of_20000_sentences_is_combined_too():
    sentences = [[Hypothesis([5], -0.1), Hypothesis([6], -0.2)]] * 20_000
    choice, score = combine_hypotheses(sentences, 2)[1]
    assert len(choice) == 20_000
    assert [hypothesis.tokens for hypothesis in choice].count([6]) == 1
    assert -0.101 < score < -0.1


class TableEngine:
    """An engine with a table of what each source becomes, with and without the shortlist, and how likely that is."""

    def __init__(self, targets, scores=()):
        self.targets, self.scores, self.calls = targets, dict(scores), []

    def decode(self, sources, options):
        self.calls.append((len(sources), options.beam, options.ignore_shortlist))
        return [[Hypothesis(*self.targets[source[0]][options.ignore_shortlist])] for source in sources]

    def score(self, _, targets):
        return [[self.scores[tuple(target)]] * (len(target) + 1) for target in targets]


class Direction:
    special = SpecialTokens((), (2,), ())

    def __init__(self, engine):
        self.engine = engine


def source(name, length):
    """Ids of a source whose first token names it; the last one stands for <eos>."""
    return [name] * length + [2]


def search(beam=4):
    return TranslateOptions(beam=beam).search(100)


def test_short_sources_are_searched_with_a_wider_beam():
    engine = TableEngine({1: [([10], -0.1)], 2: [([20], -0.2)]})
    results = best_hypotheses(Direction(engine), [source(1, SHORT_SOURCE + 1), source(2, SHORT_SOURCE)], search())
    assert [hypotheses[0].tokens for hypotheses in results] == [[10], [20]]
    assert engine.calls == [(1, 4, False), (1, 4 * WIDER, False)]


def test_a_greedy_search_stays_greedy():
    engine = TableEngine({1: [([10], DOUBTFUL_SCORE - 1)]})
    best_hypotheses(Direction(engine), [source(1, 3)], search(beam=1))
    assert engine.calls == [(1, 1, False)]


def test_doubtful_sources_are_searched_again_and_only_better_targets_are_taken():
    # Sources 1 to 4: sure; the second search is better; it is worse; it finds the same.
    low = DOUBTFUL_SCORE - 0.01
    targets = {1: [([10], DOUBTFUL_SCORE)], 2: [([20], low), ([21], low)], 3: [([30], low), ([31], 0.0)],
               4: [([40], low), ([40], low)]}  # fmt: skip
    engine = TableEngine(targets, {(20,): -2.0, (21,): -1.0, (30,): -1.0, (31,): -2.0})
    results = best_hypotheses(Direction(engine), [source(name, 30) for name in targets], search())
    assert [hypotheses[0].tokens for hypotheses in results] == [[10], [21], [30], [40]]
    assert engine.calls == [(4, 4, False), (3, 4 * WIDER, True)]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 1.5])
def test_doubt_is_about_the_mean_of_the_tokens_whatever_the_length_penalty(penalty):
    """Twelve tokens and <eos>, each with the log-probability −0.5: sure. With −1.1: doubtful."""
    for logprob, is_doubtful in ((-0.5, False), (-1.1, True)):
        score = 13 * logprob / 13**penalty
        engine = TableEngine({1: [([7] * 12, score), ([7] * 12, score)]})
        options = TranslateOptions(length_penalty=penalty).search(100)
        best_hypotheses(Direction(engine), [source(1, 30)], options)
        assert len(engine.calls) == 1 + is_doubtful


@pytest.fixture(scope="module")
def shipped_translator():
    with Translator(device="cpu") as translator:
        yield translator


def test_the_shipped_model_says_why_the_animal_did_not_cross(shipped_translator):
    """With a beam of 4 for short sentences it lost the street."""
    assert "马路" in shipped_translator.translate("The animal didn't cross the street because it was too tired.").text


def test_the_second_search_never_gives_a_less_likely_translation(shipped_translator, monkeypatch):
    text = "Colorless green ideas sleep furiously."
    monkeypatch.setattr(searches, "DOUBTFUL_SCORE", float("-inf"))
    first = shipped_translator.translate(text).text
    monkeypatch.setattr(searches, "DOUBTFUL_SCORE", float("inf"))
    second = shipped_translator.translate(text).text
    assert shipped_translator.score(text, second).score >= shipped_translator.score(text, first).score
