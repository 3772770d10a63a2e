"""Looking into a model from Python: a sentence in, a trace out, with heads switched off if one likes."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sixfold import modelfile
from sixfold.explorer.heads import Head, without
from sixfold.explorer.trace import Trace, trace_pair, trace_text
from sixfold.modelfile import ModelFile
from sixfold.translation.direction import Direction
from sixfold.translation.loading import Source, find_model
from sixfold.translation.translator import Translator

Key = tuple[str, str | None, str | None, str | None, str | None, tuple[Head, ...]]


def explore(
    text: str,
    translation: str | None = None,
    model: Source | None = None,
    source: str | None = None,
    target: str | None = None,
    off: Sequence[str | Head] = (),
) -> Trace:
    """Translate a sentence, or take the translation that is given, and keep every number of the pass.

    `off` names heads to be switched off, such as "cross.1.3". A model of one side only, as BERT or GPT-2, reads the
    text and translates nothing.
    """
    heads = tuple(each if isinstance(each, Head) else Head.parse(each) for each in off)
    file = None if model is None else model if isinstance(model, ModelFile) else modelfile.load(find_model(model))
    if file is not None and file.config.model.kind != "encoder-decoder":
        return trace_text(without(file, heads), text, heads)
    with Translator(file, "cpu") as translator:
        explorer = Explorer(translator)
        try:
            return explorer.explore(text, translation, source, target, heads)
        finally:
            explorer.close()


class Explorer:
    """An open translator that is asked about again and again: what it was asked last, it still knows.

    It may be used from several threads; they take turns, as each pass takes memory.
    """

    def __init__(self, translator: Translator, room: int = 256 * 2**20) -> None:
        """`room`: bytes that traces may take; the last is kept whatever it takes."""
        self._translator, self._room = translator, room
        self._lock = threading.Lock()
        self._traces: dict[Key, Trace] = {}
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
        """As the function of this name; `model` names one of several that are open."""
        heads = tuple(sorted(set(off)))
        key = (text, translation, source, target, model, heads)
        with self._lock:
            if key in self._traces:
                self._traces[key] = self._traces.pop(key)  # now the youngest
                return self._traces[key]
            direction = self._translator.direction(text, source, target, model)
            if heads:
                one, other = direction.languages
                direction = self._without(direction.file, heads).direction(text, one, other)
            found = trace_pair(direction, text, translation, heads)
            self._traces[key] = found
            while len(self._traces) > 1 and sum(each.nbytes for each in self._traces.values()) > self._room:
                del self._traces[next(iter(self._traces))]
            return found

    def direction(
        self, text: str, source: str | None = None, target: str | None = None, model: str | None = None
    ) -> Direction:
        """Of the translator, for what is asked of the model itself."""
        return self._translator.direction(text, source, target, model)

    def close(self) -> None:
        """What it has opened itself; the translator is its owner's."""
        if self._ablated is not None:
            self._ablated[1].close()
            self._ablated = None

    def _without(self, file: ModelFile, heads: tuple[Head, ...]) -> Translator:
        """The last one is kept, as a page asks for its sentence, then for its numbers."""
        key = (file.checksum or str(id(file)), heads)
        if self._ablated is None or self._ablated[0] != key:
            opened = Translator(without(file, heads), "cpu", threads=1)
            self.close()
            self._ablated = (key, opened)
        return self._ablated[1]
