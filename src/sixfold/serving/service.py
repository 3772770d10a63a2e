"""What the routes ask for: translations, by way of the cache and the batcher, documents, scores, and languages."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from sixfold.config import TranslateOptions
from sixfold.explorer.explore import Explorer
from sixfold.serving.batcher import Batcher, Full, Way
from sixfold.serving.cache import Cache
from sixfold.serving.metrics import Metrics
from sixfold.serving.models import Models, Opened
from sixfold.serving.options import ServeOptions
from sixfold.serving.refusal import Refusal
from sixfold.text.languages import SCRIPTS, count, guess_language, letters
from sixfold.translation.direction import Direction
from sixfold.translation.document import Report, translate_document
from sixfold.translation.glossary import Glossary
from sixfold.translation.memory import Memory
from sixfold.translation.result import Translation
from sixfold.translation.translator import Translator

PIVOT = "en"
LOOKERS = 16  # requests to the explorer that may wait
OVERHEAD = 400  # bytes that a remembered translation takes besides its text
Result = TypeVar("Result")


class Service:
    """Made inside of the event loop that it works in."""

    def __init__(self, models: Models, options: ServeOptions, metrics: Metrics) -> None:
        self.models, self._metrics = models, metrics
        cores = options.threads or os.cpu_count() or 1
        self.batcher = Batcher(self._translate_now, workers=2, room=max(2000, 1200 * cores), queue=options.queue)
        self.batcher.told = metrics.batch.add
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="ask")  # for what is not translated in batches
        self._looking = ThreadPoolExecutor(1, thread_name_prefix="look")
        self._lookers = 0
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
        found = {text: self._cache.get((text, way)) for text in dict.fromkeys(texts)}
        missing = [text for text, known in found.items() if known is None]
        cache = self._cache
        try:
            fresh = await self.batcher.translate(missing, way) if missing else []
        except Full:
            raise Refusal(503, "the server is busy", "come back in a moment", retry_after=2) from None
        for text, each in zip(missing, fresh, strict=True):
            found[text] = each
            cache.put(
                (text, way), each, 2 * (len(text) + len(each.text)) + OVERHEAD + 200 * way.details * len(each.text)
            )
        self._metrics.counts["target_tokens"] += self._tokens(fresh)
        self._metrics.counts["texts"] += len(texts)
        self._metrics.counts["cache_hits"] += len(texts) - len(missing)
        return [known for text in texts if (known := found[text]) is not None]

    def check(self, way: Way, pivot: bool = False) -> None:
        """Refuse languages that no model here has, before any text is read."""
        source = PIVOT if pivot and self._needs_pivot(way) else way.source
        with self.models.borrow() as opened:
            opened.translator.check_told(source, way.target)

    async def document(self, data: bytes, form: str, way: Way, name: str = "document") -> tuple[bytes, Report]:
        """Its sentences wait with those of other requests."""
        loop, asked = asyncio.get_running_loop(), list[Future[list[Translation]]]()
        is_left = False

        def wait_for(texts: Sequence[str], its: Way) -> list[Translation]:
            asked.append(asyncio.run_coroutine_threadsafe(self.translate(texts, its), loop))
            if is_left:  # while the document was read, or between two questions
                asked[-1].cancel()
            return asked[-1].result()

        def work(translator: Translator) -> tuple[bytes, Report]:
            shared: Any = Shared(translator, wait_for)
            return translate_document(shared, data, form, way.source, way.target, way.options, name, way.glossary)

        try:
            return await self.ask(work)
        except asyncio.CancelledError:  # nobody waits for it: the thread must not go on for hours
            is_left = True
            for each in asked:
                each.cancel()
            raise

    async def ask(self, work: Callable[[Translator], Result]) -> Result:
        """What a translator can do besides, in a thread."""

        return await self._in_thread(self._pool, lambda opened: work(opened.translator))

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
        def done() -> Result:
            with self.models.borrow() as opened:
                return work(opened)

        return await asyncio.get_running_loop().run_in_executor(pool, done)

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
        _memory: Memory | None = None,
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
