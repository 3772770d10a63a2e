"""The translation of texts along their routes, in steps that a translator and a server can both carry out.

With a pivot language there are two hops. The prefix and the other options belong to the last hop. Terms of a glossary
from the source into the target are split: the model's own translation of the term stands between the two halves.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from sixfold.translation.direction import Direction
from sixfold.translation.glossary import Glossary, Term
from sixfold.translation.options import TranslateOptions
from sixfold.translation.pair_files import is_reversed
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Details, Link, Translation
from sixfold.translation.routing import Route


class HopBatch(NamedTuple):
    """Texts that one model translates with one request."""

    direction: Direction
    texts: list[str]
    request: TranslationRequest
    indices: tuple[int, ...] = ()  # on the last hop, those of the caller's texts
    route: Route | None = None  # on the last hop


# Yields lists of batches, receives the translations of their texts, and returns those of all texts.
HopSteps = Generator[list[HopBatch], Sequence[Sequence[Translation]], list[Translation]]


def translate_along(texts: Sequence[str], routes: Sequence[Route], request: TranslationRequest) -> HopSteps:
    """Translate each text along its route; the last list of batches has the last hops of all texts."""
    indices_by_route: dict[Route, list[int]] = {}
    for index, route in enumerate(routes):
        indices_by_route.setdefault(route, []).append(index)
    batches = []
    first_hops: dict[int, Translation] = {}
    for route, indices in indices_by_route.items():
        own_texts, own_request = [route.read(texts[index]) for index in indices], request
        if len(route.hops) > 1:
            first_glossary, own_request = yield from _split_request(route, own_texts, request)
            options = replace(request.options, prefix="", n_best=1)
            first = TranslationRequest(None, None, options, first_glossary, details=request.details)
            (translated,) = yield [HopBatch(route.hops[0], own_texts, first)]
            first_hops |= dict(zip(indices, translated, strict=True))
            own_texts = [translation.text for translation in translated]
        batches.append(HopBatch(route.hops[-1], own_texts, own_request, tuple(indices), route))
    results = yield batches
    translations: dict[int, Translation] = {}
    for batch, translated in zip(batches, results, strict=True):
        assert batch.route is not None
        for index, translation in zip(batch.indices, translated, strict=True):
            ended = end_route(batch.route, translation, first_hops.get(index))
            translations[index] = _with_source(ended, texts[index]) if batch.route.from_traditional else ended
    return [translations[index] for index in range(len(texts))]


def end_route(route: Route, translation: Translation, first_hop: Translation | None = None) -> Translation:
    """Return the translation of the last hop as that of the route: with its languages, script and original text.

    Through a pivot language the links of both hops are joined. The tokens of the last hop are left out, because their
    source is not the original text.
    """
    if first_hop is None and not route.to_traditional:
        return translation
    converted = route.convert(translation.text)
    n_best = tuple(each._replace(text=route.convert(each.text)) for each in translation.n_best)
    result = replace(translation, text=converted, languages=route.languages, n_best=n_best)
    if first_hop is not None:
        confidences = [each for each in (first_hop.confidence, translation.confidence) if each is not None]
        first_notices = tuple(notice._replace(span=None) for notice in first_hop.warnings)
        result = replace(
            result, source=first_hop.source, warnings=(*first_notices, *translation.warnings), sentences=(),
            confidence=min(confidences, default=None), _explain=partial(_joined_details, first_hop, translation),
        )  # fmt: skip
    if len(converted) != len(translation.text):  # spans would be wrong
        result = replace(result, sentences=(), _explain=None)
    return result


def _with_source(translation: Translation, text: str) -> Translation:
    """Return a translation of a converted text as that of the original."""
    if len(translation.source) != len(text):  # spans would be wrong
        translation = replace(translation, sentences=(), _explain=None)
    return replace(translation, source=text)


def _joined_details(first_hop: Translation, last_hop: Translation) -> Details:
    return Details((), join_links(first_hop.alignment, last_hop.alignment))


def join_links(first: Sequence[Link], last: Sequence[Link]) -> tuple[Link, ...]:
    """Return links from the target of the last hop to the source of the first one.

    A word of the text between them goes to the word of the source that has most of it: `cats` is 2 to 6 in both of
    (target 0 to 2, source 2 to 6) and (target 2 to 6, source 5 to 6), which become (target 0 to 2, source 5 to 6). A
    word that no link of the first hop has gets no link.
    """
    ordered = sorted(first, key=lambda link: link.target)
    starts = [link.target[0] for link in ordered]
    joined = []
    for link in last:
        start, end = link.source
        index = bisect_right(starts, start) - 1
        candidates = []
        for each in ordered[max(0, index) :]:
            if each.target[0] >= end:
                break
            candidates.append((min(end, each.target[1]) - max(start, each.target[0]), each.weight, each))
        if candidates:
            overlap, weight, best = max(candidates, key=lambda candidate: candidate[:2])
            if overlap > 0:
                joined.append(Link(link.target, best.source, link.weight * weight))
    return tuple(joined)


def _split_request(
    route: Route, texts: Sequence[str], request: TranslationRequest
) -> Generator[list[HopBatch], Sequence[Sequence[Translation]], tuple[Glossary | None, TranslationRequest]]:
    """Return the glossary of the first hop and the request of the last one."""
    glossary = request.glossary
    last = replace(request, memory=None)
    if glossary is None or (glossary.languages and is_reversed(glossary.languages, route.languages) is None):
        return glossary, last  # each hop uses the terms that are for its languages
    terms = glossary.toward(route.languages)
    source = route.languages[0]
    used = list(dict.fromkeys(term for text in texts for _, term in terms.find_terms(text, source)))
    first = TranslationRequest(options=TranslateOptions(guard=False))
    (translated,) = yield [HopBatch(route.hops[0], [term.source for term in used], first)]
    middles = [translation.text.strip().rstrip(".。") for translation in translated]
    pairs = [(term, middle) for term, middle in zip(used, middles, strict=True) if middle]
    first_terms = tuple(Term(term.source, middle) for term, middle in pairs)
    last_terms = tuple(Term(middle, term.target) for term, middle in pairs)
    return Glossary(first_terms), replace(last, glossary=Glossary(last_terms))
