"""What translates from one language into another, and which direction a text is meant for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sixfold.engines.engine import Engine
from sixfold.errors import RequestError
from sixfold.modelfile import ModelFile
from sixfold.text.identification import name_of, other_language
from sixfold.text.languages import SCRIPTS, guess_language
from sixfold.text.tokenizer import Tokenizer
from sixfold.translation.confidence import Confidence, of_card
from sixfold.translation.prepare import replace_surrogates
from sixfold.translation.result import Notice

Languages = tuple[str, str]
NAME_LANGUAGES = "name the languages: --from and --to on the command line, source and target in Python"


@dataclass(frozen=True, eq=False)
class Direction:
    """A model, told the languages."""

    languages: Languages
    engine: Engine
    tokenizer: Tokenizer
    tag: tuple[int, ...]  # what a source begins with, for a model of several directions
    max_source_tokens: int  # tokens of a source, without tag and <eos>
    file: ModelFile
    confidence: Confidence | None = None  # what its scores mean

    def encoder_input(self, ids: Sequence[int]) -> list[int]:
        """What the encoder reads."""
        return [*self.tag, *ids, self.engine.config.eos]

    def encode_target(self, text: str) -> list[int]:
        """What the model would have written; it knows no white space but single spaces."""
        return self.tokenizer.encode(collapse_whitespace(replace_surrogates(text)))

    def decode_target(self, tokens: Sequence[int]) -> str:
        """On one line, whatever the model wrote."""
        return collapse_whitespace(self.tokenizer.decode(tokens))

    @property
    def max_target_tokens(self) -> int:
        """Tokens of a target; it is read back after <bos> to be scored, which takes one place more."""
        return max(1, self.engine.config.max_length - 1)

    def check_length(self, name: str, ids: Sequence[int]) -> None:
        if len(ids) > self.max_source_tokens:
            raise RequestError(
                f"{name}: expected at most {self.max_source_tokens} tokens; got {len(ids)}",
                "take one sentence at a time",
            )


def collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


def languages_of(file: ModelFile) -> list[Languages]:
    """As the card says; a model that learnt both ways has two pairs."""
    languages = file.card.get("languages")
    named = languages if isinstance(languages, Mapping) else {}
    one, other = str(named.get("source") or "source"), str(named.get("target") or "target")
    return [(one, other), (other, one)] if file.config.data.both_ways else [(one, other)]


def tag_of(file: ModelFile, tokenizer: Tokenizer, pair: Languages) -> tuple[int, ...]:
    """What a source begins with. A model that learnt both ways is told the target by it."""
    return (tokenizer.tag(pair[1]),) if file.config.data.both_ways else tokenizer.known_tags(pair[1])


def directions_of(file: ModelFile, engine: Engine, tokenizer: Tokenizer) -> list[Direction]:
    """One or two."""
    room = min(engine.config.max_length, file.config.data.max_tokens)
    found = []
    for pair in languages_of(file):
        tag = tag_of(file, tokenizer, pair)
        max_source_tokens = max(1, room - 1 - len(tag))
        found.append(Direction(pair, engine, tokenizer, tag, max_source_tokens, file, of_card(file.card, pair)))
    return found


def choose(directions: Mapping[Languages, Direction], text: str, source: str | None, target: str | None) -> Direction:
    """The one that is meant; the script of the text tells where the caller does not."""
    known, fitting = listed(directions), allowed(directions, source, target)
    guess = guess_language([text]) if len(fitting) > 1 else ""
    if not guess:  # there is no choice, or nothing to translate
        return fitting[0]
    reading = _reading(fitting, guess)
    if len(reading) != 1:
        seems = "" if reading else f"; it seems to be in {name_of(guess)}"
        raise RequestError(
            f"direction: cannot tell which of {known} this text wants{seems}",
            NAME_LANGUAGES,
        )
    return reading[0]


def language_notices(text: str, languages: Languages) -> list[Notice]:
    """A notice where a text surely is not in the source language: kind `same-language` or `language`."""
    found = other_language(text, languages[0])
    if not found:
        return []
    if found == base_language(languages[1]):
        return [Notice("same-language", f"the text is in {name_of(found)} already, the language to translate into")]
    read = name_of(base_language(languages[0]))
    return [Notice("language", f"the text seems to be in {name_of(found)}; the model reads {read}")]


def listed(directions: Mapping[Languages, Direction]) -> str:
    return ", ".join(f"{one}→{other}" for one, other in directions)


def allowed(directions: Mapping[Languages, Direction], source: str | None, target: str | None) -> list[Direction]:
    """Those that fit the languages which the caller names; at least one.

    zh-CN stands for zh where no model has it by its full name.
    """
    for simplify in (str, base_language):
        wanted = [None if code is None else simplify(code) for code in (None if source == "auto" else source, target)]
        fitting = [
            each
            for languages, each in directions.items()
            if all(code in (None, simplify(own)) for code, own in zip(wanted, languages, strict=True))
        ]
        if fitting:
            return fitting
    named = " ".join(f"{side} {code}" for side, code in (("from", source), ("to", target)) if code)
    raise RequestError(
        f"direction: expected one of {listed(directions)}; got {named}", "name these languages, or another model"
    )


def base_language(code: str) -> str:
    """A language code without script and region: zh of zh-Hans-CN."""
    return re.split("[-_]", code.lower())[0]


def check_languages(directions: Mapping[Languages, Direction], source: str | None, target: str | None) -> None:
    """Where no text could tell the direction, as between German and English, the caller must."""
    fitting = allowed(directions, source, target)
    if len(fitting) > 1 and len({_scripts(each) for each in fitting}) == 1:
        raise RequestError(
            f"direction: cannot tell which of {listed(directions)} a text wants, as all are written alike",
            NAME_LANGUAGES,
        )


def _scripts(direction: Direction) -> tuple[str, ...]:
    return tuple(SCRIPTS.get(base_language(direction.languages[0]), ()))


def _reading(directions: Sequence[Direction], guess: str) -> list[Direction]:
    """Those whose source is written as the guessed language is: alike, or else in part, as Japanese is like Chinese."""
    written = tuple(SCRIPTS[guess])
    scripts = [_scripts(each) for each in directions]
    alike = [each for each, its in zip(directions, scripts, strict=True) if its == written]
    return alike or [each for each, its in zip(directions, scripts, strict=True) if not set(its).isdisjoint(written)]
