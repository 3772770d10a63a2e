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
from sixfold.text.tokenizer import FIRST_SPAN
from sixfold.translation.capitals import in_capitals
from sixfold.translation.confidence import MIN_CONFIDENCE
from sixfold.translation.correction import correct_numbers
from sixfold.translation.direction import Direction, language_notices
from sixfold.translation.explain import TranslatedSentence, explain, join_details, move_details
from sixfold.translation.glossary import apply_terms, has_term
from sixfold.translation.guard import Fault, check, search_without_faults
from sixfold.translation.insertion import Insertion, insert_parts
from sixfold.translation.joint_search import Steps, search, search_jointly
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.prepare import Layout, SourceSentence, split_texts
from sixfold.translation.protection import Edit, apply_edits, move_span
from sixfold.translation.request import DecodeOptions, TranslationRequest
from sixfold.translation.result import Alternative, Details, Match, Notice, Sentence, Translation
from sixfold.translation.searches import best_hypotheses, combine_hypotheses, search_in_order

WIDE_BEAM = 8  # of the second search for a sentence whose translation lacks parts that must be copied


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
    insertion: Insertion | None = None  # of the parts that are copied, if the model did not copy them all
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
        written = direction.decode_target((hypothesis or self.hypotheses[0]).tokens)
        edits = self.target_edits(written)
        return apply_edits(in_capitals(written) if self.sentence.read.is_capitals else written, edits)

    def target_edits(self, written: str) -> Sequence[Edit]:
        """Return the edits that put what is copied into a text that the model wrote."""
        if self.insertion is not None:
            return self.insertion.target_edits
        return self.sentence.read.target_edits(written) or ()

    def is_copied(self, direction: Direction, hypothesis: Hypothesis) -> bool:
        """Return whether a hypothesis has every part of the sentence that must be copied exactly once."""
        return self.sentence.read.target_edits(direction.decode_target(hypothesis.tokens)) is not None


def prepare(direction: Direction, texts: Sequence[str], request: TranslationRequest) -> list[PreparedText]:
    """Split texts into sentences of at most as many tokens as the model reads; look them up in the memory.

    The prefix of the request is the beginning of each text, so it belongs to the first sentence only.
    """
    prefix = request.options.prefix
    direction.check_length("prefix", direction.encode_target(prefix))
    entries = (request.memory or TranslationMemory(())).toward(direction.languages)
    # With a prefix the model writes the translation, so the memory must not keep lines from being split and cut.
    unsplit = () if prefix.strip() else entries
    split = split_texts(texts, direction.tokenizer, direction.max_source_tokens, request.options.split, unsplit)
    prepared = []
    for layout in split.layouts:
        sentences = []
        for index, text in enumerate(layout.sentences()):
            sentence = split.sentences[text]
            if index == 0 and prefix.strip():
                sentence = sentence._replace(prefix=tuple(direction.encode_target(sentence.read.mask_target(prefix))))
            else:
                sentence = sentence._replace(memory_translation=entries.exact(text))
            sentences.append(sentence)
        prepared.append(PreparedText(layout, tuple(sentences)))
    return prepared


def decode(direction: Direction, sentences: Sequence[SourceSentence], options: DecodeOptions) -> list[SentenceResult]:
    """Return the result of each sentence. A sentence that occurs several times is decoded once.

    1. All sentences are searched for together, those with the same prefix at a time.
    2. Each sentence is checked by `_check`, which may search again. Sentences that search again do so together.
    3. With `options.details`, tokens and alignment are computed, for all sentences together.
    """
    distinct = [sentence for sentence in dict.fromkeys(sentences) if sentence.memory_translation is None]
    results: dict[SourceSentence, SentenceResult] = {}
    checks = [_check(direction, result, options) for result in _search(direction, distinct, options)]
    for result, milliseconds in search_jointly(direction.engine, checks):
        results[result.sentence] = replace(result, milliseconds=result.milliseconds + milliseconds)
    for sentence in sentences:
        if sentence.memory_translation is not None:
            results.setdefault(sentence, SentenceResult(sentence))
    if options.details:
        computed = explain_results(direction, list(results.values()))
        for result, details in zip(list(results.values()), computed, strict=True):
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
        (*notices, *_fault_notices(direction, sentences, results)), _confidence(direction, results), sentences,
        partial(_details, direction, results, sentences, check_open), _matches(direction, prepared, request),
    )  # fmt: skip


def _search(
    direction: Direction, sentences: Sequence[SourceSentence], options: DecodeOptions
) -> Iterator[SentenceResult]:
    """Yield the hypotheses of sentences, with the time that each took."""
    usual = options.options.search(direction.max_target_tokens)
    groups: dict[tuple[int, ...], list[SourceSentence]] = {}
    for sentence in sentences:
        groups.setdefault(sentence.prefix, []).append(sentence)
    for prefix, group in groups.items():
        start = time.perf_counter()
        sources = [direction.encoder_input(sentence.ids) for sentence in group]
        if prefix:
            hypotheses = direction.engine.decode(sources, usual, [prefix] * len(group))
        else:
            hypotheses = best_hypotheses(direction, sources, usual)
        results = [SentenceResult(*pair) for pair in zip(group, map(tuple, hypotheses), strict=True)]
        milliseconds = 1000 * (time.perf_counter() - start) / max(1, sum(result.tokens for result in results))
        yield from (replace(result, milliseconds=milliseconds * result.tokens) for result in results)


def _check(direction: Direction, result: SentenceResult, options: DecodeOptions) -> Steps[SentenceResult]:
    """Return a result with what is wrong with its best hypothesis put right, as far as that can be.

    1. If it lacks parts that must be copied, search again; if they are still lacking, insert them where their
       neighbours are aligned.
    2. If it has faults, search again.
    3. Put in the terms of the glossary that are missing.
    """
    copied = yield from copy_parts(direction, result, options)
    retried = yield from _retry_faulty(direction, copied, options)
    checked = yield from _apply_glossary(direction, retried, options)
    return checked


def copy_parts(direction: Direction, result: SentenceResult, options: DecodeOptions) -> Steps[SentenceResult]:
    """Return a result whose best hypothesis has every part of the sentence that must be copied.

    1. The likeliest hypothesis that has them all becomes the best one.
    2. If none has, a wider search is made, in the whole vocabulary.
    3. Otherwise the parts are asked for one by one, in the order of the sentence.
    4. Otherwise the sentence is translated without the parts, and these are inserted.
    """
    sentence = result.sentence
    if result.is_copied(direction, result.hypotheses[0]):
        return _only_copied(direction, result)
    wide = options.options.search(direction.max_target_tokens)
    wide = replace(wide, beam=max(WIDE_BEAM, wide.beam), n_best=WIDE_BEAM, ignore_shortlist=True)
    source = direction.encoder_input(sentence.ids)
    hypotheses = yield from search(source, wide, sentence.prefix or None)
    copied = [one for one in (*result.hypotheses, *hypotheses) if result.is_copied(direction, one)]
    if copied:
        return replace(result, hypotheses=tuple(copied[: max(1, options.options.n_best)]))
    if 1 < len(sentence.read.tokens) <= sentence.read.spans:
        tokens = [direction.target_tokenizer.span_ids[ord(token) - FIRST_SPAN] for token in sentence.read.tokens]
        in_order = yield from search_in_order(source, tokens, sentence.prefix, wide)
        if in_order is not None and result.is_copied(direction, in_order):
            return replace(result, hypotheses=(in_order,))
    hypothesis, insertion = insert_parts(direction, sentence.read, options.options)
    return replace(result, hypotheses=(hypothesis,), insertion=insertion)


def _only_copied(direction: Direction, result: SentenceResult) -> SentenceResult:
    """Return a result without the hypotheses that lack a part that must be copied."""
    copied = [hypothesis for hypothesis in result.hypotheses if result.is_copied(direction, hypothesis)]
    return replace(result, hypotheses=tuple(copied))


def _retry_faulty(direction: Direction, result: SentenceResult, options: DecodeOptions) -> Steps[SentenceResult]:
    """Search again for a sentence whose best hypothesis has faults, and note the faults that remain.

    If a number is still wrong, the model continues from the right one.

    What the model read is compared with what it wrote: there a part that is copied is the same on both sides.
    """
    if not options.options.guard:
        return result
    sentence, hypotheses = result.sentence, result.hypotheses
    written = direction.decode_target(hypotheses[0].tokens)
    read = sentence.read.text if result.insertion is None else result.insertion.read
    faults = yield from check(direction, read, written)
    if faults and not sentence.prefix and result.insertion is None:  # a prefix is the caller's choice
        again = options.options.search(direction.max_target_tokens)
        better, *_ = yield from search_without_faults(direction, read, sentence.ids, faults, again)
        fewer = yield from check(direction, read, direction.decode_target(better.tokens))
        if len(fewer) < len(faults) and result.is_copied(direction, better):
            hypotheses, faults = (better, *hypotheses[1:]), fewer
        if any(fault.kind == "numbers" for fault in faults):
            is_copied = partial(result.is_copied, direction)
            first = hypotheses[0]
            corrected = yield from correct_numbers(direction, read, sentence.ids, first, options.options, is_copied)
            if corrected is not None:
                hypotheses = corrected, *hypotheses[1:]
                faults = yield from check(direction, read, direction.decode_target(corrected.tokens))
    return replace(result, hypotheses=hypotheses, faults=(*faults, *_doubts(direction, hypotheses[0])))


def _doubts(direction: Direction, hypothesis: Hypothesis) -> Iterator[Fault]:
    """Yield a fault for a translation that the model itself takes for a bad one."""
    confidence = direction.confidence.probability(hypothesis.score) if direction.confidence else 1.0
    if confidence < MIN_CONFIDENCE:
        yield Fault("confidence", f"the translation is probably wrong: its confidence is {confidence:.2f}")


def _apply_glossary(direction: Direction, result: SentenceResult, options: DecodeOptions) -> Steps[SentenceResult]:
    """Put the glossary's terms into a translation, with a fault for each term that could not be used."""
    sentence, first = result.sentence, result.hypotheses[0]
    if sentence.prefix or not options.glossary.terms:
        return result
    read = sentence.read.text
    terms = options.glossary.find_terms(read, direction.languages[0])
    if not terms:
        return result
    best, unused = first, [term for _, term in terms]
    if result.insertion is None:
        best, unused = yield from apply_terms(direction, read, sentence.ids, first, terms, options.options)
    if result.insertion is None and not result.is_copied(direction, best):
        best = first
        written = direction.decode_target(first.tokens)
        unused = [term for _, term in terms if not has_term(written, term, direction.languages[1])]
    new = [Fault("glossary", f"{term.source}: {term.target!r} could not be used") for term in dict.fromkeys(unused)]
    return replace(result, hypotheses=(best, *result.hypotheses[1:]), faults=(*result.faults, *new))


def explain_results(direction: Direction, results: Sequence[SentenceResult]) -> list[Details]:
    """Return tokens and alignment of each result, with spans in its sentence and in its translation."""
    translated, edits = [], []
    for result in results:
        tokens = result.hypotheses[0].tokens if result.hypotheses else ()
        read, insertion = result.sentence.read, result.insertion
        written = direction.decode_target(tokens)
        translated.append(TranslatedSentence(insertion.read if insertion else read.text, written, tokens))
        source_edits = insertion.source_edits if insertion else read.source_edits()
        edits.append((source_edits, result.target_edits(written), result.translation(direction)))
    return [
        move_details(details, source_edits, target_edits, translation)
        for details, (source_edits, target_edits, translation) in zip(
            explain(direction, translated), edits, strict=True
        )
    ]


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
        computed = explain_results(direction, [results[index] for index in missing])
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


def _fault_notices(
    direction: Direction, sentences: Sequence[Sentence], results: Sequence[SentenceResult]
) -> Iterator[Notice]:
    """Yield the faults of all sentences as notices, with their spans in the whole translation."""
    for sentence, result in zip(sentences, results, strict=True):
        start = sentence.target[0]
        for kind, message, span in result.faults:
            moved = span and move_span(span, result.target_edits(direction.decode_target(result.hypotheses[0].tokens)))
            yield Notice(kind, message, None if moved is None else (moved[0] + start, moved[1] + start))


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
