"""The translation of texts along their routes, in steps that a translator and a server can both carry out.

With a pivot language there are two hops. The prefix and the other options belong to the last hop. Terms of a glossary
from the source into the target are split: the model's own translation of the term stands between the two halves.
Sentences that a translation memory from the source into the target has pass the first hop as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

from sixfold.text.chinese import to_simplified
from sixfold.translation.direction import Direction
from sixfold.translation.glossary import Glossary, Term
from sixfold.translation.memory import HopMemory, TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.pair_files import is_reversed
from sixfold.translation.pipeline import prepare
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Details, Link, Match, Sentence, Translation
from sixfold.translation.routing import Route

ABOUT_LANGUAGE = ("language", "same-language")  # what they say of the text between two hops is of no interest


class HopBatch(NamedTuple):
    """Texts that one model translates with one request."""

    direction: Direction
    texts: list[str]
    request: TranslationRequest
    indices: tuple[int, ...] = ()  # those of the caller's texts; none for terms of a glossary
    route: Route | None = None  # on the last hop
    first_of: Route | None = None  # on the first of two hops


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
        own_texts, own_request = [route.read(texts[index]) for index in indices], _in_script(route, request)
        if route.unchanged:
            own_request = _unchanged(request)
        elif len(route.hops) > 1:
            translated, own_request = yield from _translate_first_hop(route, own_texts, indices, own_request)
            first_hops |= dict(zip(indices, translated, strict=True))
            own_texts = [translation.text for translation in translated]
        batches.append(HopBatch(route.hops[-1], own_texts, own_request, tuple(indices), route))
    of_batches = yield batches
    translations: dict[int, Translation] = {}
    for batch, of_batch in zip(batches, of_batches, strict=True):
        assert batch.route is not None
        for index, translation in zip(batch.indices, of_batch, strict=True):
            translations[index] = end_route(batch.route, translation, texts[index], first_hops.get(index))
    return [translations[index] for index in range(len(texts))]


def end_route(route: Route, translation: Translation, text: str, first_hop: Translation | None = None) -> Translation:
    """Return the translation of the last hop as that of the route: with its languages, script and original text.

    Through a pivot language the links of both hops are joined. The tokens of the last hop are left out, because their
    source is not the original text.
    """
    if route.unchanged:
        others = [notice for notice in translation.warnings if notice.kind not in ABOUT_LANGUAGE]
        return replace(translation, warnings=(*route.notices(text), *others), _recall=None)
    if first_hop is None and not route.to_traditional:
        return _with_source(translation, text) if route.from_traditional else translation
    converted = route.convert(translation.text)
    n_best = tuple(each._replace(text=route.convert(each.text)) for each in translation.n_best)
    result = replace(translation, text=converted, languages=route.languages, n_best=n_best)
    if first_hop is not None:
        confidences = [each for each in (first_hop.confidence, translation.confidence) if each is not None]
        first_notices = [notice._replace(span=None) for notice in first_hop.warnings]
        last_notices = [notice for notice in translation.warnings if notice.kind not in ABOUT_LANGUAGE]
        recalls = [each._recall for each in (first_hop, translation) if each._recall]
        result = replace(
            result, source=first_hop.source, warnings=(*first_notices, *last_notices),
            sentences=join_sentences(first_hop.sentences, translation.sentences),
            confidence=min(confidences, default=None), _explain=partial(_joined_details, first_hop, translation),
            _recall=partial(_joined_matches, first_hop, translation) if recalls else None,
        )  # fmt: skip
    if len(converted) != len(translation.text):  # spans would be wrong
        result = replace(result, sentences=(), _explain=None)
    return _with_source(result, text) if route.from_traditional else result


def _with_source(translation: Translation, text: str) -> Translation:
    """Return a translation of a converted text as that of the original."""
    if len(translation.source) != len(text):  # spans would be wrong
        translation = replace(translation, sentences=(), _explain=None)
    return replace(translation, source=text)


def _joined_details(first_hop: Translation, last_hop: Translation) -> Details:
    return Details((), join_links(first_hop.alignment, last_hop.alignment))


def _joined_matches(first_hop: Translation, last_hop: Translation) -> tuple[Match, ...]:
    return (*first_hop.matches, *last_hop.matches)


def join_sentences(first: Sequence[Sentence], last: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """Return the sentences of both hops as those of the route, with the costs of both.

    Where a sentence of one hop is two of the other, these are joined.
    """
    joined: list[Sentence] = []
    index = last_index = 0
    while index < len(first) and last_index < len(last):
        end, last_end = index + 1, last_index + 1
        while True:
            if end < len(first) and first[end].target[0] < last[last_end - 1].source[1]:
                end += 1
            elif last_end < len(last) and last[last_end].source[0] < first[end - 1].target[1]:
                last_end += 1
            else:
                break
        of_first, of_last = first[index:end], last[last_index:last_end]
        both = (*of_first, *of_last)
        spans = (of_first[0].source[0], of_first[-1].source[1]), (of_last[0].target[0], of_last[-1].target[1])
        cost = sum(each.tokens for each in both), round(sum(each.milliseconds for each in both), 3)
        joined.append(Sentence(*spans, *cost, all(each.cached for each in both)))
        index, last_index = end, last_end
    return tuple(joined)


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


def _unchanged(request: TranslationRequest) -> TranslationRequest:
    """Return a request by which texts stay as they are: a memory has them all."""
    return replace(request, memory=HopMemory(), glossary=None, options=replace(request.options, prefix=""))


def _in_script(route: Route, request: TranslationRequest) -> TranslationRequest:
    """Return a request whose glossary is in simplified Chinese where texts are converted from it or to it."""
    converts = route.from_traditional or route.to_traditional
    return replace(request, glossary=_simplified(request.glossary)) if converts and request.glossary else request


@lru_cache(maxsize=8)
def _simplified(glossary: Glossary) -> Glossary:
    terms = (Term(to_simplified(term.source), to_simplified(term.target)) for term in glossary.terms)
    return Glossary(tuple(terms), glossary.languages)


def _translate_first_hop(
    route: Route, texts: Sequence[str], indices: Sequence[int], request: TranslationRequest
) -> Generator[list[HopBatch], Sequence[Sequence[Translation]], tuple[list[Translation], TranslationRequest]]:
    """Return translations into the pivot language, and the request of the last hop."""
    first_glossary, last = yield from _split_request(route, texts, request)
    first_memory, last_memory = _split_memory(route, request)
    options = replace(request.options, prefix="", n_best=1)
    first = TranslationRequest(None, None, options, first_glossary, first_memory, request.details)
    last = replace(last, memory=last_memory)
    (results,) = yield [HopBatch(route.hops[0], list(texts), first, tuple(indices), first_of=route)]
    translated = list(results)
    if isinstance(first_memory, HopMemory):
        # Among translations, a sentence that was kept may not be a sentence any more.
        lost = [at for at, each in enumerate(translated) if not _passes_memory(route, each, first_memory, last)]
        if lost:
            again = replace(first, memory=replace(first_memory, role="show"))
            of_lost = [texts[at] for at in lost], again, tuple(indices[at] for at in lost)
            (results,) = yield [HopBatch(route.hops[0], *of_lost, first_of=route)]
            for at, each in zip(lost, results, strict=True):
                translated[at] = each
    return translated, last


def _split_memory(
    route: Route, request: TranslationRequest
) -> tuple[TranslationMemory | None, TranslationMemory | None]:
    """Return what the first and the last hop take from the memory. With a prefix, its entries are only shown."""
    memory = request.memory
    if memory is None or (memory.languages and is_reversed(memory.languages, route.languages) is None):
        return memory, memory  # each hop uses the entries that are for its languages
    entries = memory.toward(route.languages)
    if request.options.prefix.strip():
        return HopMemory(of_route=entries, role="show"), None
    return HopMemory(of_route=entries), HopMemory(of_route=entries, role="use")


def _passes_memory(route: Route, translation: Translation, memory: HopMemory, last: TranslationRequest) -> bool:
    """Return whether the last hop finds every sentence again that the first one has kept for its memory."""
    sentences = (translation.source[slice(*each.source)] for each in translation.sentences)
    kept = Counter(sentence for sentence in sentences if memory.exact(sentence) is not None)
    if not kept:
        return True
    (prepared,) = prepare(route.hops[1], [translation.text], last)
    return kept <= Counter(each.text for each in prepared.sentences if each.memory_translation is not None)


def _split_request(
    route: Route, texts: Sequence[str], request: TranslationRequest
) -> Generator[list[HopBatch], Sequence[Sequence[Translation]], tuple[Glossary | None, TranslationRequest]]:
    """Return the glossary of the first hop and the request of the last one."""
    glossary = request.glossary
    last = request
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
