"""Our own interface, /api/v1: all that a translator can tell, and translations one by one as they are ready."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from sixfold.errors import SixfoldError
from sixfold.serving.admission import Desk
from sixfold.serving.batcher import Way
from sixfold.serving.responses import Json, Refusal
from sixfold.serving.schema import (
    AlternativesAsked,
    ModelsSaid,
    Refused,
    ScoreAsked,
    TranslateAsked,
    TranslationsSaid,
)
from sixfold.translation.glossary import Glossary, Term
from sixfold.translation.options import TranslateOptions

REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refused, "description": what}
    for status, what in {
        400: "the request cannot be understood or asks for what there is not",
        403: "no such key",
        408: "the request came too slowly",
        413: "too much at once",
        422: "a field is wrong",
        429: "too often",
        503: "busy",
        504: "it took too long",
    }.items()
}


def way_of(asked: TranslateAsked) -> Way:
    options = TranslateOptions(asked.beam, asked.n_best, split=asked.split, prefix=asked.prefix, guard=asked.guard)
    terms = tuple(Term(each.source.strip(), each.target.strip()) for each in asked.glossary)
    glossary = Glossary(tuple(term for term in terms if all(term))) if terms else None
    return Way(asked.source, asked.target, options, glossary, asked.details)


class Api:
    """The routes."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._service = desk, desk.service

    async def translate(self, asked: TranslateAsked, request: Request) -> Json:
        """Texts into translations, with scores, warnings and, if asked for, what is inside."""
        self._desk.admit(request, "", asked.texts)
        found = await self._service.translate(asked.texts, way_of(asked), asked.pivot)
        return Json({"translations": [each.to_dict(asked.details) for each in found]})

    async def stream(self, asked: TranslateAsked, request: Request) -> StreamingResponse:
        """The same as server-sent events: `translation` with its index for each text, then `done`."""
        self._desk.admit(request, "", asked.texts)
        self._service.check(way_of(asked), asked.pivot)  # while the status can still say so

        async def events() -> AsyncIterator[bytes]:
            async with asyncio.TaskGroup() as group:
                waiting = [
                    group.create_task(self._service.translate([text], way_of(asked), asked.pivot))
                    for text in asked.texts
                ]
                for index, task in enumerate(waiting):
                    (each,) = await task
                    yield event("translation", {"index": index, **each.to_dict(asked.details)})
            yield event("done", {"count": len(waiting)})

        return StreamingResponse(told_apart(events()), media_type="text/event-stream")

    async def alternatives(self, asked: AlternativesAsked, request: Request) -> Json:
        """What may come next after a prefix, each with the rest translated anew from there."""
        self._desk.admit(request, "", [asked.text])
        found = await self._service.ask(
            lambda translator: translator.alternatives(
                asked.text, asked.prefix, asked.count, asked.source, asked.target
            )
        )
        return Json({"translations": [each.to_dict() for each in found]})

    async def score(self, asked: ScoreAsked, request: Request) -> Json:
        """How likely the model finds a translation that is given, piece by piece."""
        self._desk.admit(request, "", [asked.text, asked.translation])
        said = await self._service.ask(
            lambda translator: translator.score(asked.text, asked.translation, asked.source, asked.target).to_dict(
                details=True
            )
        )
        return Json({"translations": [said]})

    async def models(self) -> Json:
        """What is open: directions, and each file with its card."""
        return Json({"directions": self._service.models.directions, "models": self._service.models.cards})


def make_api(desk: Desk) -> APIRouter:
    """Ready to be put into an application."""
    api, routes = Api(desk), APIRouter(prefix="/api/v1", tags=["sixfold"])
    events = {**REFUSALS, 200: {"content": {"text/event-stream": {}}, "description": "an event a text"}}
    routes.add_api_route(
        "/translate/stream", api.stream, methods=["POST"], response_class=StreamingResponse, responses=events
    )
    for name in ("translate", "alternatives", "score"):
        routes.add_api_route(
            f"/{name}", getattr(api, name), methods=["POST"], response_model=TranslationsSaid, responses=REFUSALS
        )
    routes.add_api_route("/models", api.models, methods=["GET"], response_model=ModelsSaid)
    return routes


def event(kind: str, values: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(values, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


async def told_apart(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A failure on the way is an event too, as the status has been sent."""
    try:
        async for each in events:
            yield each
    except* (SixfoldError, Refusal) as group:
        yield event("error", {"error": str(group.exceptions[0])})
