"""Does the work of the routes: translations through the cache and the batcher, documents, scores, and languages."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from typing import Any, TypeVar

from sixfold.explorer.explore import Explorer
from sixfold.serving.batcher import Batcher, QueueFull, RequestOptions
from sixfold.serving.cache import Cache, translation_bytes
from sixfold.serving.metrics import Metrics
from sixfold.serving.models import LoadedModels, ReloadingModels
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import HttpError
from sixfold.text.languages import SCRIPTS, count_characters, guess_language, letters
from sixfold.translation.cancellation import Cancelled, cancellable
from sixfold.translation.direction import Direction
from sixfold.translation.documents.document import Document, Report, read_parts, translate_parts
from sixfold.translation.glossary import Glossary
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.result import Translation
from sixfold.translation.translator import Translator

PIVOT_LANGUAGE = "en"
MAX_EXPLORER_REQUESTS = 16  # that run or wait
DOCUMENT_THREADS = 4  # documents that are read or assembled at once; most of the time they wait for translations
MAX_JOBS = 64  # documents, scores and alternatives that run or wait
Result = TypeVar("Result")


class Service:
    """The work of a server. It must be created inside the event loop that uses it."""

    def __init__(self, models: ReloadingModels, options: ServeOptions, metrics: Metrics) -> None:
        self.models, self._metrics = models, metrics
        cores = options.threads or os.cpu_count() or 1
        self.batcher = Batcher(
            self._translate_batch, workers=2, batch_size=max(2000, 1200 * cores), max_queue=options.queue
        )
        self.batcher.on_batch = metrics.batch.add
        self._options = options
        self._job_pool = ThreadPoolExecutor(2, thread_name_prefix="job")  # for scores and alternatives
        self._document_pool = ThreadPoolExecutor(DOCUMENT_THREADS, thread_name_prefix="document")
        self._explorer_pool = ThreadPoolExecutor(1, thread_name_prefix="explorer")
        self._explorer_requests = 0
        self._jobs = 0
        self._cache: Cache[Translation] = Cache(options.cache)
        self._generation = models.generation

    async def translate(self, texts: Sequence[str], request: RequestOptions, pivot: bool = False) -> list[Translation]:
        """Return the translations in the order of the texts, from the cache where it has them.

        With `pivot`, a direction that no model has is translated through English.
        """
        if pivot and self._needs_pivot(request):
            middle = await self.translate(texts, request._replace(target=PIVOT_LANGUAGE))
            options = TranslateOptions(request.options.beam, request.options.n_best)
            second = request._replace(source=PIVOT_LANGUAGE, options=options)
            return await self.translate([each.text for each in middle], second)
        if self._generation != self.models.generation:  # the cache holds translations of an older model
            self._generation = self.models.generation
            self._cache = Cache(self._cache.limit)
        # Callers get copies: details that they compute later must not grow an entry whose size has been counted.
        translations = {text: copy(self._cache.get(request.cache_key(text))) for text in dict.fromkeys(texts)}
        missing = [text for text, cached in translations.items() if cached is None]
        cache = self._cache
        try:
            new = await self.batcher.translate(missing, request) if missing else []
        except QueueFull:
            raise busy() from None
        for text, translation in zip(missing, new, strict=True):
            translations[text] = translation
            entry = copy(translation)
            cache.put(request.cache_key(text), entry, translation_bytes(entry))
        self._metrics.counts["target_tokens"] += self._count_tokens(new)
        self._metrics.counts["texts"] += len(texts)
        self._metrics.counts["cache_hits"] += len(texts) - len(missing)
        return [result for text in texts if (result := translations[text]) is not None]

    def check_languages(self, request: RequestOptions, pivot: bool = False) -> None:
        """Raise RequestError if no model translates between the languages of a request."""
        source = PIVOT_LANGUAGE if pivot and self._needs_pivot(request) else request.source
        with self.models.borrow() as loaded:
            loaded.translator.check_languages(source, request.target)

    async def read_document(self, data: bytes, form: str, name: str = "document") -> dict[str, Document]:
        """Return the parts of a document. It is read in a thread, which stops if the caller is cancelled."""
        limit = self._options.max_file
        return await self._run_job(
            self._document_pool, lambda _: read_parts(data, form, name, max_unpacked_bytes=limit)
        )

    async def translate_document(
        self, parts: Mapping[str, Document], data: bytes, request: RequestOptions
    ) -> tuple[bytes, Report]:
        """Return the translation of a document that has been read. Its sentences share batches with other requests."""
        loop, futures = asyncio.get_running_loop(), list[Future[list[Translation]]]()
        is_cancelled = False

        def translate(texts: Sequence[str], options: RequestOptions) -> list[Translation]:
            futures.append(asyncio.run_coroutine_threadsafe(self.translate(texts, options), loop))
            if is_cancelled:  # since the last call, while the document was being assembled
                futures[-1].cancel()
            return futures[-1].result()

        def work(loaded: LoadedModels) -> tuple[bytes, Report]:
            translator: Any = BatchingTranslator(loaded.translator, translate)
            return translate_parts(
                translator, parts, data, request.source, request.target, request.options, request.glossary
            )

        try:
            return await self._run_job(self._document_pool, work)
        except asyncio.CancelledError:  # the client has left: the thread must not run on for hours
            is_cancelled = True
            for future in futures:
                future.cancel()
            raise

    async def run_with_translator(self, work: Callable[[Translator], Result]) -> Result:
        """Run a function of the translator in a thread, outside the batches."""
        return await self._run_job(self._job_pool, lambda loaded: work(loaded.translator))

    async def _run_job(self, pool: ThreadPoolExecutor, work: Callable[[LoadedModels], Result]) -> Result:
        if self._jobs >= MAX_JOBS:
            raise busy()
        self._jobs += 1
        try:
            return await self._run_in_thread(pool, work)
        finally:
            self._jobs -= 1

    async def run_with_explorer(self, work: Callable[[Explorer], Result]) -> Result:
        """Run a function of the explorer in its own thread.

        One runs at a time, because each takes seconds and much memory. Translations do not wait for it.
        """
        if self._explorer_requests >= MAX_EXPLORER_REQUESTS:
            raise HttpError(503, "the explorer is busy", "try again in a moment", retry_after=2)
        self._explorer_requests += 1
        try:
            return await self._run_in_thread(self._explorer_pool, lambda loaded: work(loaded.explorer))
        finally:
            self._explorer_requests -= 1

    async def _run_in_thread(self, pool: ThreadPoolExecutor, work: Callable[[LoadedModels], Result]) -> Result:
        """Run a function in a thread of the pool. If the caller is cancelled, the thread is told to stop."""
        is_cancelled = threading.Event()

        def run() -> Result:
            if is_cancelled.is_set():
                raise Cancelled
            with cancellable(is_cancelled.is_set), self.models.borrow() as loaded:
                return work(loaded)

        try:
            return await asyncio.get_running_loop().run_in_executor(pool, run)
        finally:
            is_cancelled.set()

    def detect_language(self, text: str) -> tuple[str, float]:
        """Return the most likely source language of the models, and a confidence from 0 to 100.

        The confidence is the share of letters in the script of that language; a Han character counts as three letters.
        """
        sources = list(dict.fromkeys(source for source, _ in self.models.directions))
        guess = guess_language([text])
        code = next((each for each in sources if each.split("-")[0].lower() == guess), "")
        scripts = SCRIPTS.get(guess, ())
        if not code:  # another language of the same script
            code = next((each for each in sources if set(SCRIPTS.get(each, ())) & set(scripts)), "")
        if not code or not guess:
            return (PIVOT_LANGUAGE if PIVOT_LANGUAGE in sources else sources[0]), 0.0
        in_script = count_characters(letters(*scripts), text)
        others = sum(1 for letter in text if letter.isalpha()) - in_script
        weight = 3 if "Han" in scripts else 1
        return code, float(round(100 * weight * in_script / max(1, weight * in_script + others)))

    async def close(self) -> None:
        await self.batcher.close()
        self._job_pool.shutdown()
        self._document_pool.shutdown()
        self._explorer_pool.shutdown()
        self.models.close()

    def gauges(self) -> dict[str, float]:
        """Return the current values of the gauges for /metrics."""
        return {
            "queue_characters": self.batcher.queue_size,
            "cache_bytes": self._cache.size,
            "model_generation": self.models.generation,
        }

    def _count_tokens(self, translations: Sequence[Translation]) -> int:
        with self.models.borrow() as loaded:
            translator = loaded.translator
            # The models may have been replaced since these translations were made.
            directions = {each.languages for each in translations}.intersection(translator.directions)
            tokenizers = {languages: translator.direction("", *languages).tokenizer for languages in directions}
            return sum(
                len(tokenizers[each.languages].encode(each.text))
                for each in translations
                if each.languages in tokenizers
            )

    def _needs_pivot(self, request: RequestOptions) -> bool:
        source, target, directions = request.source, request.target, self.models.directions
        has_english = PIVOT_LANGUAGE in (source, target)
        return not has_english and (source, target) not in directions and (source, PIVOT_LANGUAGE) in directions

    def _translate_batch(self, texts: Sequence[str], request: RequestOptions) -> list[Translation]:
        with self.models.borrow() as loaded:
            translations = loaded.translator.translate_batch(
                texts, request.source, request.target, request.options, request.glossary
            )
            for translation in translations if request.details else ():
                _ = translation.tokens  # computed now, while the model is open
            return translations


def busy() -> HttpError:
    return HttpError(503, "the server is busy", "try again in a moment", retry_after=2)


class BatchingTranslator:
    """A translator for documents that puts texts into the server's batches; it has the methods that documents need."""

    def __init__(
        self, translator: Translator, translate: Callable[[Sequence[str], RequestOptions], list[Translation]]
    ) -> None:
        self._translator, self._translate = translator, translate

    def direction(self, text: str, source: str | None = None, target: str | None = None) -> Direction:
        return self._translator.direction(text, source, target)

    def translate_batch(
        self,
        texts: Sequence[str],
        source: str | None = None,
        target: str | None = None,
        options: TranslateOptions | None = None,
        glossary: Glossary | None = None,
        _memory: TranslationMemory | None = None,
    ) -> list[Translation]:
        return self._translate(texts, RequestOptions(source, target, options or TranslateOptions(), glossary))

    def translate(
        self,
        text: str,
        source: str | None = None,
        target: str | None = None,
        options: TranslateOptions | None = None,
        glossary: Glossary | None = None,
    ) -> Translation:
        return self.translate_batch([text], source, target, options, glossary)[0]
