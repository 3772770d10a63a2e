"""Short and doubtful sentences are searched with a wider beam, and the better translation is kept."""

import pytest

from sixfold import TranslateOptions, Translator
from sixfold.decoding.options import Hypothesis
from sixfold.translation import decode as hypotheses
from sixfold.translation.decode import DOUBTFUL_SCORE, SHORT_SOURCE, WIDER, best_hypotheses


class Model:
    """An engine that knows what it finds for a source with each beam, and how likely each target is."""

    def __init__(self, found, scores=()):
        self.found, self.scores, self.calls = found, dict(scores), []

    def decode(self, sources, options):
        self.calls.append((len(sources), options.beam, options.ignore_shortlist))
        return [[Hypothesis(*self.found[source[0]][options.ignore_shortlist])] for source in sources]

    def score(self, _, targets):
        return [[self.scores[tuple(target)]] * (len(target) + 1) for target in targets]


class Direction:
    tag = ()

    def __init__(self, engine):
        self.engine = engine


def source(name, length):
    """Ids of a source whose first token names it; the last one stands for <eos>."""
    return [name] * length + [2]


def search(beam=4):
    return TranslateOptions(beam=beam).search(100)


def test_short_sources_are_searched_with_a_wider_beam():
    model = Model({1: [([10], -0.1)], 2: [([20], -0.2)]})
    answers = best_hypotheses(Direction(model), [source(1, SHORT_SOURCE + 1), source(2, SHORT_SOURCE)], search())
    assert [each[0].tokens for each in answers] == [[10], [20]]
    assert model.calls == [(1, 4, False), (1, 4 * WIDER, False)]


def test_a_greedy_search_stays_greedy():
    model = Model({1: [([10], DOUBTFUL_SCORE - 1)]})
    best_hypotheses(Direction(model), [source(1, 3)], search(beam=1))
    assert model.calls == [(1, 1, False)]


def test_doubtful_sources_are_searched_again_and_only_better_targets_are_taken():
    # Sources 1 to 4: sure; the second search is better; it is worse; it finds the same.
    low = DOUBTFUL_SCORE - 0.01
    found = {1: [([10], DOUBTFUL_SCORE)], 2: [([20], low), ([21], low)], 3: [([30], low), ([31], 0.0)],
             4: [([40], low), ([40], low)]}  # fmt: skip
    model = Model(found, {(20,): -2.0, (21,): -1.0, (30,): -1.0, (31,): -2.0})
    answers = best_hypotheses(Direction(model), [source(name, 30) for name in found], search())
    assert [each[0].tokens for each in answers] == [[10], [21], [30], [40]]
    assert model.calls == [(4, 4, False), (3, 4 * WIDER, True)]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 1.5])
def test_doubt_is_about_the_mean_of_the_tokens_whatever_the_length_penalty(penalty):
    """Twelve tokens and <eos>, each with the log-probability −0.5: sure. With −1.1: doubtful."""
    for each, is_doubtful in ((-0.5, False), (-1.1, True)):
        score = 13 * each / 13**penalty
        model = Model({1: [([7] * 12, score), ([7] * 12, score)]})
        options = TranslateOptions(length_penalty=penalty).search(100)
        best_hypotheses(Direction(model), [source(1, 30)], options)
        assert len(model.calls) == 1 + is_doubtful


@pytest.fixture(scope="module")
def shipped_models():
    with Translator(device="cpu") as translator:
        yield translator


def test_the_shipped_model_says_why_the_animal_did_not_cross(shipped):
    """With a beam of 4 for short sentences it lost the street."""
    assert "马路" in shipped.translate("The animal didn't cross the street because it was too tired.").text


def test_the_second_search_never_gives_a_less_likely_translation(shipped, monkeypatch):
    text = "Colorless green ideas sleep furiously."
    monkeypatch.setattr(hypotheses, "DOUBTFUL_SCORE", float("-inf"))
    first = shipped.translate(text).text
    monkeypatch.setattr(hypotheses, "DOUBTFUL_SCORE", float("inf"))
    second = shipped.translate(text).text
    assert shipped.score(text, second).score >= shipped.score(text, first).score
