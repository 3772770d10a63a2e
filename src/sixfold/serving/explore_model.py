"""The explorer's routes about the model itself: masks, positions, embeddings, and where its parameters are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response

from sixfold import tensorfile
from sixfold.config import to_dict
from sixfold.explorer.embeddings import neighbours, pca_projection, similar, similar_sentences
from sixfold.explorer.forward import position_table
from sixfold.explorer.masks import batch_masks
from sixfold.modelfile import ModelFile
from sixfold.serving.admission import Desk
from sixfold.serving.api import REFUSALS
from sixfold.serving.explorer_routes import BINARY
from sixfold.serving.explorer_schema import (
    MasksAsked,
    ModelAsked,
    NeighboursAsked,
    PlaneAsked,
    PositionsAsked,
    SimilarAsked,
)
from sixfold.serving.responses import Json
from sixfold.tensorfile import Tensor
from sixfold.translation.direction import Direction
from sixfold.weights import counts, shapes

Result = TypeVar("Result")
LONGEST = 128  # pieces of a text of a batch whose masks are told, a cell each


class Inside:
    """The routes."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._service = desk, desk.service

    async def masks(self, asked: MasksAsked, request: Request) -> Json:
        """The padding and causal masks of a batch of one's own."""

        def make(direction: Direction) -> dict[str, Any]:
            eos = direction.engine.config.eos
            return batch_masks(direction.tokenizer, asked.texts, direction.tag, eos=eos, max_pieces=LONGEST).to_dict()

        return Json(await self._of(asked, request, asked.texts, make))

    async def positions(self, asked: PositionsAsked, request: Request) -> Response:
        """The table that is added to the embeddings, and the inner products of its rows."""

        def make(direction: Direction) -> bytes:
            table = position_table(direction.file, asked.length)
            tensors = {"table": Tensor.of(table), "products": Tensor.of(table @ table.T)}
            return b"".join(tensorfile.packed(tensors, {})[1])

        data = await self._of(asked, request, [], make)
        return Response(data, media_type="application/octet-stream")

    async def similar(self, asked: SimilarAsked, request: Request) -> Json:
        """The cosine of two words, or of two sentences."""
        measure = similar_sentences if asked.sentences else similar
        texts = [asked.one, asked.other]
        return Json(await self._of(asked, request, texts, lambda its: {"cosine": measure(its.file, *texts)}))

    async def neighbours(self, asked: NeighboursAsked, request: Request) -> Json:
        """The pieces whose vectors are nearest to a word's."""

        def find(direction: Direction) -> dict[str, Any]:
            found = neighbours(direction.file, asked.word, asked.count)
            return {"neighbours": [each._asdict() for each in found]}

        return Json(await self._of(asked, request, [asked.word], find))

    async def plane(self, asked: PlaneAsked, request: Request) -> Json:
        """Words on a map: the first two principal components of their vectors."""

        def find(direction: Direction) -> dict[str, Any]:
            places = pca_projection(direction.file, asked.words).tolist()
            return {
                "points": [{"text": word, "x": x, "y": y} for word, (x, y) in zip(asked.words, places, strict=True)]
            }

        return Json(await self._of(asked, request, asked.words, find))

    async def shapes(self, asked: ModelAsked, request: Request) -> Json:
        """Where the parameters are."""
        return Json(await self._of(asked, request, [], lambda direction: parameters(direction.file)))

    async def _of(
        self, asked: ModelAsked, request: Request, texts: list[str], work: Callable[[Direction], Result]
    ) -> Result:
        self._desk.admit(request, "", texts)
        first = texts[0] if texts else ""
        return await self._service.look(
            lambda explorer: work(explorer.direction(first, asked.source, asked.target, asked.model))
        )


def parameters(model: ModelFile) -> dict[str, Any]:
    config = model.config.model
    found = shapes(config)
    return {
        "name": model.name, "config": to_dict(model.config)["model"],
        "total": sum(map(math.prod, found.values())),
        "parts": [{"name": part, "count": count} for part, count in counts(config).items()],
        "weights": [
            {"name": name, "shape": list(shape), "count": math.prod(shape)} for name, shape in found.items()
        ],
    }  # fmt: skip


def make_inside(desk: Desk) -> APIRouter:
    """Ready to be put into an application."""
    inside, routes = Inside(desk), APIRouter(prefix="/api/v1/explore", tags=["explorer"])
    routes.add_api_route("/positions", inside.positions, methods=["POST"], response_class=Response, responses=BINARY)
    for name in ("masks", "similar", "neighbours", "plane", "shapes"):
        routes.add_api_route(f"/{name}", getattr(inside, name), methods=["POST"], responses=REFUSALS)
    return routes
