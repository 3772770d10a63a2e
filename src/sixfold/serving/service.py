"""Does the work of the routes: texts and documents through the sentence cache and the queue, scores, and languages."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, NamedTuple, TypeVar

from sixfold.explorer.explore import Explorer
from sixfold.serving.cache import SentenceCache
from sixfold.serving.job_pool import JobPool, busy
from sixfold.serving.metrics import Metrics
from sixfold.serving.models import LoadedModels, ReloadingModels
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import HttpError
from sixfold.serving.sentence_queue import BatchSize, QueueFull, SentenceQueue
from sixfold.serving.text_progress import PendingText, TextProgress
from sixfold.serving.turns import BatchKey
from sixfold.text.detection import LanguageCandidate
from sixfold.translation.documents.document import Document
from sixfold.translation.documents.steps import Report, TextBatch, document_steps
from sixfold.translation.hops import HopBatch, translate_along
from sixfold.translation.pipeline import SentenceResult, decode, prepare
from sixfold.translation.prepare import SourceSentence
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Translation
from sixfold.translation.translator import Translator

BATCH_TOKENS = BatchSize(full=768, small=128)  # of a batch, for each core
BATCHES = 2  # that are decoded at the same time, so that no core waits while one of them ends
MAX_EXPLORER_REQUESTS = 16  # that run or wait
TEXT_THREADS = 2  # long texts that are split or assembled at once
DOCUMENT_THREADS = 4  # documents that are read or written at once; a large one takes a minute
INLINE_CHARACTERS = 2000  # of texts that are split in the event loop, which takes about a millisecond
INLINE_SENTENCES = 20  # of texts that are assembled in the event loop
INLINE_TEXTS = 20  # whose languages are detected in the event loop
LOOKUPS = 500  # sentences that are looked up in the cache before others get a turn in the event loop
MAX_JOBS = 64  # scores and alternatives that run or wait, and as many documents
Result = TypeVar("Result")


class Caller(NamedTuple):
    """Who sends a request, and whether it must be answered before the deadline."""

    client: str  # the name of a key, or an address: clients take turns
    has_deadline: bool = False
    needs_all: bool = False  # what is done at the deadline is of use only if the cache keeps it


class Service:
    """The work of a server. It must be created inside the event loop that uses it."""

    def __init__(self, models: ReloadingModels, options: ServeOptions, metrics: Metrics) -> None:
        self.models, self._metrics, self._options = models, metrics, options
        cores = options.threads or os.cpu_count() or 1
        batch_size = BatchSize(*(tokens * cores for tokens in BATCH_TOKENS))
        self.queue = SentenceQueue(self._decode_batch, BATCHES, batch_size, options.queue)
        self.queue.on_batch = metrics.record_batch
        self._job_pool = JobPool("job", 2, MAX_JOBS)  # for scores and alternatives
        self._text_pool = JobPool("text", TEXT_THREADS, math.inf)
        self._document_pool = JobPool("document", DOCUMENT_THREADS, MAX_JOBS)
        self._explorer_pool = JobPool("explorer", 1, MAX_EXPLORER_REQUESTS)
        self._cache = SentenceCache(options.cache)
        self._generation = models.generation

    async def translate(
        self, texts: Sequence[str], request: TranslationRequest, caller: Caller, progress: TextProgress | None = None
    ) -> list[Translation]:
        """Return the translations in the order of the texts. `progress` shows how far they are.

        1. Each text gets a route, and is split into sentences.
        2. Sentences that the cache has are taken from it; the others go through the queue.
        3. The translations are assembled. With a pivot language, their second hop begins with 1.

        HttpError 503 is raised at once if the queue is so long that nothing will be done before the deadline.
        """
        self._drop_old_cache()
        self._metrics.counts["texts"] += len(texts)
        with self.models.borrow() as loaded:
            size = sum(map(len, texts))
            routes = await self.maybe_in_thread(
                size > INLINE_CHARACTERS, lambda: [loaded.translator.route(text, request) for text in texts]
            )
            steps = translate_along(texts, routes, request)
            batches = next(steps)
            progress = progress or TextProgress()
            first_hops: dict[int, PendingText] = {}
            try:
                while True:
                    batches = steps.send(await self._translate_hops(loaded, batches, caller, progress, first_hops))
            except StopIteration as end:
                translations: list[Translation] = end.value
                return translations

    def deadline(self) -> asyncio.Timeout:
        """Return a context that raises TimeoutError when the time for a response has passed."""
        return asyncio.timeout(self._options.deadline)

    async def before_deadline(self, work: Coroutine[Any, Any, Result], progress: TextProgress) -> Result:
        """Return the result of some work, or raise HttpError 503 at the deadline.

        Sentences that are done by then stay in the cache, so that the same request goes on from there.
        """
        try:
            async with self.deadline():
                return await work
        except TimeoutError:
            raise self.too_late(progress) from None

    def check_routes(self, texts: Sequence[str], request: TranslationRequest) -> None:
        """Raise RequestError if no model translates one of the texts; it takes up to a millisecond for each."""
        with self.models.borrow() as loaded:
            for text in texts:
                loaded.translator.route(text, request)

    def detect_language(self, text: str) -> list[LanguageCandidate]:
        """Return the languages that a text may be in, the likeliest first."""
        with self.models.borrow() as loaded:
            return loaded.translator.detect(text)

    async def read_document(self, data: bytes, form: str, name: str = "document") -> Document:
        """Read a document. It is read in a thread, which stops if the caller is cancelled."""
        limit = self._options.max_file
        return await self._run_in_thread(
            self._document_pool, lambda _: Document.read(data, form, name, max_unpacked_bytes=limit)
        )

    async def translate_document(
        self,
        document: Document,
        request: TranslationRequest,
        caller: Caller,
        progress: TextProgress | None = None,
    ) -> tuple[bytes, Report]:
        """Return the translation of a document that has been read; the request names both languages.

        Its sentences share batches with other requests. Placing markup and writing run in threads.
        """
        progress = progress or TextProgress()
        steps = document_steps(document, request)

        def advance(
            translations: Sequence[Sequence[Translation]] | None, _: LoadedModels
        ) -> list[TextBatch] | tuple[bytes, Report]:
            try:
                return next(steps) if translations is None else steps.send(translations)
            except StopIteration as end:
                result: tuple[bytes, Report] = end.value
                return result

        with self.models.borrow():  # all parts of a document are translated by the same models
            step = await self._run_in_thread(self._document_pool, partial(advance, None))
            while isinstance(step, list):
                translated = await self._translate_all(step, caller, progress)
                step = await self._run_in_thread(self._document_pool, partial(advance, translated))
            return step

    async def _translate_all(
        self, batches: Sequence[TextBatch], caller: Caller, progress: TextProgress
    ) -> list[list[Translation]]:
        """Translate batches of texts at the same time, so that the progress soon knows all of their sentences."""
        return await gather(self.translate(batch.texts, batch.request, caller, progress) for batch in batches)

    async def _translate_hops(
        self, models: LoadedModels, batches: Sequence[HopBatch], caller: Caller, progress: TextProgress,
        first_hops: dict[int, PendingText],
    ) -> list[list[Translation]]:  # fmt: skip
        """Translate batches by their models. `first_hops` collects the texts on the first of two hops."""
        pending: list[list[PendingText]] = []
        for batch in batches:
            takes_long = sum(map(len, batch.texts)) > INLINE_CHARACTERS or not batch.direction.is_open
            prepared = await self.maybe_in_thread(
                takes_long, partial(prepare, batch.direction, batch.texts, batch.request)
            )
            if not batch.indices:  # terms of a glossary
                pending.append([PendingText(batch, each) for each in prepared])
                continue
            pairs = zip(batch.indices, prepared, strict=True)
            pending.append([PendingText(batch, each, first_hops.get(index)) for index, each in pairs])
            progress.begin(batch.indices, pending[-1])
            if batch.first_of is not None:
                first_hops |= dict(zip(batch.indices, pending[-1], strict=True))
        for batch, texts in zip(batches, pending, strict=True):
            options = batch.request.decode_options(batch.direction.languages)
            await self._decode(BatchKey(models, batch.direction, options), texts, caller)
        return [await self.assemble(texts) for texts in pending]

    async def _decode(self, key: BatchKey, texts: Sequence[PendingText], caller: Caller) -> None:
        """Fill in the results of all sentences, from the memory, the cache or the queue."""
        positions: dict[SourceSentence, list[tuple[PendingText, int]]] = {}
        for text in texts:
            for index, sentence in enumerate(text.prepared.sentences):
                positions.setdefault(sentence, []).append((text, index))
        missing = []
        for number, (sentence, places) in enumerate(positions.items()):
            if number % LOOKUPS == LOOKUPS - 1:
                await asyncio.sleep(0)
            cached = (
                SentenceResult(sentence) if sentence.memory_translation is not None else self._cache.get(key, sentence)
            )
            if cached is None:
                missing.append(sentence)
            else:
                fill_in(places, cached)
        self._metrics.counts["sentences"] += len(positions)
        self._metrics.counts["cache_hits"] += len(positions) - len(missing)
        self._check_wait(caller, missing)
        try:
            async with aclosing(self.queue.decode(key, missing, caller.client)) as results:
                async for result in results:
                    self._cache.put(key, result)
                    self._metrics.counts["target_tokens"] += result.tokens - len(result.sentence.ids)
                    fill_in(positions[result.sentence], result)
        except QueueFull:
            raise busy() from None

    async def assemble(self, texts: Sequence[PendingText]) -> list[Translation]:
        """Return the translations of texts whose sentences are all translated."""
        is_large = sum(len(text.results) for text in texts) > INLINE_SENTENCES
        return await self.maybe_in_thread(is_large, lambda: [text.translation for text in texts])

    def _check_wait(self, caller: Caller, sentences: Sequence[SourceSentence]) -> None:
        """Raise HttpError 503 if the queue is so long that nothing of use will be done by the deadline.

        That is one batch of these sentences. Where nothing is kept, a caller may need them all.
        """
        tokens, deadline = sum(len(sentence.ids) for sentence in sentences), self._options.deadline
        if not tokens or not caller.has_deadline:
            return
        if not caller.needs_all or self._options.cache:
            tokens = min(BATCH_TOKENS.small, tokens)
        elif (alone := self.queue.rate.seconds_for(tokens)) > deadline:
            raise HttpError(
                503, f"this would take {alone:.0f} s, and the deadline is {deadline:g} s", "send less at once"
            )
        if (wait := self.queue.seconds_for(caller.client, tokens)) > deadline:
            raise busy(math.ceil(wait - deadline))

    def too_late(self, progress: TextProgress) -> HttpError:
        """Return the error for a request that is not done at the deadline."""
        self.count_deadline()
        done = f"{progress.done} of {progress.total} sentences are translated"
        message = f"not done within {self._options.deadline:g} s; {done}"
        if self._options.cache and progress.done:
            return HttpError(503, f"{message} and kept", "send the same again to go on", retry_after=1)
        wait = math.ceil(self.queue.rate.seconds_for(self.queue.tokens))
        return HttpError(503, message, "send less at once, or try again later", retry_after=max(1, wait))

    def count_deadline(self) -> None:
        """Count a request that was not done at its deadline."""
        self._metrics.counts["deadlines"] += 1

    async def run_with_translator(self, work: Callable[[Translator], Result]) -> Result:
        """Run a function of the translator in a thread, outside the batches, until the deadline."""
        return await self._run_in_thread(self._job_pool, lambda loaded: work(loaded.translator), self._options.deadline)

    async def run_with_explorer(self, work: Callable[[Explorer], Result]) -> Result:
        """Run a function of the explorer in its own thread, until the deadline.

        One runs at a time, because each takes seconds and much memory. Translations do not wait for it.
        """
        return await self._run_in_thread(
            self._explorer_pool, lambda loaded: work(loaded.explorer), self._options.deadline
        )

    async def maybe_in_thread(self, is_long: bool, work: Callable[[], Result]) -> Result:
        """Run a function here, or in a thread if it takes long: then other requests are served meanwhile."""
        return await self._run_in_thread(self._text_pool, lambda _: work()) if is_long else work()

    async def _run_in_thread(
        self, pool: JobPool, work: Callable[[LoadedModels], Result], deadline: float | None = None
    ) -> Result:
        """Run a function of the models in a thread of the pool; they stay open until it ends."""

        def run() -> Result:
            with self.models.borrow() as loaded:
                return work(loaded)

        return await pool.run(run, deadline)

    async def close(self) -> None:
        await self.queue.close()
        for pool in (self._job_pool, self._text_pool, self._document_pool, self._explorer_pool):
            pool.close()
        self.models.close()

    def gauges(self) -> dict[str, float]:
        """Return the current values of the gauges for /metrics."""
        return {
            "queue_sentences": self.queue.sentences,
            "queue_tokens": self.queue.tokens,
            "cache_bytes": self._cache.size,
            "model_generation": self.models.generation,
        }

    def _decode_batch(self, key: BatchKey, sentences: Sequence[SourceSentence]) -> list[SentenceResult]:
        """Decode the sentences of a batch; the models stay open, even if all of their requests are cancelled."""
        with self.models.hold(key.models):
            return decode(key.direction, sentences, key.options)

    def _drop_old_cache(self) -> None:
        if self._generation != self.models.generation:  # the cache holds translations of an older model
            self._generation = self.models.generation
            self._cache.clear()


def fill_in(places: Sequence[tuple[PendingText, int]], result: SentenceResult) -> None:
    """Put the result of a sentence wherever it occurs."""
    for text, index in places:
        text.set_result(index, result)


async def gather(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Run coroutines at the same time and return their results. If one fails, the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]
