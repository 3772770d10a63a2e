"""Looking into a model from Python: give a sentence, get a trace of its forward pass; heads can be switched off."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple, Protocol

from sixfold.errors import RequestError
from sixfold.explorer.heads import Head, ablate_heads
from sixfold.explorer.trace import Trace, trace_pair, trace_text
from sixfold.modelfile import ModelFile
from sixfold.text.tokenizer import Tokenizer
from sixfold.translation.loading import ModelSource, read_model
from sixfold.translation.translator import Translator

MAX_WEIGHTS = 16_000_000  # attention weights of a text that an `Explorer` traces: 200 MB with their scores


class TextModel(Protocol):
    """A decoder-only model that is open, such as a `Generator`."""

    @property
    def file(self) -> ModelFile:
        """The model file."""
        ...


class ReadModel(NamedTuple):
    """A model, and the tokeniser and special tokens with which it reads a text."""

    file: ModelFile
    tokenizer: Tokenizer
    before: tuple[int, ...]
    after: tuple[int, ...]


TextModels = Mapping[str, Callable[[], AbstractContextManager[TextModel]]]
CacheKey = tuple[str, str | None, str | None, str | None, str | None, tuple[Head, ...]]


def explore(
    text: str,
    translation: str | None = None,
    model: ModelSource | None = None,
    source: str | None = None,
    target: str | None = None,
    off: Sequence[str | Head] = (),
) -> Trace:
    """Translate a sentence, or take the given translation, and return every array of the forward pass over both.

    `source` and `target` are language codes. `off` names heads to switch off, such as "cross.1.3". A model with only
    an encoder or only a decoder, such as BERT or GPT-2, reads the text and translates nothing; a decoder reads it as a
    prompt, so that its numbers are those of `generate`.
    """
    heads = tuple(head if isinstance(head, Head) else Head.parse(head) for head in off)
    file = None if model is None else read_model(model)
    if file is not None and file.config.model.kind != "encoder-decoder":
        check_translates_nothing(file.config.model.kind, translation, source, target)
        return trace_text(ablate_heads(file, heads), text, heads)
    with Translator(file, "cpu") as translator:
        explorer = Explorer(translator)
        try:
            return explorer.explore(text, translation, source, target, heads)
        finally:
            explorer.close()


def check_translates_nothing(kind: str, translation: str | None, source: str | None, target: str | None) -> None:
    """Raise a RequestError if a model with one stack is given a translation or its languages."""
    for name, value in (("translation", translation), ("source", source), ("target", target)):
        if value is not None:
            message = (
                f"{name}: expected none for a model of the kind {kind!r}, which does not translate; got {value!r:.40}"
            )
            raise RequestError(message, "leave it out; the model reads the text alone")


class Explorer:
    """An open translator that can be explored many times. It keeps the latest traces for repeated requests.

    Several threads may use it; they take turns, because each forward pass needs much memory.
    """

    def __init__(
        self, translator: Translator, max_bytes: int = 256 * 2**20, text_models: TextModels | None = None
    ) -> None:
        """`max_bytes` is how much memory traces may take; the latest is kept whatever its size.

        `text_models` are decoder-only models by name; each opens one and keeps it open until the context ends.
        """
        self._translator, self._max_bytes = translator, max_bytes
        self._text_models = text_models or {}
        self._lock = threading.Lock()
        self._traces: dict[CacheKey, Trace] = {}
        self._ablated: tuple[tuple[str, tuple[Head, ...]], Translator] | None = None

    def explore(
        self,
        text: str,
        translation: str | None = None,
        source: str | None = None,
        target: str | None = None,
        off: Sequence[Head] = (),
        model: str | None = None,
    ) -> Trace:
        """Do what the function `explore` does; `model` names one of several open models.

        Without a name it is a model that translates, or, if there is none, the first that writes texts.
        """
        heads = tuple(sorted(set(off)))
        key = (text, translation, source, target, model, heads)
        with self._lock:
            if key in self._traces:
                self._traces[key] = self._traces.pop(key)  # now the most recently used
                return self._traces[key]
            if (name := self._text_model(model)) is not None:
                check_translates_nothing("decoder", translation, source, target)
                with self._text_models[name]() as opened:
                    trace = trace_text(ablate_heads(opened.file, heads), text, heads, MAX_WEIGHTS)
            else:
                trace = self._trace_pair(text, translation, source, target, heads, model)
            self._traces[key] = trace
            while len(self._traces) > 1 and sum(cached.nbytes for cached in self._traces.values()) > self._max_bytes:
                del self._traces[next(iter(self._traces))]
            return trace

    @contextmanager
    def open_model(
        self, text: str, source: str | None = None, target: str | None = None, model: str | None = None
    ) -> Iterator[ReadModel]:
        """Yield the model that would read this text, for requests about the model itself."""
        if (name := self._text_model(model)) is not None:
            check_translates_nothing("decoder", None, source, target)
            with self._text_models[name]() as opened:
                if opened.file.tokenizer is None:
                    raise RequestError(f"model: expected one with a tokeniser; {name} has none")
                yield ReadModel(opened.file, opened.file.tokenizer, opened.file.prompts.before, ())
        else:
            direction = self._translator.direction(text, source, target, model)
            before, after, _ = direction.special
            yield ReadModel(direction.file, direction.tokenizer, tuple(before), tuple(after))

    def _text_model(self, model: str | None) -> str | None:
        """Return the name of the decoder-only model that is meant; None if it is a model that translates."""
        if model is None and not self._translator.directions:
            return next(iter(self._text_models), None)
        return model if model in self._text_models else None

    def _trace_pair(
        self, text: str, translation: str | None, source: str | None, target: str | None, heads: tuple[Head, ...],
        model: str | None,
    ) -> Trace:  # fmt: skip
        direction = self._translator.direction(text, source, target, model)
        if heads:
            ablated = self._ablated_translator(direction.file, heads)
            direction = ablated.direction(text, *direction.languages)
        return trace_pair(direction, text, translation, heads)

    def close(self) -> None:
        """Close what this object has opened. The translator belongs to the caller and stays open."""
        if self._ablated is not None:
            self._ablated[1].close()
            self._ablated = None

    def _ablated_translator(self, file: ModelFile, heads: tuple[Head, ...]) -> Translator:
        """Return a translator without these heads. The latest is kept: a page asks for a sentence, then its arrays."""
        key = (file.checksum or str(id(file)), heads)
        if self._ablated is None or self._ablated[0] != key:
            translator = Translator(ablate_heads(file, heads), "cpu", threads=1)
            self.close()
            self._ablated = (key, translator)
        return self._ablated[1]
