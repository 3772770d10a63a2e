"""Texts that the decoder-only models of a server write: whose turn it is, and chunks while they are written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from sixfold.decoding.options import SamplingOptions
from sixfold.generation.generator import Generator, Prompt
from sixfold.generation.options import Continuation, GenerateOptions, NextTokens, TextChunk
from sixfold.serving.job_pool import busy
from sixfold.serving.metrics import Metrics
from sixfold.serving.models import ReloadingModels, ServedGenerator
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import HttpError
from sixfold.serving.turnstile import Turnstile

MAX_WRITING = 16  # requests whose texts are written at the same time
MAX_WAITING = 256  # that wait for these
ENDING_SECONDS = 1.0  # before the deadline of a server that ends, in which the last events are sent
Result = TypeVar("Result")


class Ending:
    """Tells the parts of a server that it is about to end, while it still answers the requests that it has."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[], None]] = []

    def begin(self) -> None:
        """Call the listeners. It must be called in the event loop of the server."""
        for listener in self.listeners:
            listener()


@dataclass
class WritingJob:
    """What a request asks for: token ids of prompts for a model, and the options of their texts."""

    name: str
    prompts: list[list[int]]
    options: GenerateOptions
    client: str

    @property
    def prompt_tokens(self) -> int:
        return sum(map(len, self.prompts))


class WritingService:
    """Writes texts for requests. It must be created inside the event loop that uses it.

    Each request has a thread. Texts of several requests share the steps of the engine, and may join at any time.
    """

    def __init__(
        self, models: ReloadingModels, options: ServeOptions, metrics: Metrics, ending: Ending | None = None
    ) -> None:
        """When the server begins to end, texts have the time of the deadline left, also those of streams."""
        self._models, self._options, self._metrics = models, options, metrics
        self._cancellations: set[threading.Event] = set()  # of the requests whose texts are being written
        self._is_stopped = False
        if ending is not None:
            ending.listeners.append(self._stop_at_deadline)
        self.turnstile = Turnstile(MAX_WRITING, MAX_WAITING)
        self._threads = ThreadPoolExecutor(MAX_WRITING, thread_name_prefix="writing")
        self._short_threads = ThreadPoolExecutor(2, thread_name_prefix="prompt")  # for what all requests begin with

    @property
    def names(self) -> list[str]:
        """The names of the models that write texts."""
        return self._models.generator_names

    async def encode(
        self, name: str | None, prompts: Sequence[Prompt], options: GenerateOptions, client: str
    ) -> WritingJob:
        """Return the job of a request. RequestError or HttpError is raised for what cannot be continued."""
        with self._models.borrow() as loaded:
            generator = self._choose(loaded.generators, name)

            def encode(opened: Generator) -> list[list[int]]:
                ids = [opened.encode(prompt) for prompt in prompts]
                opened.check(ids)
                return ids

            ids = await self._in_thread(generator, encode, self._short_threads)
            return WritingJob(generator.name, ids, options, client)

    def _choose(self, generators: dict[str, ServedGenerator], name: str | None) -> ServedGenerator:
        if not generators:
            raise HttpError(
                404, "this server has no model that writes texts", "start it with --model and a decoder-only model"
            )
        if name is None:
            return next(iter(generators.values()))
        if name not in generators:
            raise HttpError(404, f"model: expected one of {', '.join(generators)}; got {name!r:.60}")
        return generators[name]

    async def pieces(self, job: WritingJob) -> list[list[str]]:
        """Return the texts of the tokens of each prompt."""
        with self._models.borrow() as loaded:
            generator = self._choose(loaded.generators, job.name)
            return await self._in_thread(
                generator, lambda opened: [opened.pieces(ids) for ids in job.prompts], self._short_threads
            )

    async def next_tokens(
        self, job: WritingJob, sampling: SamplingOptions, count: int, include: Sequence[int]
    ) -> NextTokens:
        """Return what may come next after the prompt of a job."""
        with self._models.borrow() as loaded:
            generator = self._choose(loaded.generators, job.name)
            try:
                async with asyncio.timeout(self._options.deadline), self.turnstile.enter(job.client):
                    return await self._in_thread(
                        generator, lambda opened: opened.next_tokens(job.prompts[0], sampling, count, include)
                    )
            except TimeoutError:
                raise busy() from None

    async def write(self, job: WritingJob) -> AsyncGenerator[TextChunk]:
        """Yield the chunks of all texts of a job. If the caller stops, the writing ends."""
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[TextChunk | None] = asyncio.Queue()
        is_cancelled = threading.Event()
        unfinished = {(prompt, sample) for prompt in range(len(job.prompts)) for sample in range(job.options.n)}

        def put(chunk: TextChunk | None) -> None:
            loop.call_soon_threadsafe(chunks.put_nowait, chunk)

        def write(generator: Generator) -> None:
            try:
                generator.write(job.prompts, job.options, put, is_cancelled.is_set)
            finally:
                put(None)

        with self._models.borrow() as loaded:
            generator = self._choose(loaded.generators, job.name)
            async with self.turnstile.enter(job.client):
                if self._is_stopped:
                    raise busy()
                self._cancellations.add(is_cancelled)
                work = asyncio.ensure_future(self._in_thread(generator, write))
                try:
                    while (chunk := await chunks.get()) is not None:
                        self._metrics.counts["written_tokens"] += len(chunk.tokens)
                        if chunk.finish:
                            unfinished.discard((chunk.prompt, chunk.sample))
                        yield chunk
                    await work
                    for prompt, sample in sorted(unfinished):  # the server ends
                        yield TextChunk("", prompt=prompt, sample=sample, finish="length")
                finally:
                    is_cancelled.set()
                    self._cancellations.discard(is_cancelled)
                    await asyncio.gather(work, return_exceptions=True)

    async def write_whole(self, job: WritingJob) -> tuple[list[list[Continuation]], bool]:
        """Return the texts for each prompt, and whether they are complete: at the deadline they are what is written.

        HttpError 503 is raised if nothing is written by then.
        """
        collected: dict[tuple[int, int], list[TextChunk]] = {
            (prompt, sample): [] for prompt in range(len(job.prompts)) for sample in range(job.options.n)
        }
        is_complete = True
        try:
            async with asyncio.timeout(self._options.deadline), aclosing(self.write(job)) as chunks:
                async for chunk in chunks:
                    collected[chunk.prompt, chunk.sample].append(chunk)
        except TimeoutError:
            self._metrics.counts["deadlines"] += 1
            if not any(collected.values()):
                raise busy() from None
            is_complete = False
        texts = [
            [Continuation.of(collected[prompt, sample]) for sample in range(job.options.n)]
            for prompt in range(len(job.prompts))
        ]
        return texts, is_complete

    async def _in_thread(
        self, generator: ServedGenerator, work: Callable[[Generator], Result], threads: ThreadPoolExecutor | None = None
    ) -> Result:
        """Run a function of a generator, which is opened if it is not, in a thread."""

        def run() -> Result:
            with generator.use() as opened:
                return work(opened)

        return await asyncio.get_running_loop().run_in_executor(threads or self._threads, run)

    def gauges(self) -> dict[str, float]:
        """Return the current values of the gauges for /metrics."""
        return {"writing_requests": self.turnstile.inside, "writing_requests_waiting": self.turnstile.waiting}

    def stop(self) -> None:
        """End all texts where they are, and write no others."""
        self._is_stopped = True
        for is_cancelled in self._cancellations:
            is_cancelled.set()

    def _stop_at_deadline(self) -> None:
        seconds = max(0.0, self._options.deadline - ENDING_SECONDS)
        asyncio.get_running_loop().call_later(seconds, self.stop)

    async def close(self) -> None:
        """End all texts and wait for the threads, without holding up the event loop, which ends their requests."""
        self.stop()
        for threads in (self._threads, self._short_threads):
            await asyncio.to_thread(threads.shutdown)
