"""Sixfold's own HTTP interface, /api/v1: everything a translator can report, and translations as a stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from sixfold.errors import SixfoldError
from sixfold.serving.admission import Admission
from sixfold.serving.batcher import RequestOptions
from sixfold.serving.responses import HttpError, JsonResponse
from sixfold.serving.schema import (
    AlternativesRequest,
    ErrorResponse,
    ModelsResponse,
    ScoreRequest,
    TranslateRequest,
    TranslationsResponse,
)
from sixfold.translation.glossary import Glossary, Term
from sixfold.translation.options import TranslateOptions

ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "The request cannot be understood, or no model can do what it asks for.",
        403: "The API key is unknown.",
        408: "The request took too long to arrive.",
        413: "The request is too large.",
        422: "A field has a wrong value.",
        429: "The client sends too many requests.",
        503: "The server is busy. Try again later.",
        504: "The response took too long.",
    }.items()
}


def request_options(body: TranslateRequest) -> RequestOptions:
    options = TranslateOptions(body.beam, body.n_best, split=body.split, prefix=body.prefix, guard=body.guard)
    terms = tuple(Term(term.source.strip(), term.target.strip()) for term in body.glossary)
    glossary = Glossary(tuple(term for term in terms if all(term))) if terms else None
    return RequestOptions(body.source, body.target, options, glossary, body.details)


class ApiRoutes:
    """The routes of /api/v1. Their docstrings are their descriptions in OpenAPI."""

    def __init__(self, admission: Admission) -> None:
        self._admission, self._service = admission, admission.service

    async def translate(self, body: TranslateRequest, request: Request) -> JsonResponse:
        """Translate texts. Each translation has a score and warnings, and with `details` tokens and an alignment."""
        self._admission.admit(request, "", body.texts)
        translations = await self._service.translate(body.texts, request_options(body), body.pivot)
        return JsonResponse({"translations": [each.to_dict(body.details) for each in translations]})

    async def stream(self, body: TranslateRequest, request: Request) -> StreamingResponse:
        """Translate texts and send server-sent events: a `translation` with its index for each text, then `done`."""
        self._admission.admit(request, "", body.texts)
        self._service.check_languages(request_options(body), body.pivot)  # while an error status can still be sent

        async def events() -> AsyncIterator[bytes]:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._service.translate([text], request_options(body), body.pivot))
                    for text in body.texts
                ]
                for index, task in enumerate(tasks):
                    (translation,) = await task
                    yield event("translation", {"index": index, **translation.to_dict(body.details)})
            yield event("done", {"count": len(tasks)})

        return StreamingResponse(with_error_event(events()), media_type="text/event-stream")

    async def alternatives(self, body: AlternativesRequest, request: Request) -> JsonResponse:
        """List what may come next after a prefix of the translation, each with the rest of the translation."""
        self._admission.admit(request, "", [body.text])
        translations = await self._service.run_with_translator(
            lambda translator: translator.alternatives(body.text, body.prefix, body.count, body.source, body.target)
        )
        return JsonResponse({"translations": [each.to_dict() for each in translations]})

    async def score(self, body: ScoreRequest, request: Request) -> JsonResponse:
        """Score a given translation: how likely it is for the model, token by token."""
        self._admission.admit(request, "", [body.text, body.translation])
        scored = await self._service.run_with_translator(
            lambda translator: translator.score(body.text, body.translation, body.source, body.target).to_dict(
                details=True
            )
        )
        return JsonResponse({"translations": [scored]})

    async def models(self) -> JsonResponse:
        """List the directions that can be translated, and the loaded models with their cards."""
        return JsonResponse({"directions": self._service.models.directions, "models": self._service.models.cards})


def api_router(admission: Admission) -> APIRouter:
    """Return a router with the routes of /api/v1."""
    routes, router = ApiRoutes(admission), APIRouter(prefix="/api/v1", tags=["sixfold"])
    stream = {**ERROR_RESPONSES, 200: {"content": {"text/event-stream": {}}, "description": "One event for each text."}}
    router.add_api_route(
        "/translate/stream", routes.stream, methods=["POST"], response_class=StreamingResponse, responses=stream
    )
    for name in ("translate", "alternatives", "score"):
        router.add_api_route(
            f"/{name}",
            getattr(routes, name),
            methods=["POST"],
            response_model=TranslationsResponse,
            responses=ERROR_RESPONSES,
        )
    router.add_api_route("/models", routes.models, methods=["GET"], response_model=ModelsResponse)
    return router


def event(kind: str, values: dict[str, Any]) -> bytes:
    """Return a server-sent event with JSON data."""
    return f"event: {kind}\ndata: {json.dumps(values, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


async def with_error_event(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the events; an error becomes a last event, because the status has already been sent."""
    try:
        async for each in events:
            yield each
    except* (SixfoldError, HttpError) as group:
        yield event("error", {"error": str(group.exceptions[0])})
