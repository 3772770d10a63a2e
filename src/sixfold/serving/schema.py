"""What our own interface takes and gives, as pydantic models: OpenAPI is made from them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from sixfold.translation.prepare import replace_surrogates

Text = Annotated[str, AfterValidator(replace_surrogates)]
Language = Annotated[str, Field(max_length=35, examples=["zh"])]
Span = tuple[int, int]


class Asked(BaseModel):
    """Unknown fields are mistakes, and are told."""

    model_config = ConfigDict(extra="forbid")


class TermAsked(Asked):
    source: Annotated[Text, Field(min_length=1, max_length=200)]
    target: Annotated[Text, Field(min_length=1, max_length=200)]


class TranslateAsked(Asked):
    """Texts to translate; each may be of any length, and its lines are kept."""

    texts: Annotated[list[Text], Field(min_length=1, examples=[["机器学习很有趣"]])]
    source: Annotated[Language | None, Field(description="left out: told by the script of each text")] = None
    target: Language | None = None
    beam: Annotated[int, Field(ge=1, le=16)] = 4
    n_best: Annotated[int, Field(ge=1, le=16)] = 1
    prefix: Annotated[Text, Field(description="what the translation begins with")] = ""
    split: Annotated[bool, Field(description="into sentences")] = True
    guard: Annotated[bool, Field(description="ask again for what is plainly wrong")] = True
    details: Annotated[bool, Field(description="tokens with probabilities, and the alignment")] = False
    pivot: Annotated[bool, Field(description="through English where no model goes straight")] = False
    glossary: Annotated[list[TermAsked], Field(max_length=1000)] = []


class AlternativesAsked(Asked):
    """What may come next after the prefix."""

    text: Text
    prefix: Text = ""
    count: Annotated[int, Field(ge=1, le=16)] = 5
    source: Language | None = None
    target: Language | None = None


class ScoreAsked(Asked):
    """A translation that is given."""

    text: Text
    translation: Text
    source: Language | None = None
    target: Language | None = None


class TokenSaid(BaseModel):
    text: str
    span: Span
    probability: float
    source: Span


class LinkSaid(BaseModel):
    target: Span
    source: Span
    weight: float


class SentenceSaid(BaseModel):
    source: Span
    target: Span


class CandidateSaid(BaseModel):
    text: str
    score: float


class NoticeSaid(BaseModel):
    kind: str
    message: str
    span: Span | None


class TranslationSaid(BaseModel):
    """`from` and `to` are the languages; the last three are there when details were asked for."""

    source: str
    translation: str
    score: float
    confidence: float | None
    from_: Annotated[str, Field(alias="from")]
    to: str
    n_best: list[CandidateSaid]
    warnings: list[NoticeSaid]
    tokens: list[TokenSaid] | None = None
    alignment: list[LinkSaid] | None = None
    sentences: list[SentenceSaid] | None = None


class TranslationsSaid(BaseModel):
    translations: list[TranslationSaid]


class ModelSaid(BaseModel):
    name: str
    checksum: str
    bytes: int
    card: dict[str, Any]


class ModelsSaid(BaseModel):
    directions: list[tuple[str, str]]
    models: list[ModelSaid]


class Refused(BaseModel):
    """What was wrong, and perhaps what to do."""

    error: str
    hint: str | None = None
