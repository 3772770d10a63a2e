"""What an engine says to sentences, and the best ways to make a text of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import chain
from typing import Any, NamedTuple

from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.translation.direction import Direction
from sixfold.translation.guard import Fault, check, mend
from sixfold.translation.options import TranslateOptions
from sixfold.translation.result import Notice

Wish = tuple[str, tuple[int, ...]]  # a sentence, and the tokens that its translation is to begin with

# Chosen by benchmarks/search_errors.py: what misses fewest of the model's own best translations for its time.
SHORT_SOURCE = 20  # tokens; so short a sentence is searched with a wider beam, which costs little
DOUBTFUL_SCORE = -1.0  # mean log-probability a token; a translation below it is searched for again
WIDER = 2  # times the beam


def decode(
    direction: Direction, ids: Mapping[str, Sequence[int]], wishes: Sequence[Sequence[Wish]], options: TranslateOptions
) -> dict[Wish, list[Hypothesis]]:
    """Every wish once, however often it stands there."""
    groups: dict[tuple[int, ...], list[Wish]] = {}
    for wish in dict.fromkeys(chain.from_iterable(wishes)):
        groups.setdefault(wish[1], []).append(wish)
    found: dict[Wish, list[Hypothesis]] = {}
    search = options.search(direction.max_target_tokens)
    for begun, group in groups.items():
        sources = [direction.encoder_input(ids[sentence]) for sentence, _ in group]
        if begun:
            answers = direction.engine.decode(sources, with_room(search, sources, begun), [begun] * len(group))
        else:
            answers = best_hypotheses(direction, sources, search)
        found.update(zip(group, answers, strict=True))
    return found


def best_hypotheses(
    direction: Direction, sources: Sequence[list[int]], search: SearchOptions
) -> list[list[Hypothesis]]:
    """The best targets of each source, as tokens with tag and <eos>.

    1. Short sources are searched with a wider beam than long ones, unless the search is greedy.
    2. Sources whose best target is doubtful are searched again, with a wider beam and without the shortlist.
    """
    answers: list[list[Hypothesis]] = [[] for _ in sources]
    groups: dict[int, list[int]] = {}
    for place, source in enumerate(sources):
        groups.setdefault(beam_width(search.beam, len(source) - len(direction.tag) - 1), []).append(place)
    for beam, places in groups.items():
        some = direction.engine.decode([sources[place] for place in places], replace(search, beam=beam))
        for place, hypotheses in zip(places, some, strict=True):
            answers[place] = hypotheses
    if search.beam > 1:
        search_again(direction, sources, answers, replace(search, beam=WIDER * search.beam, ignore_shortlist=True))
    return answers


def beam_width(beam: int, length: int) -> int:
    """The beam for a source of so many tokens, where long sources have the beam `beam`."""
    return WIDER * beam if beam > 1 and length <= SHORT_SOURCE else beam


def search_again(
    direction: Direction, sources: Sequence[list[int]], answers: list[list[Hypothesis]], search: SearchOptions
) -> None:
    """Search for the sources whose best target is doubtful by other options, and keep the better one of each.

    A shortlist raises scores, since the probabilities of the words that it leaves out go to the others. So both targets
    are scored over the whole vocabulary before they are compared.
    """
    doubtful = [place for place, (best, *_) in enumerate(answers) if mean_score(best, search) < DOUBTFUL_SCORE]
    if not doubtful:
        return
    again = direction.engine.decode([sources[place] for place in doubtful], search)
    changed = [
        (place, hypotheses)
        for place, hypotheses in zip(doubtful, again, strict=True)
        if hypotheses[0].tokens != answers[place][0].tokens
    ]
    both = [hypotheses[0].tokens for place, other in changed for hypotheses in (answers[place], other)]
    logprobs = direction.engine.score([sources[place] for place, _ in changed for _ in range(2)], both)
    scores = [search.normalised_score(sum(each), len(each)) for each in logprobs]
    for (place, hypotheses), first, second in zip(changed, scores[::2], scores[1::2], strict=True):
        if second > first:
            answers[place] = hypotheses


def mean_score(hypothesis: Hypothesis, search: SearchOptions) -> float:
    """The mean log-probability of its tokens and <eos>, whatever length penalty its score has."""
    length = len(hypothesis.tokens) + 1
    return hypothesis.score * length ** (search.length_penalty - 1)


class Answer(NamedTuple):
    """What a sentence may become, the best first, and what is wrong with that."""

    sentence: str
    hypotheses: Sequence[Hypothesis]  # none of what was not asked for
    faults: Sequence[Fault] = ()
    known: str | None = None  # what it is to become, whatever the model would say

    def words(self, direction: Direction, hypotheses: Iterator[Hypothesis]) -> str:
        """What stands for it in a text, where the next hypothesis is its own, if it has any."""
        return direction.decode_target(next(hypotheses).tokens) if self.known is None else self.known


def guard(
    direction: Direction,
    ids: Mapping[str, Sequence[int]],
    found: dict[Wish, list[Hypothesis]],
    options: TranslateOptions,
) -> dict[Wish, list[Fault]]:
    """Ask once more for what is plainly wrong, take what is less so, and tell what is left."""
    left: dict[Wish, list[Fault]] = {}
    for wish, its in found.items():
        sentence, begun = wish
        faults = check(sentence, direction.decode_target(its[0].tokens), direction.languages)
        if faults and not begun:  # what must begin so is what the caller wants
            search = options.search(direction.max_target_tokens)
            better = mend(direction, sentence, ids[sentence], faults, search)[0]
            rest = check(sentence, direction.decode_target(better.tokens), direction.languages)
            if len(rest) < len(faults):
                found[wish], faults = [better, *its[1:]], rest
        if faults:
            left[wish] = faults
    return left


def notices(text: str, said: Sequence[str], answers: Sequence[Answer]) -> Iterator[Notice]:
    """The faults of all sentences, at their places in the whole."""
    at = 0
    for words, answer in zip(said, answers, strict=True):
        at = max(at, text.find(words, at))
        for kind, message, span in answer.faults:
            yield Notice(kind, message, None if span is None else (span[0] + at, span[1] + at))
        at += len(words)


def with_room(search: SearchOptions, sources: Sequence[Sequence[int]], begun: Sequence[int]) -> SearchOptions:
    """With room for a prefix besides what a source may become."""
    return replace(search, max_ratio=search.max_ratio + len(begun) / min(map(len, sources)))


def mean_scores(direction: Direction, ids: Sequence[int], targets: Sequence[Sequence[int]]) -> list[float]:
    """The mean log-probability of the tokens of each, its end included."""
    each = direction.engine.score([direction.encoder_input(ids)] * len(targets), targets)
    return [sum(logprobs) / len(logprobs) for logprobs in each]


def ways_through(sentences: Sequence[Sequence[Hypothesis]], count: int) -> list[tuple[list[Hypothesis], float]]:
    """The best ways to take one hypothesis of each sentence, with the mean of their scores by length.

    The first takes the first of each, even if others are likelier: it may have been asked for again, or hold a term.
    """
    weights = [len(its[0].tokens) + 1 for its in sentences]
    ways: list[tuple[float, Any]] = [(0.0, None)]  # a sum, and what it is made of: the last, and what was before it
    for its, weight in zip(sentences, weights, strict=True):
        longer = [(total + weight * each.score, (each, before)) for total, before in ways for each in its[:count]]
        ways = nlargest(count, longer, key=lambda way: way[0])
    first = [its[0] for its in sentences]
    best = sum(weight * each.score for weight, each in zip(weights, first, strict=True))
    found = [(total, _unrolled(links)) for total, links in ways]
    place = next((place for place, (_, way) in enumerate(found) if way == first), count - 1)
    others = found[:place] + found[place + 1 :]
    return [(way, total / max(1, sum(weights))) for total, way in [(best, first), *others]]


def _unrolled(links: Any) -> list[Hypothesis]:
    found: list[Hypothesis] = []
    while links is not None:
        last, links = links
        found.append(last)
    return found[::-1]
