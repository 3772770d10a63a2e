"""A direction: a model that translates from one language into another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sixfold.engines.engine import Engine
from sixfold.engines.pool import PooledFile
from sixfold.engines.prefixed import PrefixedEngine
from sixfold.errors import RequestError
from sixfold.modelfile import ModelFile
from sixfold.text.identification import name_of, other_language
from sixfold.text.language_codes import base_language
from sixfold.text.sequence_format import SpecialTokens
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
    special: SpecialTokens  # around a source; the engine adds those before a target
    max_source_tokens: int  # without special tokens
    header: ModelFile  # config, card and profiles of the model, or all of it if it is in no pool
    pooled_file: PooledFile | None  # is read again if its memory was needed for other models
    reads_traditional: bool  # the tokeniser reads traditional Chinese characters as simplified ones
    confidence: ConfidenceCurve | None = None  # from the score of a sentence to a probability
    reverse: SpecialTokens | None = None  # those of the other direction, if the model has it too

    @property
    def file(self) -> ModelFile:
        """The model with its weights and tokenisers."""
        return self.header if self.pooled_file is None else self.pooled_file.get()

    @property
    def is_open(self) -> bool:
        """Whether the tokenisers are in memory; otherwise the first use of one takes some tenths of a second."""
        return self.pooled_file is None or self.pooled_file.is_open

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokeniser of sources."""
        tokenizer = self.file.tokenizer
        assert tokenizer is not None  # directions are those of models with one
        return tokenizer

    @property
    def target_tokenizer(self) -> Tokenizer:
        """The tokeniser of translations, which a model may share with sources."""
        file = self.file
        return file.target_tokenizer or self.tokenizer

    @property
    def tag(self) -> tuple[int, ...]:
        """The tokens before each source, such as one that tells a model of several directions the target language."""
        return self.special.before_source

    def encoder_input(self, ids: Sequence[int]) -> list[int]:
        """Return source tokens with the special tokens around them."""
        return [*self.special.before_source, *ids, *self.special.after_source]

    def text_columns(self, count: int) -> slice:
        """Return which of the `count` tokens of an encoder input are those of the text."""
        return slice(len(self.special.before_source), count - len(self.special.after_source))

    def encode_target(self, text: str) -> list[int]:
        """Return the tokens of a translation; white space becomes single spaces, as in what the model writes."""
        return self.target_tokenizer.encode(collapse_whitespace(replace_surrogates(text)))

    def decode_target(self, tokens: Sequence[int]) -> str:
        """Return the text of target tokens, on one line with single spaces."""
        return collapse_whitespace(self.target_tokenizer.decode(tokens))

    @property
    def max_target_tokens(self) -> int:
        """The longest target. It leaves a position for the <bos> that precedes a target when it is scored."""
        return max(1, self.engine.config.max_length - 1 - len(self.special.before_target))

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
    """Return the directions that the card of a model names: two for a model trained in both directions, else one.

    A card with lists of languages names every pair of two different ones.
    """
    languages = file.card.get("languages")
    codes = languages if isinstance(languages, Mapping) else {}
    source, target = codes.get("source") or "source", codes.get("target") or "target"
    if isinstance(source, list) or isinstance(target, list):
        sides = [[str(code) for code in (side if isinstance(side, list) else [side])] for side in (source, target)]
        return [(first, second) for first in sides[0] for second in sides[1] if first != second]
    pair = str(source), str(target)
    return [pair, pair[::-1]] if file.config.data.both_ways else [pair]


def quality_from_card(card: Mapping[str, Any], pair: Languages) -> float:
    """Return the quality of a direction that a card declares, from 0 to 1: `quality."zh-en"`, or 0 without one."""
    qualities = card.get("quality")
    quality = qualities.get("-".join(pair)) if isinstance(qualities, Mapping) else None
    return min(1.0, max(0.0, float(quality))) if isinstance(quality, int | float) else 0.0


def special_tokens(file: ModelFile, tokenizer: Tokenizer, pair: Languages) -> SpecialTokens:
    """Return the special tokens that a model expects for a direction."""
    if file.sequence_format is not None:
        return file.sequence_format.special_tokens(*pair)
    return SpecialTokens(tag_of(file, tokenizer, pair), (file.config.model.eos,), ())


def tag_of(file: ModelFile, tokenizer: Tokenizer, pair: Languages) -> tuple[int, ...]:
    """Return the tag that tells the model the target language.

    A model trained in both directions needs one; any other has one if its tokeniser knows a tag for the language.
    """
    return (tokenizer.tag(pair[1]),) if file.config.data.both_ways else tokenizer.tag_prefix(pair[1])


def directions_of(
    file: ModelFile, engine: Engine, tokenizer: Tokenizer, pooled_file: PooledFile | None = None
) -> list[Direction]:
    """Return the directions of a model. With `pooled_file`, they keep only the header of the file in memory."""
    header = file if pooled_file is None else file.header()
    max_tokens = min(engine.config.max_length, file.config.data.max_tokens)
    directions = []
    engines: dict[tuple[int, ...], Engine] = {(): engine}
    special_of = {pair: special_tokens(file, tokenizer, pair) for pair in languages_of(file)}
    for pair, special in special_of.items():
        max_source_tokens = max(1, max_tokens - len(special.before_source) - len(special.after_source))
        curve = curve_from_card(file.card, pair)
        if special.before_target not in engines:
            engines[special.before_target] = PrefixedEngine(engine, special.before_target)
        reverse = special_of.get((pair[1], pair[0]))
        if reverse is not None and (file.target_tokenizer or reverse.before_target != special.before_target):
            reverse = None
        own_engine = engines[special.before_target]
        directions.append(
            Direction(
                pair, own_engine, special, max_source_tokens, header, pooled_file, bool(tokenizer.character_map), curve,
                reverse,
            )
        )  # fmt: skip
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
