"""The searches that a sentence needs one after another, made for many sentences at once.

What is done to one sentence is a generator: it yields what it needs of the engine, a `Search`, `Scores` or an
`Alignment`, and receives the result. `search_jointly` runs the generators of many sentences. In each round it collects
what they need, and calls the engine once for all requests of one kind with the same options.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.engines.engine import Engine

Tokens = tuple[int, ...]
Result = TypeVar("Result")


class Search(NamedTuple):
    """The best targets of a source, or those that begin with a prefix."""

    source: Tokens
    options: SearchOptions
    prefix: Tokens | None = None


class Scores(NamedTuple):
    """The mean log-probability of the tokens of each target, given its source, <eos> included."""

    sources: tuple[Tokens, ...]
    targets: tuple[Tokens, ...]


class Alignment(NamedTuple):
    """How much each token of a target attends to each token of its source."""

    source: Tokens
    target: Tokens


EngineRequest = Search | Scores | Alignment
Steps = Generator[EngineRequest, Any, Result]


def search(
    source: Sequence[int], options: SearchOptions, prefix: Sequence[int] | None = None
) -> Steps[list[Hypothesis]]:
    """Return the best targets of a source; with a prefix, those that begin with it."""
    hypotheses: list[Hypothesis] = yield Search(tuple(source), options, None if prefix is None else tuple(prefix))
    return hypotheses


def score(source: Sequence[int], targets: Sequence[Sequence[int]]) -> Steps[list[float]]:
    """Return the mean log-probability of the tokens of each target, <eos> included."""
    scores = yield from score_pairs([source] * len(targets), targets)
    return scores


def score_pairs(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Steps[list[float]]:
    """Return the mean log-probability of the tokens of each target, given its source, <eos> included."""
    scores: list[float] = yield Scores(tuple(map(tuple, sources)), tuple(map(tuple, targets)))
    return scores


def align(source: Sequence[int], target: Sequence[int]) -> Steps[np.ndarray]:
    """Return how much each token of a target (rows) attends to each token of its source (columns)."""
    weights: np.ndarray = yield Alignment(tuple(source), tuple(target))
    return weights


def search_jointly(engine: Engine, steps: Sequence[Steps[Result]]) -> list[tuple[Result, float]]:
    """Run generators to their ends, and return what each returned and the milliseconds that it took.

    The time of a call of the engine is divided equally among the requests that share it.
    """
    results: dict[int, Result] = {}
    milliseconds = [0.0] * len(steps)
    replies: dict[int, Any] = dict.fromkeys(range(len(steps)))
    while replies:
        groups: dict[tuple[object, ...], list[tuple[int, EngineRequest]]] = {}
        for index, reply in replies.items():
            start = time.perf_counter()
            try:
                request = steps[index].send(reply)
                groups.setdefault(_group(request), []).append((index, request))
            except StopIteration as stop:
                results[index] = stop.value
            milliseconds[index] += 1000 * (time.perf_counter() - start)
        replies = {}
        for group in groups.values():
            start = time.perf_counter()
            answered = _answer(engine, [request for _, request in group])
            share = 1000 * (time.perf_counter() - start) / len(group)
            for (index, _), answer in zip(group, answered, strict=True):
                replies[index] = answer
                milliseconds[index] += share
    return [(results[index], milliseconds[index]) for index in range(len(steps))]


def _group(request: EngineRequest) -> tuple[object, ...]:
    """Return what requests that share a call of the engine have in common."""
    if isinstance(request, Search):
        return Search, request.options, request.prefix is None
    return (type(request),)


def _answer(engine: Engine, requests: Sequence[EngineRequest]) -> list[Any]:
    """Return the results of requests of one group."""
    first = requests[0]
    if isinstance(first, Scores):
        pairs = [request for request in requests if isinstance(request, Scores)]
        logprobs = iter(
            engine.score(
                [list(source) for request in pairs for source in request.sources],
                [list(target) for request in pairs for target in request.targets],
            )
        )
        return [[mean_logprob(next(logprobs)) for _ in request.targets] for request in pairs]
    sources = [list(request.source) for request in requests if not isinstance(request, Scores)]
    if isinstance(first, Search):
        prefixes = [list(request.prefix or ()) for request in requests if isinstance(request, Search)]
        # Without prefixes the engine may use the model's shortlist.
        return engine.decode(sources, first.options, None if first.prefix is None else prefixes)
    return engine.align(sources, [list(request.target) for request in requests if isinstance(request, Alignment)])


def mean_logprob(logprobs: Sequence[float]) -> float:
    """Return the mean log-probability of the tokens of a target."""
    return sum(logprobs) / len(logprobs)
