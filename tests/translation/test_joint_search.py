"""Searches of many sentences share calls of the engine, and each sentence receives its own results."""

import numpy as np
import pytest

from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.translation.joint_search import align, score, search, search_jointly

GREEDY, WIDE = SearchOptions(beam=1), SearchOptions(beam=8)


class RecordingEngine:
    """An engine whose targets are the reversed sources, after their prefixes. It records the size of each call."""

    def __init__(self):
        self.calls = []

    def decode(self, sources, options, prefixes=None):
        self.calls.append(("decode", len(sources), options.beam, prefixes is not None))
        prefixes = prefixes or [[]] * len(sources)
        return [[Hypothesis([*prefix, *source[::-1]], -1.0)] for source, prefix in zip(sources, prefixes, strict=True)]

    def score(self, sources, targets):
        self.calls.append(("score", len(targets)))
        pairs = zip(sources, targets, strict=True)
        return [[-float(sum(source) + sum(target))] * (len(target) + 1) for source, target in pairs]

    def align(self, sources, targets):
        self.calls.append(("align", len(targets)))
        return [np.full((len(target), len(source)), source[0]) for source, target in zip(sources, targets, strict=True)]


def rounds(source, count):
    """Search `count` times, each time for the target of the time before."""
    written = source
    for _ in range(count):
        (hypothesis,) = yield from search(written, GREEDY)
        written = [*hypothesis.tokens, len(hypothesis.tokens)]
    return written


def alone(steps):
    ((result, _),) = search_jointly(RecordingEngine(), [steps])
    return result


def test_sentences_that_need_different_numbers_of_searches_share_each_round():
    engine = RecordingEngine()
    counts = (3, 0, 1, 3)
    results = search_jointly(engine, [rounds([number, 7], count) for number, count in enumerate(counts)])
    assert [result for result, _ in results] == [
        alone(rounds([number, 7], count)) for number, count in enumerate(counts)
    ]
    assert [size for _, size, _, _ in engine.calls] == [3, 2, 2]


def test_requests_with_other_options_or_a_prefix_are_calls_of_their_own():
    def steps(options, prefix):
        (hypothesis,) = yield from search([1, 2], options, prefix)
        return hypothesis.tokens

    engine = RecordingEngine()
    wanted = [(GREEDY, None), (WIDE, None), (GREEDY, [5]), (GREEDY, None), (GREEDY, [6, 6])]
    results = search_jointly(engine, [steps(*each) for each in wanted])
    assert [tokens for tokens, _ in results] == [[2, 1], [2, 1], [5, 2, 1], [2, 1], [6, 6, 2, 1]]
    assert sorted(engine.calls) == [
        ("decode", 1, 8, False), ("decode", 2, 1, False), ("decode", 2, 1, True),
    ]  # fmt: skip


def test_scores_and_alignments_of_several_sentences_are_told_apart():
    def steps(source, targets):
        scores = yield from score(source, targets)
        weights = yield from align(source, targets[0])
        return scores, weights.tolist()

    engine = RecordingEngine()
    wanted = [([1], [[2], [3, 3]]), ([10, 10], [[4]])]
    results = [result for result, _ in search_jointly(engine, [steps(*each) for each in wanted])]
    assert results == [([-3.0, -7.0], [[1]]), ([-24.0], [[10, 10]])]
    assert engine.calls == [("score", 3), ("align", 2)]


def test_the_time_of_a_shared_call_is_divided():
    results = search_jointly(RecordingEngine(), [rounds([1], 1), rounds([2], 1)])
    assert all(milliseconds > 0 for _, milliseconds in results)


def test_an_error_of_the_engine_reaches_the_caller():
    class Failing(RecordingEngine):
        def decode(self, *_):
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        search_jointly(Failing(), [rounds([1], 1)])


def test_nothing_to_do_calls_nothing():
    assert search_jointly(RecordingEngine(), []) == []
