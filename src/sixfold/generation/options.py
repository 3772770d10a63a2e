"""The options of writing a text, and what is written. This module needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from sixfold.configfile import require
from sixfold.decoding.options import GREEDY, SamplingOptions

Finish = Literal["stop", "length"]  # a text ended where the model or a stop string ended it, or at its limit
MAX_SAMPLES = 1000


@dataclass(frozen=True)
class GenerateOptions:
    """How much is written after a prompt, how its tokens are taken, and what ends it."""

    max_tokens: int = 256  # of each text; a prompt and its text have at most model.max_length together
    stop: tuple[str, ...] = ()  # a text ends before the first of these strings
    n: int = 1  # texts for each prompt
    likeliest: int = 0  # tokens that are listed for each place, with their log-probabilities
    sampling: SamplingOptions = GREEDY

    def __post_init__(self) -> None:
        for name, least, most in (("max_tokens", 1, 10**7), ("n", 1, MAX_SAMPLES), ("likeliest", 0, 1000)):
            value = getattr(self, name)
            require(type(value) is int and least <= value <= most, f"generate.{name}", f"{least} to {most}", value)
        is_valid = isinstance(self.stop, tuple) and all(isinstance(each, str) and each for each in self.stop)
        require(is_valid, "generate.stop", "strings of at least one character", self.stop)
        require(isinstance(self.sampling, SamplingOptions), "generate.sampling", "SamplingOptions", self.sampling)


@dataclass(frozen=True)
class Likely:
    """A token that might be in a place."""

    id: int
    text: str
    logprob: float


@dataclass(frozen=True)
class TextToken:
    """A token of a text: what it adds to the text, and the log-probability that the model gave it.

    Options of sampling do not change the log-probability. A token that holds only a part of a character adds nothing;
    the one that completes it adds the character.
    """

    id: int
    text: str
    logprob: float
    likeliest: tuple[Likely, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the token as it is in JSON."""
        content = asdict(self)
        if not self.likeliest:
            del content["likeliest"]
        return content


@dataclass(frozen=True)
class TextChunk:
    """A part of a text, as soon as it is certain: it cannot be the beginning of a stop string or half a character.

    The last chunk of a text has `finish`, and may have no text.
    """

    text: str
    tokens: tuple[TextToken, ...] = ()
    prompt: int = 0  # index of the prompt
    sample: int = 0  # index of the text among those of its prompt
    finish: Finish | None = None
    stop: str | None = None  # the stop string that ended the text


@dataclass(frozen=True)
class Continuation:
    """A text that continues a prompt."""

    text: str
    finish: Finish
    tokens: tuple[TextToken, ...] = field(default=(), repr=False)
    stop: str | None = None  # the stop string that ended the text

    @classmethod
    def of(cls, chunks: Sequence[TextChunk]) -> Continuation:
        """Return the text that chunks make up. Without a last one it ends as at a limit."""
        last = chunks[-1] if chunks else TextChunk("")
        tokens = tuple(token for chunk in chunks for token in chunk.tokens)
        return cls("".join(chunk.text for chunk in chunks), last.finish or "length", tokens, last.stop)

    @property
    def logprob(self) -> float:
        """Return the log-probability of the whole text, without that of its end."""
        return sum(token.logprob for token in self.tokens)

    def to_dict(self) -> dict[str, Any]:
        """Return the text as it is in JSON."""
        return {
            "text": self.text, "finish": self.finish, "stop": self.stop, "logprob": self.logprob,
            "tokens": [token.to_dict() for token in self.tokens],
        }  # fmt: skip


@dataclass(frozen=True)
class NextToken:
    """A token that may come next: its log-probability for the model, and the probability that it is drawn."""

    id: int
    text: str
    logprob: float
    drawn: float


@dataclass(frozen=True)
class NextTokens:
    """What may come next, the likeliest first."""

    tokens: tuple[NextToken, ...]
    kept: int  # tokens of the vocabulary that may be drawn at all
    entropy: float  # of the model's distribution, in bits
