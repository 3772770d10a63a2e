"""The special tokens that a model of another toolkit expects around a source and at the beginning of a target."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from sixfold.errors import RequestError

SOURCE, TARGET = "source", "target"  # stand for the tokens of the two languages
PLACES = ("before_source", "after_source", "before_target")

Slot = int | str  # a token id, or SOURCE or TARGET


class SpecialTokens(NamedTuple):
    """The special tokens of a direction."""

    before_source: tuple[int, ...]
    after_source: tuple[int, ...]
    before_target: tuple[int, ...]  # what every target is made to begin with, after <bos>


@dataclass(frozen=True)
class SequenceFormat:
    """Where the tokens of languages, <eos> and others go. M2M100 has [source] text [2] and [target] text.

    `languages` has the token of each language.
    """

    before_source: tuple[Slot, ...] = ()
    after_source: tuple[Slot, ...] = ()
    before_target: tuple[Slot, ...] = ()
    languages: Mapping[str, int] = field(default_factory=dict)

    def special_tokens(self, source: str, target: str) -> SpecialTokens:
        """Return the special tokens for two languages; RequestError names one that the model has no token for."""

        def fill(slots: Iterable[Slot]) -> tuple[int, ...]:
            return tuple(self._token({SOURCE: source, TARGET: target}[slot]) if type(slot) is str else int(slot)
                         for slot in slots)  # fmt: skip

        return SpecialTokens(fill(self.before_source), fill(self.after_source), fill(self.before_target))

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Return all places, those before a source first."""
        return (*self.before_source, *self.after_source, *self.before_target)

    def _token(self, language: str) -> int:
        if language not in self.languages:
            names = ", ".join(self.languages) or "none"
            raise RequestError(f"language: expected one that the model has a token for ({names}); got {language!r}")
        return self.languages[language]

    def to_json(self) -> str:
        """Return the format as one line of JSON, as it is stored in a model file."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, source_vocab: int, target_vocab: int) -> SequenceFormat:
        """Read what `to_json` returned; ValueError is raised for anything else."""
        state: Any = json.loads(text)
        if not isinstance(state, dict) or set(state) != {*PLACES, "languages"}:
            raise ValueError("the format of sequences has other entries")
        slots = {place: tuple(state[place]) for place in PLACES}
        languages = dict(state["languages"])
        for place, vocab in zip(PLACES, (source_vocab, source_vocab, target_vocab), strict=True):
            for slot in slots[place]:
                if slot not in (SOURCE, TARGET) and not (type(slot) is int and 0 <= slot < vocab):
                    raise ValueError(f"{place}: a token that the vocabulary does not have")
        if not all(type(token) is int and 0 <= token < min(source_vocab, target_vocab) for token in languages.values()):
            raise ValueError("a language has a token that the vocabulary does not have")
        return cls(**slots, languages=languages)
