"""What the explorer's routes take, as pydantic models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sixfold.serving.schema import Asked, Language, Text

HeadName = Annotated[str, Field(max_length=40, examples=["cross.1.3"])]


class ExploreAsked(Asked):
    """A sentence to look into; its translation is the model's own where none is given."""

    text: Annotated[Text, Field(min_length=1, examples=["机器学习很有趣"])]
    translation: Annotated[Text | None, Field(description="one that the model is made to read")] = None
    source: Language | None = None
    target: Language | None = None
    model: Annotated[str | None, Field(max_length=200, description="one of /api/v1/models; none: the first")] = None
    off: Annotated[
        list[HeadName], Field(default_factory=list, max_length=4096, description="heads that are switched off")
    ]
    top: Annotated[int, Field(ge=1, le=100, description="choices that are told of each step")] = 10


class ArraysAsked(ExploreAsked):
    """Numbers of that pass, by their names; a safetensors file comes back."""

    names: Annotated[list[Annotated[str, Field(max_length=200)]], Field(min_length=1, max_length=500)]
    row: Annotated[int | None, Field(ge=0, description="only this place, in 32 bits")] = None
    half: Annotated[bool, Field(description="in 16 bits")] = False


class BeamAsked(ExploreAsked):
    """How many hypotheses are followed at once."""

    beam: Annotated[int, Field(ge=1, le=16)] = 4


class ModelAsked(Asked):
    """Which of the models that are open; none: the first."""

    source: Language | None = None
    target: Language | None = None
    model: Annotated[str | None, Field(max_length=200)] = None


class PositionsAsked(ModelAsked):
    """How many of the first places."""

    length: Annotated[int, Field(ge=2, le=512)] = 64


class MasksAsked(ModelAsked):
    """A batch."""

    texts: Annotated[list[Text], Field(min_length=1, max_length=16)]


Word = Annotated[Text, Field(min_length=1, max_length=200)]


class SimilarAsked(ModelAsked):
    """Two words, or two sentences."""

    one: Annotated[Text, Field(min_length=1, max_length=2000)]
    other: Annotated[Text, Field(min_length=1, max_length=2000)]
    sentences: bool = False


class NeighboursAsked(ModelAsked):
    """Whose, and how many."""

    word: Word
    count: Annotated[int, Field(ge=1, le=100)] = 10


class PlaneAsked(ModelAsked):
    """What is on the map."""

    words: Annotated[list[Word], Field(min_length=2, max_length=200)]
