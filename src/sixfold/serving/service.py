"""What the routes ask for: translations, by way of the cache and the batcher, documents, scores, and languages."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from typing import Any, TypeVar

from sixfold.explorer.explore import Explorer
from sixfold.serving.batcher import Batcher, Full, Way
from sixfold.serving.cache import Cache, held_bytes
from sixfold.serving.metrics import Metrics
from sixfold.serving.models import Models, Opened
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import Refusal
from sixfold.text.languages import SCRIPTS, count, guess_language, letters
from sixfold.translation.cancellation import Cancelled, cancellable
from sixfold.translation.direction import Direction
from sixfold.translation.documents.document import Document, Report, read_parts, translate_parts
from sixfold.translation.glossary import Glossary
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.result import Translation
from sixfold.translation.translator import Translator

PIVOT = "en"
LOOKERS = 16  # requests to the explorer that may wait
READERS = 4  # documents that are read or put together at once; most of their time they wait for translations
WAITING = 64  # documents, scores and alternatives that may wait
Result = TypeVar("Result")


class Service:
    """Made inside of the event loop that it works in."""

    def __init__(self, models: Models, options: ServeOptions, metrics: Metrics) -> None:
        self.models, self._metrics = models, metrics
        cores = options.threads or os.cpu_count() or 1
        self.batcher = Batcher(self._translate_now, workers=2, room=max(2000, 1200 * cores), queue=options.queue)
        self.batcher.told = metrics.batch.add
        self._options = options
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="ask")  # for what is not translated in batches
        self._reading = ThreadPoolExecutor(READERS, thread_name_prefix="document")
        self._looking = ThreadPoolExecutor(1, thread_name_prefix="look")
        self._lookers = 0
        self._asking = 0
        self._cache: Cache[Translation] = Cache(options.cache)
        self._generation = models.generation

    async def translate(self, texts: Sequence[str], way: Way, pivot: bool = False) -> list[Translation]:
        """In their order."""
        if pivot and self._needs_pivot(way):
            middle = await self.translate(texts, way._replace(target=PIVOT))
            onward = way._replace(source=PIVOT, options=TranslateOptions(way.options.beam, way.options.n_best))
            return await self.translate([each.text for each in middle], onward)
        if self._generation != self.models.generation:  # what another model said
            self._generation = self.models.generation
            self._cache = Cache(self._cache.limit)
        # What is handed out is a copy: details that are worked out later would not be counted.
        found = {text: copy(self._cache.get(way.key(text))) for text in dict.fromkeys(texts)}
        missing = [text for text, known in found.items() if known is None]
        cache = self._cache
        try:
            fresh = await self.batcher.translate(missing, way) if missing else []
        except Full:
            raise busy() from None
        for text, each in zip(missing, fresh, strict=True):
            found[text] = each
            kept = copy(each)
            cache.put(way.key(text), kept, held_bytes(kept))
        self._metrics.counts["target_tokens"] += self._tokens(fresh)
        self._metrics.counts["texts"] += len(texts)
        self._metrics.counts["cache_hits"] += len(texts) - len(missing)
        return [known for text in texts if (known := found[text]) is not None]

    def check(self, way: Way, pivot: bool = False) -> None:
        """Refuse languages that no model here has, before any text is read."""
        source = PIVOT if pivot and self._needs_pivot(way) else way.source
        with self.models.borrow() as opened:
            opened.translator.check_languages(source, way.target)

    async def read(self, data: bytes, form: str, name: str = "document") -> dict[str, Document]:
        """The parts of a document, in a thread that ends when nobody waits for it."""
        most = self._options.max_file
        return await self._ask(self._reading, lambda _: read_parts(data, form, name, max_unpacked_bytes=most))

    async def document(self, parts: Mapping[str, Document], data: bytes, way: Way) -> tuple[bytes, Report]:
        """A document that has been read, translated: its sentences wait with those of other requests."""
        loop, asked = asyncio.get_running_loop(), list[Future[list[Translation]]]()
        is_left = False

        def wait_for(texts: Sequence[str], its: Way) -> list[Translation]:
            asked.append(asyncio.run_coroutine_threadsafe(self.translate(texts, its), loop))
            if is_left:  # while the document was put together, or between two questions
                asked[-1].cancel()
            return asked[-1].result()

        def work(opened: Opened) -> tuple[bytes, Report]:
            shared: Any = Shared(opened.translator, wait_for)
            return translate_parts(shared, parts, data, way.source, way.target, way.options, way.glossary)

        try:
            return await self._ask(self._reading, work)
        except asyncio.CancelledError:  # nobody waits for it: the thread must not go on for hours
            is_left = True
            for each in asked:
                each.cancel()
            raise

    async def ask(self, work: Callable[[Translator], Result]) -> Result:
        """What a translator can do besides, in a thread."""
        return await self._ask(self._pool, lambda opened: work(opened.translator))

    async def _ask(self, pool: ThreadPoolExecutor, work: Callable[[Opened], Result]) -> Result:
        if self._asking >= WAITING:
            raise busy()
        self._asking += 1
        try:
            return await self._in_thread(pool, work)
        finally:
            self._asking -= 1

    async def look(self, work: Callable[[Explorer], Result]) -> Result:
        """What is inside: one at a time, as each takes seconds and memory, and apart from what translates."""
        if self._lookers >= LOOKERS:
            raise Refusal(503, "the explorer is busy", "come back in a moment", retry_after=2)
        self._lookers += 1
        try:
            return await self._in_thread(self._looking, lambda opened: work(opened.explorer))
        finally:
            self._lookers -= 1

    async def _in_thread(self, pool: ThreadPoolExecutor, work: Callable[[Opened], Result]) -> Result:
        """Until it is done, or until whoever waits has left: then the thread is told to stop."""
        is_left = threading.Event()

        def done() -> Result:
            if is_left.is_set():
                raise Cancelled
            with cancellable(is_left.is_set), self.models.borrow() as opened:
                return work(opened)

        try:
            return await asyncio.get_running_loop().run_in_executor(pool, done)
        finally:
            is_left.set()

    def language(self, text: str) -> tuple[str, float]:
        """The likeliest of the known ones, and how sure that is, in percent: the share of letters that speak for it."""
        known = list(dict.fromkeys(source for source, _ in self.models.directions))
        guess = guess_language([text])
        code = next((each for each in known if each.split("-")[0].lower() == guess), "")
        scripts = SCRIPTS.get(guess, ())
        if not code:  # another language of the same script
            code = next((each for each in known if set(SCRIPTS.get(each, ())) & set(scripts)), "")
        if not code or not guess:
            return (PIVOT if PIVOT in known else known[0]), 0.0
        spoken = count(letters(*scripts), text)
        others = sum(1 for letter in text if letter.isalpha()) - spoken
        weight = 3 if "Han" in scripts else 1
        return code, float(round(100 * weight * spoken / max(1, weight * spoken + others)))

    async def close(self) -> None:
        await self.batcher.close()
        self._pool.shutdown()
        self._reading.shutdown()
        self._looking.shutdown()
        self.models.close()

    def levels(self) -> dict[str, float]:
        """As of now."""
        return {
            "queue_characters": self.batcher.waiting,
            "cache_bytes": self._cache.size,
            "model_generation": self.models.generation,
        }

    def _tokens(self, said: Sequence[Translation]) -> int:
        with self.models.borrow() as opened:
            translator = opened.translator
            # It may be another than the one that has said it.
            ways = {each.languages for each in said}.intersection(translator.directions)
            known = {way: translator.direction("", *way).tokenizer for way in ways}
            return sum(len(known[each.languages].encode(each.text)) for each in said if each.languages in known)

    def _needs_pivot(self, way: Way) -> bool:
        known = self.models.directions
        source = way.source
        return PIVOT not in (source, way.target) and (source, way.target) not in known and (source, PIVOT) in known

    def _translate_now(self, texts: Sequence[str], way: Way) -> list[Translation]:
        with self.models.borrow() as opened:
            found = opened.translator.translate_batch(texts, way.source, way.target, way.options, way.glossary)
            for each in found if way.details else ():
                _ = each.tokens  # worked out while the model is open
            return found


def busy() -> Refusal:
    return Refusal(503, "the server is busy", "come back in a moment", retry_after=2)


class Shared:
    """A translator whose texts are translated together with those of others; for documents."""

    def __init__(self, translator: Translator, translate: Callable[[Sequence[str], Way], list[Translation]]) -> None:
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
        return self._translate(texts, Way(source, target, options or TranslateOptions(), glossary))

    def translate(
        self,
        text: str,
        source: str | None = None,
        target: str | None = None,
        options: TranslateOptions | None = None,
        glossary: Glossary | None = None,
    ) -> Translation:
        return self.translate_batch([text], source, target, options, glossary)[0]
