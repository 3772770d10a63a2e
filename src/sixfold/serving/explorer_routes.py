"""The explorer's routes, /api/v1/explore: every number of a forward pass, and the parts of the model itself."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Request, Response
from pydantic import Field

from sixfold import tensorfile
from sixfold.config import to_dict
from sixfold.explorer.beam import free_run, search_tree
from sixfold.explorer.embeddings import neighbours, pca_projection, similar, similar_sentences
from sixfold.explorer.explore import Explorer, ReadModel
from sixfold.explorer.forward import position_table
from sixfold.explorer.heads import Head
from sixfold.explorer.influence import aligners, influence
from sixfold.explorer.lens import lens
from sixfold.explorer.masks import batch_masks
from sixfold.explorer.merges import merge_stages
from sixfold.explorer.trace import Trace, step_to_dict
from sixfold.modelfile import ModelFile
from sixfold.serving.admission import Admission
from sixfold.serving.api import ERROR_RESPONSES
from sixfold.serving.responses import JsonResponse
from sixfold.serving.schema import RequestBody, Source, Target, Text
from sixfold.tensorfile import Tensor
from sixfold.weights import counts, shapes

BINARY_RESPONSES: dict[int | str, dict[str, Any]] = {
    **ERROR_RESPONSES, 200: {"content": {"application/octet-stream": {}}, "description": "A safetensors file."},
}  # fmt: skip
MAX_MASK_TOKENS = 128  # tokens of a text whose masks are returned, because a mask has a cell for each pair of tokens
Result = TypeVar("Result")


def explore_sentence(explorer: Explorer, body: ExploreRequest) -> Trace:
    heads = [Head.parse(name) for name in body.off]
    return explorer.explore(body.text, body.translation, body.source, body.target, heads, body.model)


def paid_work(
    admission: Admission, request: Request, work: Callable[[Explorer], Result]
) -> Callable[[Explorer], Result]:
    """Return `work`, but its client's limit of requests is charged for the time of a core that it takes.

    The cost of a view cannot be told from its text: that of `aligners` grows with the square of the length, and a
    trace may be cached. The work runs in a thread and is charged for even if the client has left.
    """
    loop = asyncio.get_running_loop()

    def run(explorer: Explorer) -> Result:
        start = time.thread_time()
        try:
            return work(explorer)
        finally:
            loop.call_soon_threadsafe(admission.charge, request, time.thread_time() - start)

    return run


class SentenceRoutes:
    """The routes about one sentence. Their docstrings are their descriptions in OpenAPI.

    The server keeps no state for a client: every request has the whole sentence, and recent traces are cached.
    """

    def __init__(self, admission: Admission) -> None:
        self._admission, self._service = admission, admission.service

    async def explore(self, body: ExploreRequest, request: Request) -> JsonResponse:
        """Return the tokens, the steps with their most likely tokens, and the names and shapes of all arrays."""
        return JsonResponse(await self._with_trace(body, request, lambda trace: trace.to_dict(body.top)))

    async def arrays(self, body: ArraysRequest, request: Request) -> Response:
        """Return arrays of the forward pass by name, as a safetensors file."""
        data = await self._with_trace(body, request, lambda trace: trace.safetensors(body.names, body.half, body.row))
        return Response(data, media_type="application/octet-stream")

    async def beam(self, body: BeamRequest, request: Request) -> JsonResponse:
        """Return the beam search as a tree: the hypotheses kept and dropped at each step, and the finished ones."""
        return JsonResponse(
            await self._with_trace(body, request, lambda trace: search_tree(trace, body.beam).to_dict())
        )

    async def free(self, body: ExploreRequest, request: Request) -> JsonResponse:
        """Decode greedily: at each step the model reads the tokens that it has written itself."""

        def run(trace: Trace) -> dict[str, Any]:
            steps = free_run(trace, body.top)
            return {"steps": [step_to_dict(step) for step in steps]}

        return JsonResponse(await self._with_trace(body, request, run))

    async def aligners(self, body: ExploreRequest, request: Request) -> JsonResponse:
        """Measure which heads align words, by hiding each token of the source in turn."""

        def measure(trace: Trace) -> dict[str, Any]:
            changes = influence(trace)
            heads = [{**each._asdict(), "head": str(each.head)} for each in aligners(trace, changes)]
            return {"aligners": heads, "influence": changes.tolist()}

        return JsonResponse(await self._with_trace(body, request, measure))

    async def lens(self, body: ExploreRequest, request: Request) -> JsonResponse:
        """Return the prediction of the decoder after each layer: its likeliest token, and the rank of what follows."""
        return JsonResponse(await self._with_trace(body, request, lambda trace: lens(trace).to_dict()))

    async def merges(self, body: ExploreRequest, request: Request) -> JsonResponse:
        """Return how the tokeniser splits both texts, merge by merge."""

        def split(trace: Trace) -> dict[str, Any]:
            sides = {"source": trace.text, "target": trace.translation}
            if trace.source is None:  # a decoder-only model reads the text on the side of the target
                sides = {"source": "", "target": trace.text}
            return {
                side: [each._asdict() for each in merge_stages(trace.tokenizer, text)] for side, text in sides.items()
            }

        return JsonResponse(await self._with_trace(body, request, split))

    async def _with_trace(self, body: ExploreRequest, request: Request, work: Callable[[Trace], Result]) -> Result:
        self._admission.admit(request, [body.text, body.translation or ""], cost=1)
        run = paid_work(self._admission, request, lambda explorer: work(explore_sentence(explorer, body)))
        return await self._service.run_with_explorer(run)


class ModelRoutes:
    """The routes about the model itself. Their docstrings are their descriptions in OpenAPI."""

    def __init__(self, admission: Admission) -> None:
        self._admission, self._service = admission, admission.service

    async def masks(self, body: MasksRequest, request: Request) -> JsonResponse:
        """Return the padding mask and the causal mask of a batch of texts."""

        def make(model: ReadModel) -> dict[str, Any]:
            return batch_masks(model.tokenizer, body.texts, model.before, model.after, MAX_MASK_TOKENS).to_dict()

        return JsonResponse(await self._with_model(body, request, body.texts, make))

    async def positions(self, body: PositionsRequest, request: Request) -> Response:
        """Return the position table that is added to the embeddings, and the inner products of its rows."""

        def make(model: ReadModel) -> bytes:
            table = position_table(model.file, body.length)
            tensors = {"table": Tensor.of(table), "products": Tensor.of(table @ table.T)}
            return b"".join(tensorfile.packed(tensors, {})[1])

        data = await self._with_model(body, request, [], make)
        return Response(data, media_type="application/octet-stream")

    async def similar(self, body: SimilarRequest, request: Request) -> JsonResponse:
        """Return the cosine similarity of two words or of two sentences."""
        measure = similar_sentences if body.sentences else similar
        texts = [body.one, body.other]
        cosine = await self._with_model(body, request, texts, lambda model: measure(model.file, *texts))
        return JsonResponse({"cosine": cosine})

    async def neighbours(self, body: NeighboursRequest, request: Request) -> JsonResponse:
        """List the tokens whose embeddings are nearest to the embedding of a word."""

        def find(model: ReadModel) -> dict[str, Any]:
            nearest = neighbours(model.file, body.word, body.count)
            return {"neighbours": [each._asdict() for each in nearest]}

        return JsonResponse(await self._with_model(body, request, [body.word], find))

    async def plane(self, body: PlaneRequest, request: Request) -> JsonResponse:
        """Place words on a map: the first two principal components of their embeddings."""

        def project(model: ReadModel) -> dict[str, Any]:
            points = pca_projection(model.file, body.words).tolist()
            return {"points": [{"text": word, "x": x, "y": y} for word, (x, y) in zip(body.words, points, strict=True)]}

        return JsonResponse(await self._with_model(body, request, body.words, project))

    async def shapes(self, body: ModelRequest, request: Request) -> JsonResponse:
        """Return the configuration of a model, the number of parameters of each part, and the shapes of the weights."""
        facts = await self._with_model(body, request, [], lambda model: describe_parameters(model.file))
        return JsonResponse(facts)

    async def _with_model(
        self, body: ModelRequest, request: Request, texts: list[str], work: Callable[[ReadModel], Result]
    ) -> Result:
        self._admission.admit(request, texts, cost=1)
        first_text = texts[0] if texts else ""

        def run(explorer: Explorer) -> Result:
            with explorer.open_model(first_text, body.source, body.target, body.model) as model:
                return work(model)

        return await self._service.run_with_explorer(paid_work(self._admission, request, run))


def describe_parameters(model: ModelFile) -> dict[str, Any]:
    config = model.config.model
    weights = shapes(config)
    return {
        "name": model.name, "config": to_dict(model.config)["model"],
        "total": sum(map(math.prod, weights.values())),
        "parts": [{"name": part, "count": count} for part, count in counts(config).items()],
        "weights": [
            {"name": name, "shape": list(shape), "count": math.prod(shape)} for name, shape in weights.items()
        ],
    }  # fmt: skip


def explorer_router(admission: Admission) -> APIRouter:
    """Return a router with the routes of /api/v1/explore."""
    router = APIRouter(prefix="/api/v1/explore", tags=["explorer"])
    sentence, model = SentenceRoutes(admission), ModelRoutes(admission)
    binary: dict[str, Any] = {"methods": ["POST"], "response_class": Response, "responses": BINARY_RESPONSES}
    router.add_api_route("", sentence.explore, methods=["POST"], responses=ERROR_RESPONSES)
    router.add_api_route("/arrays", sentence.arrays, **binary)
    for name in ("beam", "free", "aligners", "lens", "merges"):
        router.add_api_route(f"/{name}", getattr(sentence, name), methods=["POST"], responses=ERROR_RESPONSES)
    router.add_api_route("/positions", model.positions, **binary)
    for name in ("masks", "similar", "neighbours", "plane", "shapes"):
        router.add_api_route(f"/{name}", getattr(model, name), methods=["POST"], responses=ERROR_RESPONSES)
    return router


HeadName = Annotated[str, Field(max_length=40, examples=["cross.1.3"])]
ModelName = Annotated[
    str | None, Field(max_length=200, description="Name of a model that /api/v1/models lists. Default: the first.")
]
SENTENCE_HELP = "A word, or with `sentences` a sentence."


class ExploreRequest(RequestBody):
    """A sentence to explore: a model that translates also needs its translation, or writes it; others only read it."""

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
