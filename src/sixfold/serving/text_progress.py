"""What of a request is translated so far: the results of the sentences of its texts, as they come from the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from sixfold.text.sentences import is_spaced
from sixfold.translation.hops import HopBatch
from sixfold.translation.pipeline import PreparedText, SentenceResult, assemble
from sixfold.translation.result import Translation


class TextProgress:
    """The texts of a request, and how many of their sentences are translated, on both hops where there are two.

    A text appears when it has been split into sentences.
    """

    def __init__(self, count: int = 0) -> None:
        """Show `count` texts; without any, sentences are only counted."""
        self.texts: list[PendingText | None] = [None] * count  # each on the hop that began last
        self.total = 0  # sentences of all texts that have been split
        self.done = 0  # sentences that are translated
        self.changed = asyncio.Event()  # set whenever something changes

    def begin(self, indices: Sequence[int], texts: Sequence[PendingText]) -> None:
        """Add texts that have been split for a hop, under their indices in the request."""
        if self.texts:
            for index, text in zip(indices, texts, strict=True):
                self.texts[index] = text
        for text in texts:
            text.progress = self
        self._add(0, sum(text.expected for text in texts))

    def add_done(self) -> None:
        """Count a sentence that has been translated."""
        self._add(1, 0)

    def counts(self) -> dict[str, int]:
        """Return how many sentences are translated, of how many, as responses and events have it."""
        return {"done": self.done, "total": self.total}

    def _add(self, done: int, total: int) -> None:
        self.done += done
        self.total += total
        self.changed.set()


class PendingText:
    """A text whose sentences are being translated, by the last model of its route or by an earlier one."""

    progress: TextProgress | None = None  # None: a term of a glossary

    def __init__(self, batch: HopBatch, prepared: PreparedText, first_hop: PendingText | None = None) -> None:
        """On the second of two hops, `first_hop` is the same text on the first one."""
        self.batch, self.prepared, self.first_hop = batch, prepared, first_hop
        self.results: list[SentenceResult | None] = [None] * len(prepared.sentences)
        self._done = 0  # sentences that are translated
        self._sent = 0  # sentences whose pieces `new_pieces` has yielded

    def set_result(self, index: int, result: SentenceResult) -> None:
        """Note the result of a sentence."""
        self.results[index] = result
        self._done += 1
        if self.progress is not None:
            self.progress.add_done()

    @property
    def expected(self) -> int:
        """The sentences that this hop adds to those that are expected already.

        The first of two hops expects as many for the second one.
        """
        if self.first_hop is not None:
            return len(self.results) - len(self.first_hop.results)
        return len(self.results) * (1 if self.batch.first_of is None else 2)

    def finished(self) -> list[SentenceResult]:
        """Return the results of all sentences, which must be there."""
        results = [result for result in self.results if result is not None]
        assert len(results) == len(self.results)
        return results

    @cached_property
    def translation(self) -> Translation:
        """The translation by this model, from the results of all sentences, which must be there."""
        return assemble(self.batch.direction, self.prepared, self.finished(), self.batch.request)

    @property
    def is_done(self) -> bool:
        """Whether all sentences are translated."""
        return self._done == len(self.results)

    def new_pieces(self) -> Iterator[str]:
        """Yield the pieces of the translation (`Layout.pieces`) that have become complete since the last call."""
        while self._sent < len(self.results) and self.results[self._sent] is not None:
            self._sent += 1
            yield next(self._pieces)
        if self._sent == len(self.results):
            yield from self._pieces  # what follows the last sentence

    @cached_property
    def _pieces(self) -> Iterator[str]:
        """The pieces, each of which needs the result of one more sentence."""
        direction, route = self.batch.direction, self.batch.route
        translations = (result.translation(direction) for result in self.results if result is not None)
        pieces = self.prepared.layout.pieces(translations, is_spaced(direction.languages[1]))
        return (route.convert(piece) if route else piece for piece in pieces)

    def sentences(self) -> list[dict[str, Any]]:
        """Return each sentence with its span in the text of the caller and its translation.

        The translation is None if it is missing. Through a pivot language all are: its sentences are others.
        """
        if self.first_hop is not None:
            return self.first_hop.sentences()
        route = self.batch.route
        sentences = []
        end = 0
        for sentence, result in zip(self.prepared.sentences, self.results, strict=True):
            start = self.prepared.layout.text.index(sentence.text, end)
            end = start + len(sentence.text)
            translation = None
            if result is not None and route is not None:
                translation = route.convert(result.translation(self.batch.direction))
            sentences.append({"source": (start, end), "translation": translation})
        return sentences
