"""Searches for the translations of sentences, and the n best translations of a text from those of its sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import nlargest
from typing import Any

from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.translation.direction import Direction
from sixfold.translation.joint_search import Steps, search

# Chosen by benchmarks/search_errors.py: of the settings that take as long, these miss the fewest of the model's own
# best translations.
SHORT_SOURCE = 20  # tokens; a source of at most this length gets a wider beam, which costs little
DOUBTFUL_SCORE = -1.0  # mean log-probability of a token; a translation with a lower one is searched for again
WIDER = 2  # factor of the beam for short and for doubtful sources


def best_hypotheses(
    direction: Direction, sources: Sequence[list[int]], options: SearchOptions
) -> list[list[Hypothesis]]:
    """Return the best hypotheses of each source, which has its tag and <eos>.

    1. Short sources are searched with a wider beam than long ones, unless the search is greedy.
    2. Sources whose best hypothesis is doubtful are searched again, with a wider beam and without the shortlist.
    """
    results: list[list[Hypothesis]] = [[] for _ in sources]
    indices_by_beam: dict[int, list[int]] = {}
    for index, source in enumerate(sources):
        beam = beam_width(
            options.beam, len(source) - len(direction.special.before_source) - len(direction.special.after_source)
        )
        indices_by_beam.setdefault(beam, []).append(index)
    for beam, indices in indices_by_beam.items():
        decoded = direction.engine.decode([sources[index] for index in indices], replace(options, beam=beam))
        for index, hypotheses in zip(indices, decoded, strict=True):
            results[index] = hypotheses
    if options.beam > 1:
        search_again(direction, sources, results, replace(options, beam=WIDER * options.beam, ignore_shortlist=True))
    return results


def beam_width(beam: int, length: int) -> int:
    """Return the beam for a source of `length` tokens, where `beam` is the one for long sources."""
    return WIDER * beam if beam > 1 and length <= SHORT_SOURCE else beam


def search_again(
    direction: Direction, sources: Sequence[list[int]], results: list[list[Hypothesis]], options: SearchOptions
) -> None:
    """Search again for the sources whose best hypothesis is doubtful, and put the better hypotheses into `results`.

    A shortlist raises scores, since the probabilities of the tokens that it leaves out go to the others. So both
    targets are scored over the whole vocabulary before they are compared.
    """
    doubtful = [index for index, (best, *_) in enumerate(results) if mean_score(best, options) < DOUBTFUL_SCORE]
    if not doubtful:
        return
    decoded = direction.engine.decode([sources[index] for index in doubtful], options)
    changed = [
        (index, hypotheses)
        for index, hypotheses in zip(doubtful, decoded, strict=True)
        if hypotheses[0].tokens != results[index][0].tokens
    ]
    targets = [hypotheses[0].tokens for index, second in changed for hypotheses in (results[index], second)]
    logprobs = direction.engine.score([sources[index] for index, _ in changed for _ in range(2)], targets)
    scores = [options.normalised_score(sum(tokens), len(tokens)) for tokens in logprobs]
    for (index, hypotheses), first, second in zip(changed, scores[::2], scores[1::2], strict=True):
        if second > first:
            results[index] = hypotheses


def mean_score(hypothesis: Hypothesis, options: SearchOptions) -> float:
    """Return the mean log-probability of the tokens and <eos>, whatever length penalty the score has."""
    length = len(hypothesis.tokens) + 1
    return hypothesis.score * length ** (options.length_penalty - 1)


def search_in_order(
    source: Sequence[int], tokens: Sequence[int], prefix: Sequence[int], options: SearchOptions
) -> Steps[Hypothesis | None]:
    """Return the best hypothesis with some tokens in a given order, or None if the search leaves one of them out.

    For each token in turn, the search goes on from the hypothesis up to the token before it, and may write no other
    token of the list.
    """
    written = list(prefix)
    for number in range(len(tokens) + 1):
        banned = tuple(sorted(set(tokens) - set(tokens[number : number + 1])))
        hypothesis, *_ = yield from search(source, replace(options, n_best=1, banned=banned), written or None)
        if number == len(tokens):
            return hypothesis
        try:
            position = hypothesis.tokens.index(tokens[number], len(written))
        except ValueError:
            return None
        written = hypothesis.tokens[: position + 1]
    return None


def combine_hypotheses(sentences: Sequence[Sequence[Hypothesis]], count: int) -> list[tuple[list[Hypothesis], float]]:
    """Return the `count` best choices of one hypothesis for each sentence, each with its mean score.

    The score of a sentence is weighted by the length of its first hypothesis. The first choice has the first hypothesis
    of every sentence, even if another is likelier: it may come from a second search, or contain a glossary term.
    """
    weights = [len(hypotheses[0].tokens) + 1 for hypotheses in sentences]
    # A choice is its total score and a linked list: its last hypothesis, and the list before that.
    choices: list[tuple[float, Any]] = [(0.0, None)]
    for hypotheses, weight in zip(sentences, weights, strict=True):
        longer = [
            (total + weight * hypothesis.score, (hypothesis, before))
            for total, before in choices
            for hypothesis in hypotheses[:count]
        ]
        choices = nlargest(count, longer, key=lambda choice: choice[0])
    first = [hypotheses[0] for hypotheses in sentences]
    best = sum(weight * hypothesis.score for weight, hypothesis in zip(weights, first, strict=True))
    unrolled = [(total, _unroll(links)) for total, links in choices]
    index = next((index for index, (_, choice) in enumerate(unrolled) if choice == first), count - 1)
    others = unrolled[:index] + unrolled[index + 1 :]
    return [(choice, total / max(1, sum(weights))) for total, choice in [(best, first), *others]]


def _unroll(links: Any) -> list[Hypothesis]:
    """Return a linked list, which starts with its last element, as a list from the first to the last."""
    hypotheses: list[Hypothesis] = []
    while links is not None:
        last, links = links
        hypotheses.append(last)
    return hypotheses[::-1]
