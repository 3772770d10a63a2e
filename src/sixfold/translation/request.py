"""A translation request: everything that a caller may choose besides the texts, and what of it the decoder needs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from sixfold.translation.glossary import Glossary
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions

NO_GLOSSARY = Glossary(())


class DecodeOptions(NamedTuple):
    """What decides how a sentence is decoded. Sentences of one direction with equal options can share a batch."""

    options: TranslateOptions = TranslateOptions()  # only its fields about search and guard
    glossary: Glossary = NO_GLOSSARY  # the terms of the direction
    details: bool = False  # also compute tokens and alignment


@dataclass(frozen=True)
class TranslationRequest:
    """The languages of a translation and how it is made."""

    source: str | None = None  # None: detected
    target: str | None = None  # None: the language that the models translate into
    options: TranslateOptions = field(default_factory=TranslateOptions)
    glossary: Glossary | None = None
    memory: TranslationMemory | None = None
    details: bool = False  # compute tokens and alignment together with the translation
    pivot: bool = False  # translate through a third language where no model has the direction

    def decode_options(self, languages: tuple[str, str]) -> DecodeOptions:
        """Return the options for sentences of a direction.

        Prefix and splitting are left out: `prepare` has applied them to the sentences.
        """
        options = self.options
        search = TranslateOptions(options.beam, options.n_best, options.length_penalty, guard=options.guard)
        return DecodeOptions(search, (self.glossary or NO_GLOSSARY).toward(languages), self.details)

    def settings(self) -> dict[str, Any]:
        """Return what decides the translation of a text, as values that JSON can hold.

        Work that is interrupted and continued must have the same settings.
        """
        return {
            "from": self.source, "to": self.target, **asdict(self.options),
            "glossary": [list(term) for term in self.glossary.terms] if self.glossary else None,
            "memory": self.memory.digest() if self.memory else None,
        } | ({"pivot": True} if self.pivot else {})  # fmt: skip
