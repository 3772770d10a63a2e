"""The requests and responses of /api/v1 as pydantic models. The OpenAPI description is made from them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sixfold.translation.prepare import replace_surrogates

Text = Annotated[str, AfterValidator(replace_surrogates)]
Language = Annotated[str, Field(max_length=35, examples=["zh"])]
Span = tuple[int, int]

SOURCE_HELP = "Language of the text. Default: detected in each text."
TARGET_HELP = "Language to translate into. Default: the one that the model translates into."
Source = Annotated[Language | None, Field(description=SOURCE_HELP)]
Target = Annotated[Language | None, Field(description=TARGET_HELP)]


class RequestBody(BaseModel):
    """The base of all requests. A field that does not exist is an error."""

    model_config = ConfigDict(extra="forbid")


class GlossaryTerm(RequestBody):
    """A term of the source text and the translation that it must have."""

    source: Annotated[Text, Field(min_length=1, max_length=200)]
    target: Annotated[Text, Field(min_length=1, max_length=200)]


class TranslateRequest(RequestBody):
    """Texts to translate. A text may have any length, and its lines are kept."""

    texts: Annotated[list[Text], Field(min_length=1, examples=[["机器学习很有趣"]])]
    source: Source = None
    target: Target = None
    beam: Annotated[int, Field(ge=1, le=16, description="Hypotheses of the beam search. 1 is fastest.")] = 4
    n_best: Annotated[int, Field(ge=1, le=16, description="Number of translations to return for each text.")] = 1
    length_penalty: Annotated[
        float, Field(ge=0, le=10, description="0 prefers short translations; a larger number prefers long ones.")
    ] = 1.0
    prefix: Annotated[Text, Field(description="Text that the translation must begin with.")] = ""
    split: Annotated[bool, Field(description="Split lines into sentences before translating.")] = True
    guard: Annotated[bool, Field(description="Translate again where the result is clearly wrong.")] = True
    details: Annotated[bool, Field(description="Return tokens with probabilities, and the alignment.")] = False
    pivot: Annotated[bool, Field(description="Translate through English where no model has the direction.")] = False
    glossary: Annotated[
        list[GlossaryTerm], Field(max_length=1000, description="Terms that must be translated as given.")
    ] = []


class AlternativesRequest(RequestBody):
    """A text and the beginning of its translation."""

    text: Annotated[Text, Field(description="The text to translate.")]
    prefix: Annotated[Text, Field(description="The beginning of the translation.")] = ""
    count: Annotated[int, Field(ge=1, le=16, description="Number of alternatives.")] = 5
    source: Source = None
    target: Target = None


class ScoreRequest(RequestBody):
    """A text and a translation of it that the model scores."""

    text: Annotated[Text, Field(description="The source text.")]
    translation: Annotated[Text, Field(description="The translation to score.")]
    source: Source = None
    target: Target = None


class TokenResponse(BaseModel):
    """A token of the translation: its text and span, its probability, and the span of the source it aligns to."""

    text: str
    span: Span
    probability: float
    source: Span


class LinkResponse(BaseModel):
    """A link of the word alignment: spans of characters in the translation and the source, and a weight."""

    target: Span
    source: Span
    weight: float


class SentenceResponse(BaseModel):
    """A sentence: its spans of characters in the source and the translation, and what it cost.

    A text that is not complete has `translation` instead of `target` and the costs. It is null if the sentence is
    missing, and always through a pivot language.
    """

    source: Span
    target: Span | None = None
    translation: str | None = None
    tokens: Annotated[int, Field(description="Tokens of the source and the translation.")] = 0
    milliseconds: Annotated[float, Field(description="Share of the sentence in the time of its batch.")] = 0.0
    cached: Annotated[bool, Field(description="The server had the translation already.")] = False


class AlternativeResponse(BaseModel):
    """One of the n best translations, with its score."""

    text: str
    score: float


class WarningResponse(BaseModel):
    """A warning about a translation: its kind, a message, and the span of the text that it is about."""

    kind: str
    message: str
    span: Span | None


class TranslationResponse(BaseModel):
    """A translation. `from` and `to` are languages. `tokens` and `alignment` need `details`.

    So does `sentences`, unless the translation is not complete: then they are there if the text was split in time.
    """

    source: str
    translation: Annotated[str | None, Field(description="Null if it is not complete.")]
    complete: Annotated[bool, Field(description="False if sentences were missing at the deadline.")] = True
    score: float | None
    confidence: float | None
    from_: Annotated[str | None, Field(alias="from", description="Null if the text was not even split in time.")]
    to: str | None
    n_best: list[AlternativeResponse]
    warnings: list[WarningResponse]
    tokens: list[TokenResponse] | None = None
    alignment: list[LinkResponse] | None = None
    sentences: list[SentenceResponse] | None = None


class TranslationsResponse(BaseModel):
    """The translations, in the order of the texts."""

    translations: list[TranslationResponse]
    complete: Annotated[bool, Field(description="False if sentences were missing at the deadline.")] = True
    done: Annotated[
        int | None, Field(description="Sentences that are translated. Through a pivot language each counts twice.")
    ] = None
    total: Annotated[int | None, Field(description="Sentences of all texts that have been split.")] = None


class ModelResponse(BaseModel):
    """A model file: its name, checksum, size in bytes, and card."""

    name: str
    checksum: str
    bytes: int
    card: dict[str, Any]


class ModelsResponse(BaseModel):
    """The directions that can be translated, the models that write texts, and all models that are loaded."""

    directions: list[tuple[str, str]]
    writing: Annotated[list[str], Field(description="Names of the models that write texts.")]
    models: list[ModelResponse]


class ErrorResponse(BaseModel):
    """What is wrong, and perhaps a hint how to put it right."""

    error: str
    hint: str | None = None
