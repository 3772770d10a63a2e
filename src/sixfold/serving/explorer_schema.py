"""The requests of /api/v1/explore as pydantic models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sixfold.serving.schema import RequestBody, Source, Target, Text

HeadName = Annotated[str, Field(max_length=40, examples=["cross.1.3"])]
ModelName = Annotated[
    str | None, Field(max_length=200, description="Name of a model that /api/v1/models lists. Default: the first.")
]
SENTENCE_HELP = "A word, or with `sentences` a sentence."


class ExploreRequest(RequestBody):
    """A sentence to explore. Without a translation, the model translates it."""

    text: Annotated[Text, Field(min_length=1, examples=["机器学习很有趣"], description="The source sentence.")]
    translation: Annotated[Text | None, Field(description="A translation for the decoder to read.")] = None
    source: Source = None
    target: Target = None
    model: ModelName = None
    off: Annotated[
        list[HeadName], Field(default_factory=list, max_length=4096, description="Attention heads to switch off.")
    ]
    top: Annotated[int, Field(ge=1, le=100, description="Number of most likely tokens to list for each step.")] = 10


class ArraysRequest(ExploreRequest):
    """A sentence and the names of arrays of its forward pass. The response is a safetensors file."""

    names: Annotated[list[Annotated[str, Field(max_length=200)]], Field(min_length=1, max_length=500)]
    row: Annotated[int | None, Field(ge=0, description="Return only the row of this position, as float32.")] = None
    half: Annotated[bool, Field(description="Return float16 instead of float32.")] = False


class BeamRequest(ExploreRequest):
    """A sentence, and the number of hypotheses of its beam search."""

    beam: Annotated[int, Field(ge=1, le=16, description="Hypotheses that are kept at each step.")] = 4


class ModelRequest(RequestBody):
    """Chooses a model by its languages or by its name."""

    source: Source = None
    target: Target = None
    model: ModelName = None


class PositionsRequest(ModelRequest):
    """Asks for the first rows of the position table."""

    length: Annotated[int, Field(ge=2, le=512, description="Number of positions.")] = 64


class MasksRequest(ModelRequest):
    """Asks for the masks of a batch of texts."""

    texts: Annotated[list[Text], Field(min_length=1, max_length=16, description="The texts of the batch.")]


Word = Annotated[Text, Field(min_length=1, max_length=200)]


class SimilarRequest(ModelRequest):
    """Two words, or two sentences, to compare."""

    one: Annotated[Text, Field(min_length=1, max_length=2000, description=SENTENCE_HELP)]
    other: Annotated[Text, Field(min_length=1, max_length=2000, description=SENTENCE_HELP)]
    sentences: Annotated[bool, Field(description="Compare sentences by the output of the encoder.")] = False


class NeighboursRequest(ModelRequest):
    """A word whose nearest tokens are wanted."""

    word: Word
    count: Annotated[int, Field(ge=1, le=100, description="Number of neighbours.")] = 10


class PlaneRequest(ModelRequest):
    """Words to place on a map."""

    words: Annotated[list[Word], Field(min_length=2, max_length=200)]
