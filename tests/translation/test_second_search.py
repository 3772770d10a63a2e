"""A doubtful translation is searched for again, more widely, and the better one is kept."""

import pytest

from sixfold import TranslateOptions, Translator
from sixfold.engines.engine import Candidate
from sixfold.translation import hypotheses
from sixfold.translation.hypotheses import DOUBTFUL_SCORE, search_again


class Model:
    """An engine that knows what each beam finds, and how likely each target is."""

    def __init__(self, narrow, wide, scores):
        self.found, self.scores, self.calls = {4: narrow, 8: wide}, scores, []

    def decode(self, sources, options):
        self.calls.append((len(sources), options.beam, options.unlisted))
        return [[Candidate(self.found[options.beam][source[0]], DOUBTFUL_SCORE - 1)] for source in sources]

    def score(self, _, targets):
        return [[self.scores[tuple(target)]] * (len(target) + 1) for target in targets]


class Direction:
    def __init__(self, engine):
        self.engine = engine


@pytest.fixture
def search():
    return TranslateOptions(beam=4).search(100)


def test_only_doubtful_sentences_are_searched_again_and_only_better_ones_are_taken(search):
    # Sources 0 to 3: sure; the wide search is better; it is worse; it finds the same.
    narrow, wide = [[10], [11], [12], [13]], [[20], [21], [22], [13]]
    model = Model(narrow, wide, {(11,): -2.0, (21,): -1.0, (12,): -1.0, (22,): -2.0})
    scores = [DOUBTFUL_SCORE + 0.01, *[DOUBTFUL_SCORE - 0.01] * 3]
    answers = [[Candidate(tokens, score)] for tokens, score in zip(narrow, scores, strict=True)]
    search_again(Direction(model), [[0], [1], [2], [3]], answers, search)
    assert [each[0].tokens for each in answers] == [[10], [21], [12], [13]]
    assert model.calls == [(3, 8, True)]


def test_nothing_is_asked_where_all_are_sure(search):
    model = Model([[1]], [[2]], {})
    search_again(Direction(model), [[0]], [[Candidate([1], DOUBTFUL_SCORE)]], search)
    assert model.calls == []


def test_the_shipped_model_finds_what_its_first_search_misses(monkeypatch):
    text = "The animal didn't cross the street because it was too tired."
    with Translator(device="cpu") as translator:
        monkeypatch.setattr(hypotheses, "DOUBTFUL_SCORE", float("-inf"))
        first = translator.translate(text, options=TranslateOptions(beam=4))
        monkeypatch.setattr(hypotheses, "DOUBTFUL_SCORE", float("inf"))
        second = translator.translate(text, options=TranslateOptions(beam=4))
        greedy = translator.translate(text, options=TranslateOptions(beam=1))
        scores = [translator.score(text, each.text).score for each in (first, second, greedy)]
    assert scores[1] >= scores[0]
    assert scores[1] >= scores[2]
