"""A direction: a model that translates from one language into another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sixfold.engines.engine import Engine
from sixfold.errors import RequestError
from sixfold.modelfile import ModelFile
from sixfold.text.identification import name_of, other_language
from sixfold.text.language_codes import base_language
from sixfold.text.tokenizer import Tokenizer
from sixfold.translation.confidence import ConfidenceCurve, curve_from_card
from sixfold.translation.prepare import replace_surrogates
from sixfold.translation.result import Notice

Languages = tuple[str, str]  # codes of source and target


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
    reverse_tag: tuple[int, ...] | None = None  # the tag of the other direction, if the model has both

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
    tags = {pair: tag_of(file, tokenizer, pair) for pair in languages_of(file)}
    for pair, tag in tags.items():
        max_source_tokens = max(1, max_tokens - 1 - len(tag))
        curve = curve_from_card(file.card, pair)
        reverse_tag = tags.get((pair[1], pair[0]))
        directions.append(Direction(pair, engine, tokenizer, tag, max_source_tokens, file, curve, reverse_tag))
    return directions


def language_notices(text: str, languages: Languages) -> list[Notice]:
    """Return a notice of kind `same-language` or `language` if a text surely is not in the source language."""
    language = other_language(text, languages[0])
    if not language:
        return []
    if language == base_language(languages[1]):
        return [Notice("same-language", f"the text is in {name_of(language)} already, the language to translate into")]
    expected = name_of(base_language(languages[0]))
    return [Notice("language", f"the text seems to be in {name_of(language)}; the model reads {expected}")]
