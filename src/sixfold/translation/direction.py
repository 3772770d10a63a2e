"""A direction: a model that translates from one language into another; and the direction that a text needs."""

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
from sixfold.translation.confidence import ConfidenceCurve, curve_from_card
from sixfold.translation.prepare import replace_surrogates
from sixfold.translation.result import Notice

Languages = tuple[str, str]  # codes of source and target
NAME_LANGUAGES = "name the languages: --from and --to on the command line, source and target in Python"


@dataclass(frozen=True, eq=False)
class Direction:
    """A model with the languages that it translates from and into."""

    languages: Languages
    engine: Engine
    tokenizer: Tokenizer
    tag: tuple[int, ...]  # the tokens before each source that tell a model of several directions the target language
    max_source_tokens: int  # without tag and <eos>
    file: ModelFile
    confidence: ConfidenceCurve | None = None  # from the score of a sentence to a probability

    def encoder_input(self, ids: Sequence[int]) -> list[int]:
        """Return source tokens with tag and <eos>."""
        return [*self.tag, *ids, self.engine.config.eos]

    def encode_target(self, text: str) -> list[int]:
        """Return the tokens of a translation; white space becomes single spaces, as in what the model writes."""
        return self.tokenizer.encode(collapse_whitespace(replace_surrogates(text)))

    def decode_target(self, tokens: Sequence[int]) -> str:
        """Return the text of target tokens, on one line with single spaces."""
        return collapse_whitespace(self.tokenizer.decode(tokens))

    @property
    def max_target_tokens(self) -> int:
        """The longest target. It leaves a position for the <bos> that precedes a target when it is scored."""
        return max(1, self.engine.config.max_length - 1)

    def check_length(self, name: str, ids: Sequence[int]) -> None:
        """Raise RequestError if a text, which `name` names, has more tokens than a source may have."""
        if len(ids) > self.max_source_tokens:
            raise RequestError(
                f"{name}: expected at most {self.max_source_tokens} tokens; got {len(ids)}",
                "take one sentence at a time",
            )


def collapse_whitespace(text: str) -> str:
    """Return a text with a single space for each run of white space, and none at its ends."""
    return " ".join(text.split())


def languages_of(file: ModelFile) -> list[Languages]:
    """Return the languages on the card of a model: two pairs for a model trained in both directions, else one."""
    languages = file.card.get("languages")
    codes = languages if isinstance(languages, Mapping) else {}
    source, target = str(codes.get("source") or "source"), str(codes.get("target") or "target")
    return [(source, target), (target, source)] if file.config.data.both_ways else [(source, target)]


def tag_of(file: ModelFile, tokenizer: Tokenizer, pair: Languages) -> tuple[int, ...]:
    """Return the tag that tells the model the target language.

    A model trained in both directions needs one; any other has one if its tokeniser knows a tag for the language.
    """
    return (tokenizer.tag(pair[1]),) if file.config.data.both_ways else tokenizer.tag_prefix(pair[1])


def directions_of(file: ModelFile, engine: Engine, tokenizer: Tokenizer) -> list[Direction]:
    """Return the one or two directions of a model."""
    max_tokens = min(engine.config.max_length, file.config.data.max_tokens)
    directions = []
    for pair in languages_of(file):
        tag = tag_of(file, tokenizer, pair)
        max_source_tokens = max(1, max_tokens - 1 - len(tag))
        curve = curve_from_card(file.card, pair)
        directions.append(Direction(pair, engine, tokenizer, tag, max_source_tokens, file, curve))
    return directions


def choose_direction(
    directions: Mapping[Languages, Direction], text: str, source: str | None, target: str | None
) -> Direction:
    """Return the direction for the languages that the caller names, or else for the script of the text.

    Raise RequestError if no direction or more than one direction fits.
    """
    names, matching = direction_names(directions), matching_directions(directions, source, target)
    guess = guess_language([text]) if len(matching) > 1 else ""
    if not guess:  # one direction only, or nothing to translate
        return matching[0]
    reading = _directions_from(matching, guess)
    if len(reading) != 1:
        seems = "" if reading else f"; it seems to be in {name_of(guess)}"
        raise RequestError(f"direction: cannot tell which of {names} this text needs{seems}", NAME_LANGUAGES)
    return reading[0]


def language_notices(text: str, languages: Languages) -> list[Notice]:
    """Return a notice of kind `same-language` or `language` if a text surely is not in the source language."""
    language = other_language(text, languages[0])
    if not language:
        return []
    if language == base_language(languages[1]):
        return [Notice("same-language", f"the text is in {name_of(language)} already, the language to translate into")]
    expected = name_of(base_language(languages[0]))
    return [Notice("language", f"the text seems to be in {name_of(language)}; the model reads {expected}")]


def direction_names(directions: Mapping[Languages, Direction]) -> str:
    """Return the languages of directions for a message: zh→en, en→zh."""
    return ", ".join(f"{source}→{target}" for source, target in directions)


def matching_directions(
    directions: Mapping[Languages, Direction], source: str | None, target: str | None
) -> list[Direction]:
    """Return the directions, at least one, that fit the languages which the caller names.

    Codes are compared in full first, then without script and region: zh-CN fits zh if no model has zh-CN.
    """
    for simplify in (str, base_language):
        codes = [None if code is None else simplify(code) for code in (None if source == "auto" else source, target)]
        matching = [
            direction
            for languages, direction in directions.items()
            if all(code in (None, simplify(language)) for code, language in zip(codes, languages, strict=True))
        ]
        if matching:
            return matching
    named = " ".join(f"{side} {code}" for side, code in (("from", source), ("to", target)) if code)
    raise RequestError(
        f"direction: expected one of {direction_names(directions)}; got {named}",
        "name these languages, or another model",
    )


def base_language(code: str) -> str:
    """Return a language code without script and region: zh for zh-Hans-CN."""
    return re.split("[-_]", code.lower())[0]


def check_languages(directions: Mapping[Languages, Direction], source: str | None, target: str | None) -> None:
    """Raise RequestError if no direction fits, or if no text could tell which one, as between German and English."""
    matching = matching_directions(directions, source, target)
    if len(matching) > 1 and len({_source_scripts(direction) for direction in matching}) == 1:
        raise RequestError(
            f"direction: cannot tell which of {direction_names(directions)} a text needs, "
            "as their source languages share a script",
            NAME_LANGUAGES,
        )


def _source_scripts(direction: Direction) -> tuple[str, ...]:
    return tuple(SCRIPTS.get(base_language(direction.languages[0]), ()))


def _directions_from(directions: Sequence[Direction], language: str) -> list[Direction]:
    """Return the directions whose source has the scripts of a language; if none has, those that share a script.

    Japanese and Chinese share one.
    """
    expected = tuple(SCRIPTS[language])
    scripts = [_source_scripts(direction) for direction in directions]
    pairs = list(zip(directions, scripts, strict=True))
    same = [direction for direction, own in pairs if own == expected]
    return same or [direction for direction, own in pairs if not set(own).isdisjoint(expected)]
