"""Strings in, translations out: choose the direction, prepare sentences, decode them, assemble the translations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Self, TypeVar

from sixfold.config import Compute
from sixfold.decoding.options import Hypothesis
from sixfold.engines.engine import Engine
from sixfold.engines.memory import engine_memory, file_memory
from sixfold.engines.pool import ModelPool, PooledEngine, PooledFile
from sixfold.errors import RequestError
from sixfold.modelfile import ModelFile
from sixfold.text.detection import LanguageCandidate
from sixfold.text.sentences import is_spaced
from sixfold.translation.direction import Direction, directions_of
from sixfold.translation.explain import join_details
from sixfold.translation.glossary import Glossary
from sixfold.translation.hops import HopBatch, translate_along
from sixfold.translation.joint_search import mean_logprob
from sixfold.translation.loading import (
    Device,
    ModelSource,
    check_threads,
    choose_device,
    load,
    model_sources,
    open_engine,
    reader_of,
    tokenizer_of,
)
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.pipeline import SentenceResult, assemble, decode, explain_results, prepare
from sixfold.translation.prepare import SourceSentence, replace_surrogates, source_sentence
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Details, Sentence, Translation, TranslationPart
from sixfold.translation.routing import (
    Route,
    SourceChoice,
    check_languages,
    choose_direction,
    choose_route,
    choose_source,
    detect_language,
    direction_names,
)

MAX_WINDOW = 1024  # texts that `stream` holds at once
MAX_PART_SENTENCES = 32  # sentences of a text that `stream_sentences` decodes at once
PROGRESS_SENTENCES = 128  # sentences between two reports of progress
Item = TypeVar("Item")
Progress = Callable[[int, int], None]  # called with the number of sentences that are done, and that of all


class Translator:
    """One model or several, ready to translate. A translator may be used by many threads at once."""

    def __init__(
        self,
        model: ModelSource | Sequence[ModelSource] | None = None,
        device: Device = "auto",
        threads: int | None = None,
        compute: Compute = "int8",
        shortlist: bool = True,
        memory: int | ModelPool | None = None,
    ) -> None:
        """Load the models, or those of the package if `model` is None. An empty tuple loads none: then all is refused.

        `threads`: sentences that a CPU decodes at once; None: as many as it has cores. `compute`: int8 becomes float16
        on a GPU. Without `shortlist`, a CPU computes the probabilities of the whole vocabulary for every token.

        With `memory`, each model is opened when it is first used, and the least recently used ones are closed as soon
        as all open models take more bytes than that. A pool is shared with those who have it too.
        """
        check_threads(threads)
        self._device = choose_device(device)
        self._directions: dict[tuple[str, str], Direction] = {}
        self._duplicates: list[Direction] = []  # directions that an earlier model has already
        self._engines: list[Engine] = []
        self._is_open = True
        self.files: list[ModelFile] = []
        self._pool = ModelPool(memory) if isinstance(memory, int) else memory

        def start(file: ModelFile) -> Engine:
            return open_engine(file, self._device, threads, compute, shortlist)

        for each in () if model == () else model_sources(model):
            if self._pool is None:
                file = load(each)
                self._add(each, file, start(file), None)
            else:
                reader = reader_of(each)
                file = reader()
                pooled = PooledFile(self._pool, file_memory(file), reader)
                engine = PooledEngine(self._pool, file.config.model, engine_memory(file, compute), start, pooled)
                self._add(each, file, engine, pooled)

    def _add(self, source: ModelSource, file: ModelFile, engine: Engine, pooled: PooledFile | None) -> None:
        """Add a model. Of one of a pool only the header stays in memory."""
        self._engines.append(engine)
        self.files.append(file if pooled is None else file.header())
        for direction in directions_of(file, engine, tokenizer_of(file, source), pooled):
            if self._directions.setdefault(direction.languages, direction) is not direction:
                self._duplicates.append(direction)

    @property
    def directions(self) -> list[tuple[str, str]]:
        """The pairs of source and target language."""
        return list(self._directions)

    def translate(
        self,
        text: str,
        source: str | None = None,
        target: str | None = None,
        options: TranslateOptions | None = None,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
        pivot: bool = False,
    ) -> Translation:
        """Translate a text of any length; its lines, blank ones too, and its white space stay.

        A text in the target language already stays as it is, and so does one that no model translates into it.
        """
        check_text("text", text, "translate_batch() takes a list")
        return self.translate_batch([text], source, target, options, glossary, memory, pivot)[0]

    def translate_batch(
        self,
        texts: Sequence[str],
        source: str | None = None,
        target: str | None = None,
        options: TranslateOptions | None = None,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
        pivot: bool = False,
    ) -> list[Translation]:
        """Translate many texts at once, which is much faster than one by one. Each may have its own direction.

        Terms of the glossary are used; a warning names those that could not be. A sentence or line that the memory has
        becomes its translation there, unless the translation must start with a prefix.
        """
        if not isinstance(texts, Sequence) or isinstance(texts, str | bytes | bytearray):
            raise RequestError(
                f"texts: expected a list of strings; got {texts!r:.60}",
                "translate() takes a single text, stream() takes any iterable",
            )
        for index, text in enumerate(texts):
            check_text(f"texts[{index}]", text, "read bytes with .decode()")
        request = TranslationRequest(source, target, options or TranslateOptions(), glossary, memory, pivot=pivot)
        return self.translate_request(texts, request)

    def translate_request(
        self, texts: Sequence[str], request: TranslationRequest, progress: Progress | None = None
    ) -> list[Translation]:
        """Translate texts as a request says; texts of one direction are decoded together.

        `progress` is called from time to time with the number of sentences that are done and that of all sentences.
        """
        return self.translate_routed(texts, [self.route(text, request) for text in texts], request, progress)

    def translate_routed(
        self,
        texts: Sequence[str],
        routes: Sequence[Route],
        request: TranslationRequest,
        progress: Progress | None = None,
    ) -> list[Translation]:
        """Translate each text along its route, as `translate_request` does along the routes that it chooses."""
        steps = translate_along(texts, routes, request)
        try:
            batches = next(steps)
            while True:
                batches = steps.send(self._translate_hops(batches, progress))
        except StopIteration as end:
            translations: list[Translation] = end.value
            return translations

    def _translate_hops(self, batches: Sequence[HopBatch], progress: Progress | None) -> list[list[Translation]]:
        """Return the translations of each batch: prepare all, then decode and assemble one after the other."""
        prepared = [prepare(batch.direction, batch.texts, batch.request) for batch in batches]
        total = sum(len(text.sentences) for of_batch in prepared for text in of_batch)
        done = 0
        translations = []
        for batch, of_batch in zip(batches, prepared, strict=True):
            sentences = [sentence for text in of_batch for sentence in text.sentences]
            options = batch.request.decode_options(batch.direction.languages)
            results: list[SentenceResult] = []
            size = PROGRESS_SENTENCES if progress else max(1, len(sentences))
            for start in range(0, len(sentences), size):
                results += decode(batch.direction, sentences[start : start + size], options)
                if progress:
                    progress(done + len(results), total)
            done += len(results)
            remaining = iter(results)
            translations.append([
                assemble(
                    batch.direction, text, list(islice(remaining, len(text.sentences))), batch.request, self._check_open
                )
                for text in of_batch
            ])  # fmt: skip
        return translations

    def stream_sentences(
        self,
        text: str,
        source: str | None = None,
        target: str | None = None,
        options: TranslateOptions | None = None,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
        pivot: bool = False,
    ) -> Iterator[TranslationPart]:
        """Translate a text and yield its translation part by part, as its sentences are translated.

        The last part has the whole translation and no text of its own.
        """
        check_text("text", text, "stream() takes many texts")
        request = TranslationRequest(source, target, options or TranslateOptions(), glossary, memory, pivot=pivot)
        return self.stream_request(text, request)

    def stream_request(self, text: str, request: TranslationRequest) -> Iterator[TranslationPart]:
        """Do what `stream_sentences` does, for a request. Through a pivot language, the last hop is streamed."""
        route = self.route(text, request)
        steps = translate_along([text], [route], request)
        (batch,) = next(steps)
        while batch.route is None:
            (batch,) = steps.send(self._translate_hops([batch], None))
        direction = batch.direction
        (prepared,) = prepare(direction, batch.texts, batch.request)
        decode_options = batch.request.decode_options(direction.languages)
        results: list[SentenceResult] = []

        def translations() -> Iterator[str]:
            for window in windows(iter(prepared.sentences), MAX_PART_SENTENCES):
                for result in decode(direction, window, decode_options):
                    results.append(result)
                    yield result.translation(direction)

        total = len(prepared.sentences)
        for piece in prepared.layout.pieces(translations(), is_spaced(direction.languages[1])):
            yield TranslationPart(route.convert(piece), len(results), total)
        whole = assemble(direction, prepared, results, batch.request, self._check_open)
        try:
            steps.send([[whole]])
        except StopIteration as end:
            yield TranslationPart("", total, total, end.value[0])

    def stream(
        self,
        texts: Iterable[str],
        source: str | None = None,
        target: str | None = None,
        options: TranslateOptions | None = None,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
        pivot: bool = False,
    ) -> Iterator[Translation]:
        """Translate any number of texts in their order; only a window of them is held at once."""
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise RequestError(f"texts: expected an iterable of strings; got {texts!r:.60}", "put it into a list")
        return (
            translation
            for window in windows(iter(texts), MAX_WINDOW)
            for translation in self.translate_batch(window, source, target, options, glossary, memory, pivot)
        )

    def score(self, text: str, translation: str, source: str | None = None, target: str | None = None) -> Translation:
        """Score a given translation of a text; each of the two is taken as one sentence."""
        check_text("text", text)
        check_text("translation", translation)
        direction = self.direction(text, source, target)
        text = replace_surrogates(text)
        sentence = source_sentence(text.strip(), direction.tokenizer)
        tokens = direction.encode_target(sentence.read.mask_target(translation))
        direction.check_length("text", sentence.ids)
        direction.check_length("translation", tokens)
        (logprobs,) = direction.engine.score([direction.encoder_input(sentence.ids)], [tokens])
        score = mean_logprob(logprobs)
        return self._assemble_unsplit(direction, text, sentence, Hypothesis(tokens, score))

    def alternatives(
        self,
        text: str,
        prefix: str = "",
        count: int = 5,
        source: str | None = None,
        target: str | None = None,
    ) -> list[Translation]:
        """Return translations that start with `prefix` and continue with different words, the likeliest first."""
        check_text("text", text)
        check_text("prefix", prefix)
        direction = self.direction(text, source, target)
        text = replace_surrogates(text)
        sentence = source_sentence(text.strip(), direction.tokenizer)
        prefix_tokens = direction.encode_target(sentence.read.mask_target(prefix))
        direction.check_length("text", sentence.ids)
        direction.check_length("prefix", prefix_tokens)
        search = TranslateOptions(n_best=count).search(direction.max_target_tokens)
        if not sentence.ids:
            return []
        encoder_input = direction.encoder_input(sentence.ids)
        hypotheses = direction.engine.alternatives(encoder_input, prefix_tokens, search)
        targets = [hypothesis.tokens for hypothesis in hypotheses]
        # The score of an engine leaves out the prefix; this one is of the whole translation.
        logprobs = direction.engine.score([encoder_input] * len(targets), targets)
        scored = zip(map(mean_logprob, logprobs), targets, strict=True)
        by_text: dict[str, Translation] = {}
        for score, tokens in sorted(scored, key=lambda pair: -pair[0]):
            if sentence.read.target_edits(direction.decode_target(tokens)) is None:  # it lost what must be copied
                continue
            translation = self._assemble_unsplit(direction, text, sentence, Hypothesis(tokens, score))
            by_text.setdefault(translation.text, translation)
        return list(by_text.values())

    def direction(
        self, text: str, source: str | None = None, target: str | None = None, model: str | None = None
    ) -> Direction:
        """Return the direction for the languages that the caller names, or else for the language of the text.

        `model` names a model file, without its suffix; without it, the first model of a direction is taken.
        """
        self._check_open()
        if model is None:
            return choose_direction(self._directions, text, source, target)
        every = self._all_directions()
        of_model = {direction.languages: direction for direction in every if direction.header.name == model}
        if not of_model:
            names = ", ".join(dict.fromkeys(direction.header.name for direction in every))
            raise RequestError(f"model: expected one of {names}; got {model!r}")
        return choose_direction(of_model, text, source, target)

    def route(self, text: str, request: TranslationRequest) -> Route:
        """Return the models that translate a text, for the languages of a request or else for that of the text."""
        self._check_open()
        return choose_route(self._directions, text, request.source, request.target, request.pivot)

    def choose_source(
        self, text: str, source: str | None = None, target: str | None = None, pivot: bool = False
    ) -> SourceChoice:
        """Return the language that a text is translated from, as `route` decides it, and how sure that is."""
        self._check_open()
        return choose_source(self._directions, text, source, target, pivot)

    def detect(self, text: str) -> list[LanguageCandidate]:
        """Return the languages that a text may be in, the likeliest first, with their probabilities.

        What these lack to 1 is the probability of a language that Sixfold does not know.
        """
        self._check_open()
        check_text("text", text)
        return detect_language(self._directions, text)

    def check_languages(self, source: str | None = None, target: str | None = None, pivot: bool = False) -> None:
        """Raise RequestError if these languages fit no direction, or if the caller must name more of them.

        This needs no text, so that a mistake is reported before any text is read.
        """
        self._check_open()
        check_languages(self._directions, source, target, pivot)

    def check_told(self, source: str | None = None, target: str | None = None) -> None:
        """Call `check_languages`, which is the name of this method now."""
        message = "Translator.check_told is now Translator.check_languages"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        self.check_languages(source, target)

    def close(self) -> None:
        """Release the models and their memory; the translator cannot be used afterwards."""
        self._is_open = False
        self._directions.clear()
        self._duplicates.clear()
        while self._engines:
            self._engines.pop().close()
        if self._pool is not None:
            self._pool.close_all()

    def __repr__(self) -> str:
        """Return the directions, models and device of an open translator, or that it is closed."""
        if not self._is_open:
            return "<Translator, closed>"
        models = dict.fromkeys(direction.header.name for direction in self._all_directions())
        return f"<Translator {direction_names(self._directions)} with {', '.join(models)} on {self._device}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _all_directions(self) -> list[Direction]:
        return [*self._directions.values(), *self._duplicates]

    def _check_open(self) -> None:
        if not self._is_open:
            raise RequestError("translator: expected an open one; this one is closed", "open another")

    def _assemble_unsplit(
        self, direction: Direction, text: str, sentence: SourceSentence, hypothesis: Hypothesis
    ) -> Translation:
        """Return the translation of a text that was decoded as one sentence."""
        result = SentenceResult(sentence, (hypothesis,))
        translation = result.translation(direction)
        start = text.index(sentence.text)
        spans = Sentence((start, start + len(sentence.text)), (0, len(translation)))

        def explain_whole() -> Details:
            self._check_open()
            return join_details([spans], explain_results(direction, [result]))

        curve = direction.confidence
        confidence = None if curve is None or not hypothesis.tokens else curve.probability(hypothesis.score)
        return Translation(
            text, translation, hypothesis.score, direction.languages, confidence=confidence, sentences=(spans,),
            _explain=explain_whole,
        )  # fmt: skip


def windows(items: Iterator[Item], max_size: int) -> Iterator[list[Item]]:
    """Yield windows of items: one item first, so that its result comes soon, then twice as many each time."""
    size = 1
    while window := list(islice(items, size)):
        yield window
        size = min(2 * size, max_size)


def check_text(name: str, text: str, hint: str | None = None) -> None:
    """Raise RequestError if a value, which `name` names, is not a string."""
    if not isinstance(text, str):
        raise RequestError(f"{name}: expected a string; got {text!r:.60}", hint)
