"""A translation and what is known about it: scores, tokens, which word comes from which, and what to be wary of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

Span = tuple[int, int]  # from the first character to behind the last


class Token(NamedTuple):
    """A piece of the translation: where it stands, how sure the model was, and where it looked most."""

    text: str
    span: Span  # in the translation
    probability: float
    source: Span  # in the source


class Link(NamedTuple):
    """A word of the translation, and the word of the source that it looked at most."""

    target: Span
    source: Span
    weight: float  # the share of its attention that went there


class Alternative(NamedTuple):
    """Another way to say it. The score is the mean log-probability of a token, less a length penalty."""

    text: str
    score: float


class Match(NamedTuple):
    """What a memory has for a sentence: 1 for the same, which is used; less for what is alike, which is shown."""

    source: str
    target: str
    score: float


class Notice(NamedTuple):
    """What to be wary of: a kind that programs know, and a sentence for people."""

    kind: str
    message: str
    span: Span | None = None  # in the translation, where it can be said


class Sentence(NamedTuple):
    """A part that was translated by itself, and what it became."""

    source: Span
    target: Span


class Details(NamedTuple):
    """What takes another pass through the model to learn."""

    tokens: tuple[Token, ...]
    alignment: tuple[Link, ...]
    sentences: tuple[Sentence, ...] = ()


@dataclass(frozen=True)
class Translation:
    """What a text became. Details and `matches` are worked out when they are first asked for."""

    source: str
    text: str
    score: float
    languages: tuple[str, str]
    n_best: tuple[Alternative, ...] = ()
    warnings: tuple[Notice, ...] = ()
    confidence: float | None = None  # the chance that its least sure sentence is a fair one, where the model can tell
    _explain: Callable[[], Details] | None = field(default=None, repr=False, compare=False)
    _recall: Callable[[], tuple[Match, ...]] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def _details(self) -> Details:
        return self._explain() if self._explain else Details((), ())

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The pieces of the translation that the model wrote, with their probabilities."""
        return self._details.tokens

    @property
    def alignment(self) -> tuple[Link, ...]:
        """Which word comes from which."""
        return self._details.alignment

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """Which parts were translated by themselves."""
        return self._details.sentences

    @cached_property
    def matches(self) -> tuple[Match, ...]:
        """What the memory has for its sentences, where one was given."""
        return self._recall() if self._recall else ()

    def to_dict(self, details: bool = False) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        found: dict[str, Any] = {
            "source": self.source, "translation": self.text, "score": self.score, "confidence": self.confidence,
            "from": self.languages[0], "to": self.languages[1],
            "n_best": [each._asdict() for each in self.n_best],
            "warnings": [each._asdict() for each in self.warnings],
        }  # fmt: skip
        if self._recall:
            found["memory"] = [each._asdict() for each in self.matches]
        if details:
            found["tokens"] = [each._asdict() for each in self.tokens]
            found["alignment"] = [each._asdict() for each in self.alignment]
            found["sentences"] = [each._asdict() for each in self.sentences]
        return found
