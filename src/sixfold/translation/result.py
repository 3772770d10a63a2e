"""A translation with its scores, alternatives, notices, sentences and details: tokens, word alignment, matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

Span = tuple[int, int]  # characters of a text: the first, and the one after the last


class Token(NamedTuple):
    """A token of the translation, its probability, and the source token that it is aligned with."""

    text: str
    span: Span  # in the translation
    probability: float
    source: Span  # in the source


class Link(NamedTuple):
    """A word of the translation, and the source word that it is aligned with."""

    target: Span
    source: Span
    weight: float  # the share of the target word's attention that goes to the source word


class Alternative(NamedTuple):
    """One of the n best translations. The score is the mean log-probability of a token, less a length penalty."""

    text: str
    score: float


class Match(NamedTuple):
    """An entry of a translation memory. A score of 1 is an exact match, which is used; a lower one is only shown."""

    source: str
    target: str
    score: float


class Notice(NamedTuple):
    """A warning about a translation: a kind for programs, and a sentence for people."""

    kind: str
    message: str
    span: Span | None = None  # in the translation; None where it concerns no certain part


class Sentence(NamedTuple):
    """A sentence of the source that was translated by itself, its translation, and what that cost."""

    source: Span
    target: Span
    tokens: int = 0  # of the source and of the translation
    milliseconds: float = 0.0  # of decoding: the share of the sentence in the time of its batch
    cached: bool = False  # a server had its translation already


class Details(NamedTuple):
    """The parts of a translation that need another pass through the model."""

    tokens: tuple[Token, ...] = ()
    alignment: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Translation:
    """The translation of a text. Its details and its memory matches are computed when they are first read."""

    source: str
    text: str
    score: float
    languages: tuple[str, str]
    n_best: tuple[Alternative, ...] = ()
    warnings: tuple[Notice, ...] = ()
    # The probability that the sentence with the lowest score is translated fairly; None where the model's card has no
    # curve for it.
    confidence: float | None = None
    sentences: tuple[Sentence, ...] = field(default=(), compare=False)  # those that were translated one by one
    _explain: Callable[[], Details] | None = field(default=None, repr=False, compare=False)
    _recall: Callable[[], tuple[Match, ...]] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def _details(self) -> Details:
        return self._explain() if self._explain else Details()

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the translation that the model wrote, with their probabilities."""
        return self._details.tokens

    @property
    def alignment(self) -> tuple[Link, ...]:
        """Each word of the translation with the source word that it is aligned with."""
        return self._details.alignment

    @cached_property
    def matches(self) -> tuple[Match, ...]:
        """The entries of the translation memory that match the sentences; empty without a memory."""
        return self._recall() if self._recall else ()

    def to_dict(self, details: bool = False) -> dict[str, Any]:
        """Return the translation as values that JSON can hold, with tokens, alignment and sentences if `details`."""
        values: dict[str, Any] = {
            "source": self.source, "translation": self.text, "score": self.score, "confidence": self.confidence,
            "from": self.languages[0], "to": self.languages[1],
            "n_best": [alternative._asdict() for alternative in self.n_best],
            "warnings": [notice._asdict() for notice in self.warnings],
        }  # fmt: skip
        if self._recall:
            values["memory"] = [match._asdict() for match in self.matches]
        if details:
            values["tokens"] = [token._asdict() for token in self.tokens]
            values["alignment"] = [link._asdict() for link in self.alignment]
            values["sentences"] = [sentence._asdict() for sentence in self.sentences]
        return values


class TranslationPart(NamedTuple):
    """A part of the translation of a text that is still being translated; all parts joined are the translation."""

    text: str  # a sentence with the white space before it
    done: int  # sentences that are translated
    total: int  # sentences of the text
    translation: Translation | None = None  # the whole translation, with the last part
