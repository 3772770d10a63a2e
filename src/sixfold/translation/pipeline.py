"""From texts to translations in three steps, with the sentence as the unit of work.

1. `prepare` splits texts into sentences and keeps their layouts.
2. `decode` translates sentences, whatever texts they are from.
3. `assemble` puts the results of sentences into the layout of their text.

`Translator`, documents and the server all use these functions; the server queues, batches and caches what is between
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from sixfold.decoding.options import Hypothesis
from sixfold.text.sentences import is_spaced
from sixfold.translation.direction import Direction, language_notices
from sixfold.translation.explain import TranslatedSentence, explain, join_details
from sixfold.translation.glossary import apply_terms
from sixfold.translation.guard import Fault, find_faults, search_without_faults
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.prepare import Layout, SourceSentence, split_texts
from sixfold.translation.request import DecodeOptions, TranslationRequest
from sixfold.translation.result import Alternative, Details, Match, Notice, Sentence, Translation
from sixfold.translation.searches import allow_prefix, best_hypotheses, combine_hypotheses


class PreparedText(NamedTuple):
    """A text as sentences to translate, and the layout that their translations are put into."""

    layout: Layout
    sentences: tuple[SourceSentence, ...]


@dataclass(frozen=True)
class SentenceResult:
    """A sentence with its hypotheses, and what they cost."""

    sentence: SourceSentence
    hypotheses: tuple[Hypothesis, ...] = ()  # the best first; none if a translation memory has the sentence
    faults: tuple[Fault, ...] = ()  # of the best hypothesis
    details: Details | None = None  # of the best hypothesis, with spans in the sentence; None: not computed
    milliseconds: float = 0.0  # of decoding: the share of this sentence in the time of its batch
    is_cached: bool = False

    @property
    def tokens(self) -> int:
        """The tokens that were read and written for this sentence: those of the source and of the best hypothesis."""
        return sum(len(hypothesis.tokens) for hypothesis in self.hypotheses[:1]) + len(self.sentence.ids)

    def translation(self, direction: Direction, hypothesis: Hypothesis | None = None) -> str:
        """Return the text of the best hypothesis, or of another one; from a translation memory if that has it."""
        if self.sentence.memory_translation is not None:
            return self.sentence.memory_translation
        return direction.decode_target((hypothesis or self.hypotheses[0]).tokens)


def prepare(direction: Direction, texts: Sequence[str], request: TranslationRequest) -> list[PreparedText]:
    """Split texts into sentences of at most as many tokens as the model reads; look them up in the memory.

    The prefix of the request is the beginning of each text, so it belongs to the first sentence only.
    """
    prefix = direction.encode_target(request.options.prefix)
    direction.check_length("prefix", prefix)
    entries = (request.memory or TranslationMemory(())).toward(direction.languages)
    # With a prefix the model writes the translation, so the memory must not keep lines from being split and cut.
    unsplit = () if prefix else entries
    split = split_texts(texts, direction.tokenizer, direction.max_source_tokens, request.options.split, unsplit)
    prepared = []
    for layout in split.layouts:
        sentences = []
        for index, text in enumerate(layout.sentences()):
            own_prefix = tuple(prefix) if index == 0 else ()
            memory_translation = None if own_prefix else entries.exact(text)
            sentences.append(SourceSentence(text, tuple(split.ids[text]), own_prefix, memory_translation))
        prepared.append(PreparedText(layout, tuple(sentences)))
    return prepared


def decode(direction: Direction, sentences: Sequence[SourceSentence], options: DecodeOptions) -> list[SentenceResult]:
    """Return the result of each sentence. A sentence that occurs several times is decoded once.

    1. All sentences are searched for together, those with the same prefix at a time.
    2. A sentence whose best hypothesis has faults is searched for again.
    3. Terms of the glossary that are missing in its translation are put in.
    4. With `options.details`, tokens and alignment are computed, for all sentences together.
    """
    distinct = [sentence for sentence in dict.fromkeys(sentences) if sentence.memory_translation is None]
    results: dict[SourceSentence, SentenceResult] = {}
    for result in _search(direction, distinct, options):
        start = time.perf_counter()
        checked = _apply_glossary(direction, _retry_faulty(direction, result, options), options)
        elapsed = 1000 * (time.perf_counter() - start)
        results[result.sentence] = replace(checked, milliseconds=result.milliseconds + elapsed)
    for sentence in sentences:
        if sentence.memory_translation is not None:
            results.setdefault(sentence, SentenceResult(sentence))
    if options.details:
        translated = [_translated(direction, result) for result in results.values()]
        for result, details in zip(list(results.values()), explain(direction, translated), strict=True):
            results[result.sentence] = replace(result, details=details)
    return [results[sentence] for sentence in sentences]


def assemble(
    direction: Direction,
    prepared: PreparedText,
    results: Sequence[SentenceResult],
    request: TranslationRequest,
    check_open: Callable[[], None] = lambda: None,
) -> Translation:
    """Return the translation of a text from the results of its sentences.

    `check_open` is called before tokens and alignment are computed later: it raises if the model has been closed.
    """
    layout = prepared.layout
    decoded = [result for result in results if result.hypotheses]
    choices = combine_hypotheses([result.hypotheses for result in decoded], request.options.n_best)
    translations = []
    for choice, _ in choices:
        hypotheses = iter(choice)
        translations.append(
            [result.translation(direction, next(hypotheses) if result.hypotheses else None) for result in results]
        )
    spaced = is_spaced(direction.languages[1])
    texts = [layout.fill(of_choice, spaced) for of_choice in translations]
    sentences = _sentence_spans(layout.text, texts[0], results, translations[0])
    n_best = [Alternative(text, score) for text, (_, score) in zip(texts, choices, strict=True)]
    notices = [*language_notices(layout.text, direction.languages), *layout.notices]
    return Translation(
        layout.text, texts[0], choices[0][1], direction.languages,
        tuple(n_best) if request.options.n_best > 1 else (),
        (*notices, *_fault_notices(sentences, results)), _confidence(direction, results), sentences,
        partial(_details, direction, results, sentences, check_open), _matches(direction, prepared, request),
    )  # fmt: skip


def _search(
    direction: Direction, sentences: Sequence[SourceSentence], options: DecodeOptions
) -> Iterator[SentenceResult]:
    """Yield the hypotheses of sentences, with the time that each took."""
    search = options.options.search(direction.max_target_tokens)
    groups: dict[tuple[int, ...], list[SourceSentence]] = {}
    for sentence in sentences:
        groups.setdefault(sentence.prefix, []).append(sentence)
    for prefix, group in groups.items():
        start = time.perf_counter()
        sources = [direction.encoder_input(sentence.ids) for sentence in group]
        if prefix:
            with_prefix = allow_prefix(search, sources, prefix)
            hypotheses = direction.engine.decode(sources, with_prefix, [prefix] * len(group))
        else:
            hypotheses = best_hypotheses(direction, sources, search)
        results = [SentenceResult(*pair) for pair in zip(group, map(tuple, hypotheses), strict=True)]
        milliseconds = 1000 * (time.perf_counter() - start) / max(1, sum(result.tokens for result in results))
        yield from (replace(result, milliseconds=milliseconds * result.tokens) for result in results)


def _retry_faulty(direction: Direction, result: SentenceResult, options: DecodeOptions) -> SentenceResult:
    """Search again for a sentence whose best hypothesis has faults, and note the faults that remain."""
    if not options.options.guard:
        return result
    sentence, hypotheses = result.sentence, result.hypotheses
    faults = find_faults(sentence.text, result.translation(direction), direction.languages)
    if faults and not sentence.prefix:  # the caller has chosen how a translation with a prefix starts
        search = options.options.search(direction.max_target_tokens)
        better = search_without_faults(direction, sentence.text, sentence.ids, faults, search)[0]
        fewer = find_faults(sentence.text, direction.decode_target(better.tokens), direction.languages)
        if len(fewer) < len(faults):
            hypotheses, faults = (better, *hypotheses[1:]), fewer
    return replace(result, hypotheses=hypotheses, faults=tuple(faults))


def _apply_glossary(direction: Direction, result: SentenceResult, options: DecodeOptions) -> SentenceResult:
    """Put the glossary's terms into a translation, with a fault for each term that could not be used."""
    sentence = result.sentence
    if sentence.prefix or not options.glossary.terms:
        return result
    terms = options.glossary.find_terms(sentence.text, direction.languages[0])
    if not terms:
        return result
    best, unused = apply_terms(direction, sentence.text, sentence.ids, result.hypotheses[0], terms, options.options)
    new = [Fault("glossary", f"{term.source}: {term.target!r} could not be used") for term in unused]
    return replace(result, hypotheses=(best, *result.hypotheses[1:]), faults=(*result.faults, *new))


def _translated(direction: Direction, result: SentenceResult) -> TranslatedSentence:
    tokens = result.hypotheses[0].tokens if result.hypotheses else ()
    return TranslatedSentence(result.sentence.text, result.translation(direction), tokens)


def _details(
    direction: Direction,
    results: Sequence[SentenceResult],
    sentences: Sequence[Sentence],
    check_open: Callable[[], None],
) -> Details:
    """Return the tokens and links of a text. What no sentence has yet is computed now."""
    details = [result.details for result in results]
    missing = [index for index, of_sentence in enumerate(details) if of_sentence is None]
    if missing:
        check_open()
        computed = explain(direction, [_translated(direction, results[index]) for index in missing])
        for index, of_sentence in zip(missing, computed, strict=True):
            details[index] = of_sentence
    return join_details(sentences, [of_sentence for of_sentence in details if of_sentence is not None])


def _sentence_spans(
    source: str, translation: str, results: Sequence[SentenceResult], translations: Sequence[str]
) -> tuple[Sentence, ...]:
    """Return where each sentence is in the source and in the translation, and what it cost."""
    sentences = []
    source_end = target_end = 0
    for result, text in zip(results, translations, strict=True):
        source_start = source.index(result.sentence.text, source_end)
        target_start = translation.index(text, target_end)
        source_end, target_end = source_start + len(result.sentence.text), target_start + len(text)
        cost = result.tokens, round(result.milliseconds, 3), result.is_cached
        sentences.append(Sentence((source_start, source_end), (target_start, target_end), *cost))
    return tuple(sentences)


def _fault_notices(sentences: Sequence[Sentence], results: Sequence[SentenceResult]) -> Iterator[Notice]:
    """Yield the faults of all sentences as notices, with their spans in the whole translation."""
    for sentence, result in zip(sentences, results, strict=True):
        start = sentence.target[0]
        for kind, message, span in result.faults:
            yield Notice(kind, message, None if span is None else (span[0] + start, span[1] + start))


def _confidence(direction: Direction, results: Sequence[SentenceResult]) -> float | None:
    """Return the confidence of the sentence with the lowest score; sentences from a memory do not count."""
    scores = [result.hypotheses[0].score for result in results if result.hypotheses]
    return direction.confidence.probability(min(scores)) if direction.confidence and scores else None


def _matches(
    direction: Direction, prepared: PreparedText, request: TranslationRequest
) -> Callable[[], tuple[Match, ...]] | None:
    """Return a function that looks up the sentences of a text in the memory, or None without a memory."""
    if request.memory is None:
        return None
    entries = request.memory.toward(direction.languages)
    return partial(entries.matches, [sentence.text for sentence in prepared.sentences])
