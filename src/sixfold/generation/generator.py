"""Prompt in, text out: a decoder-only model and its tokeniser behind one object.

Its collaborators: engines write tokens (`engines.writing`), a `TextStream` turns those of each text into chunks, and
`render_chat` writes the prompts of conversations.
"""

from __future__ import annotations

import math
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import cast

from sixfold import modelfile
from sixfold.config import Compute
from sixfold.decoding.options import SamplingOptions
from sixfold.engines.cpu import CpuEngine
from sixfold.engines.writing import (
    WritingEngine,
    WritingOptions,
    WrittenToken,
    check_draft,
    check_prompts,
    never_cancelled,
)
from sixfold.errors import RequestError
from sixfold.generation.chat import Message, check_chat, render_chat
from sixfold.generation.options import Continuation, GenerateOptions, NextToken, NextTokens, TextChunk, TextToken
from sixfold.generation.text_stream import Detokenizer, TextStream
from sixfold.interop.ctranslate2 import check_supported
from sixfold.modelfile import ModelFile
from sixfold.translation.loading import check_threads, choose_device, find_model

Prompt = str | Sequence[Message] | Sequence[int]  # a text to continue, a conversation to answer, or token ids


class Generator:
    """Continues texts with a decoder-only model. Calls may come from several threads at once.

    On a CPU, texts of the likeliest tokens are written by CTranslate2, and all others, which draw tokens or have a
    repetition penalty, by torch in float32. On a GPU everything is written by torch. Each engine is opened when it is
    first needed and has its own copy of the weights.
    """

    def __init__(
        self, model: Path | str | ModelFile, device: str = "auto", threads: int | None = None,
        compute: Compute | None = None, draft: Path | str | ModelFile | None = None,
    ) -> None:  # fmt: skip
        """`threads` batches of prompts are continued at once by CTranslate2; None means one for each core.

        `compute` is the type of its numbers; None: int8 if the model is stored so, else float32. On a GPU it is that of
        torch's; None: the type that the model is stored in, or float16 for int8. With `draft`, a
        smaller model with the same tokeniser, everything is written by torch: the draft guesses tokens, of which the
        model reads several in one step. The texts stay the same.
        """
        check_threads(threads)
        self.file = model if isinstance(model, ModelFile) else modelfile.load(find_model(model))
        name = "model" if isinstance(model, ModelFile) else model
        self.config = self.file.config.model
        check_prompts(self.config, ())
        if self.file.tokenizer is None:
            raise RequestError(f"{name}: expected a model with a tokeniser; this one has none", "import it with one")
        self.tokenizer = self.file.tokenizer
        self.before, self.ends = self.file.prompts.before, self.file.prompts.ends
        self.device, self.threads = choose_device(device), threads
        self.compute: Compute = compute or default_compute(self.file, self.device)
        self._draft = draft if draft is None or isinstance(draft, ModelFile) else modelfile.load(find_model(draft))
        if self._draft is not None:
            check_draft(self.file, self._draft)
        self._lock = threading.Lock()
        self._engines: dict[str, WritingEngine] = {}

    def generate(self, prompts: Sequence[Prompt], options: GenerateOptions | None = None) -> list[list[Continuation]]:
        """Return `options.n` texts for each prompt. They do not depend on the other prompts of the call."""
        if isinstance(prompts, str):
            raise RequestError("prompts: expected a list of prompts; got a text", "put it into a list")
        options = options or GenerateOptions()
        chunks: dict[tuple[int, int], list[TextChunk]] = defaultdict(list)
        for chunk in self._write(prompts, options):
            chunks[chunk.prompt, chunk.sample].append(chunk)
        return [
            [Continuation.of(chunks[index, sample]) for sample in range(options.n)] for index in range(len(prompts))
        ]  # fmt: skip

    def stream(self, prompt: Prompt, options: GenerateOptions | None = None) -> Iterator[TextChunk]:
        """Yield the texts for a prompt in chunks, as they are written; those of several samples alternate.

        Closing the iterator ends the writing.
        """
        for chunk in self._write([prompt], options or GenerateOptions()):
            if chunk.text or chunk.tokens or chunk.finish:
                yield chunk

    def write(
        self, prompts: Sequence[Prompt], options: GenerateOptions, on_chunk: Callable[[TextChunk], None],
        is_cancelled: Callable[[], bool] = never_cancelled,
    ) -> None:  # fmt: skip
        """Write the texts for each prompt, and give their chunks to a function as they are written.

        It returns when all have ended, or soon after `is_cancelled` is true. Several threads may call the function.
        """
        ids = [self.encode(prompt) for prompt in prompts]
        self.check(ids)
        engine = self._engine(options.sampling)
        writing = WritingOptions(self.ends, options.max_tokens, options.n, options.likeliest, options.sampling)
        texts = {
            (index, sample): TextStream(
                self.tokenizer, prompt, options.stop, self.ends, writing.limit(self.config, prompt)
            )
            for index, prompt in enumerate(ids) for sample in range(options.n)
        }  # fmt: skip

        def take(token: WrittenToken) -> bool:
            chunk = texts[token.prompt, token.sample].add(token)
            on_chunk(chunk)
            return chunk.finish is not None

        engine.write(ids, writing, take, is_cancelled)

    def score(self, texts: Sequence[str]) -> list[list[TextToken]]:
        """Return the tokens of each text, each with its log-probability after those before it.

        A text is read like a prompt. The tokens before every prompt are not counted; where there are none, as in GPT-2,
        the first token of the text is not.
        """
        ids = [self.encode(text) for text in texts]
        begins = [max(1, len(self.before))] * len(texts)
        sources = [each[:begin] for each, begin in zip(ids, begins, strict=True)]
        targets = [each[begin:] for each, begin in zip(ids, begins, strict=True)]
        scores = self._engine(None).score(sources, targets)
        results = []
        for source, target, logprobs in zip(sources, targets, scores, strict=True):
            detokenizer = Detokenizer(self.tokenizer, source)
            results.append([
                TextToken(token, detokenizer.add(token), logprob)
                for token, logprob in zip(target, logprobs[:-1], strict=True)
            ])  # fmt: skip
        return results

    def encode(self, prompt: Prompt) -> list[int]:
        """Return the ids of a prompt, with the special tokens before it. A template writes those of a conversation.

        Token ids stay as they are.
        """
        if isinstance(prompt, str):
            return [*(self.before or (self.config.bos,) * (not prompt)), *self.tokenizer.encode(prompt)]
        if prompt and all(type(each) is int for each in prompt):
            return list(cast("Sequence[int]", prompt))
        layout, messages = self.file.prompt_format, cast("Sequence[Message]", prompt)
        check_chat(layout)
        if self.tokenizer.algorithm != "foreign":
            raise RequestError(
                "chat: expected a tokeniser that reads special tokens in a text; this one does not",
                "import a checkpoint that has tokenizer.json",
            )
        return self.tokenizer.encode(render_chat(layout, messages))

    def next_tokens(
        self, prompt: Prompt, sampling: SamplingOptions, count: int = 20, include: Sequence[int] = ()
    ) -> NextTokens:
        """Return what may come next: the likeliest tokens, and how likely each is drawn with these options.

        Tokens of `include` are returned too, after the others. It needs torch, which draws tokens.
        """
        engine = self._engine(SamplingOptions())
        from sixfold.decoding.sampling import next_distribution

        ids = self.encode(prompt)
        self.check([ids])
        tokens: list[WrittenToken] = []

        def take(token: WrittenToken) -> bool:
            tokens.append(token)
            return True

        engine.write([ids], WritingOptions((), 1, likeliest=self.config.vocab), take)
        logprobs = dict(tokens[0].likeliest)
        drawn = next_distribution([logprobs[token] for token in range(self.config.vocab)], ids, sampling)
        detokenizer = Detokenizer(self.tokenizer, ids)
        likeliest = tuple(
            NextToken(token, detokenizer.text_of(token), logprob, drawn[token])
            for place, (token, logprob) in enumerate(tokens[0].likeliest)
            if place < count or token in include
        )
        entropy = -sum(math.exp(each) * each for each in logprobs.values()) / math.log(2)
        return NextTokens(likeliest, sum(share > 0 for share in drawn), entropy)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each token of a prompt; that of a special token is empty."""
        detokenizer = Detokenizer(self.tokenizer, ())
        return [detokenizer.add(token) for token in ids]

    def check(self, prompts: Sequence[Sequence[int]]) -> None:
        """Raise RequestError for token ids that the model cannot continue."""
        check_prompts(self.config, prompts)

    def close(self) -> None:
        """Free the memory. The generator may not be used afterwards."""
        with self._lock:
            for engine in self._engines.values():
                engine.close()
            self._engines.clear()

    def __enter__(self) -> Generator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, prompts: Sequence[Prompt], options: GenerateOptions) -> Iterator[TextChunk]:
        """Yield the chunks of all texts. A thread writes them, so that an interrupt is noticed at once."""
        chunks: queue.SimpleQueue[TextChunk | BaseException | None] = queue.SimpleQueue()
        is_closed = threading.Event()

        def write() -> None:
            try:
                self.write(prompts, options, chunks.put, is_closed.is_set)
                chunks.put(None)
            except BaseException as error:
                chunks.put(error)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        try:
            while (chunk := chunks.get()) is not None:
                if isinstance(chunk, BaseException):
                    raise chunk
                yield chunk
        finally:
            is_closed.set()
            writer.join()

    def _engine(self, sampling: SamplingOptions | None) -> WritingEngine:
        """Return the engine that can do this, opened if it is not; None stands for scoring."""
        is_likeliest = sampling is None or (sampling.is_greedy and self._draft is None)
        is_cpu = self.device == "cpu" and is_likeliest and _runs_in_ctranslate2(self.file)
        name = "ctranslate2" if is_cpu else "torch"
        with self._lock:
            if name not in self._engines:
                self._engines[name] = self._open_cpu() if is_cpu else self._open_torch()
            return self._engines[name]

    def _open_cpu(self) -> WritingEngine:
        return CpuEngine(self.file, self.compute, self.threads or 0)

    def _open_torch(self) -> WritingEngine:
        try:
            from sixfold.engines.sampling import SamplingEngine
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            check_supported(self.config)  # says why even the likeliest tokens need torch
            raise RequestError(
                "sampling: drawing tokens, the repetition penalty and drafts need torch, which is not installed",
                "pip install 'sixfold[torch]', or take the likeliest tokens: temperature 0",
            ) from None
        return SamplingEngine.load(
            self.file, self.device, self._draft, "float32" if self.device == "cpu" else self.compute
        )


def default_compute(file: ModelFile, device: str) -> Compute:
    """Return the type of numbers that a model is computed with: on a GPU the one that it is stored in, but not int8."""
    if device == "cpu":
        return "int8" if file.storage == "int8" else "float32"
    return "float16" if file.storage == "int8" else cast("Compute", file.storage)


def _runs_in_ctranslate2(file: ModelFile) -> bool:
    try:
        check_supported(file.config.model)
    except RequestError:
        return False
    return True
