"""Sixfold's own HTTP interface, /api/v1: everything a translator can report, and translations as a stream."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from sixfold.serving.admission import Admission
from sixfold.serving.events import event_response, stream_texts
from sixfold.serving.responses import JsonResponse
from sixfold.serving.schema import (
    AlternativesRequest,
    ErrorResponse,
    ModelsResponse,
    ScoreRequest,
    TranslateRequest,
    TranslationsResponse,
)
from sixfold.serving.service import INLINE_TEXTS, Caller
from sixfold.serving.text_progress import PendingText, TextProgress
from sixfold.translation.glossary import Glossary, Term
from sixfold.translation.hops import end_route
from sixfold.translation.options import TranslateOptions
from sixfold.translation.request import TranslationRequest

ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        400: "The request cannot be understood, it has no API key, or no model can do what it asks for.",
        403: "The API key is unknown.",
        408: "The request took too long to arrive.",
        413: "The request is too large.",
        421: "The server does not serve the host that the request names.",
        422: "A field has a wrong value.",
        429: "The client sends too many requests.",
        503: "The server is busy. Try again later.",
        504: "The response took too long.",
    }.items()
}


def request_of(body: TranslateRequest) -> TranslationRequest:
    """Return the body of a request as the pipeline needs it."""
    options = TranslateOptions(body.beam, body.n_best, body.length_penalty, body.split, body.prefix, body.guard)
    terms = tuple(Term(term.source.strip(), term.target.strip()) for term in body.glossary)
    glossary = Glossary(tuple(term for term in terms if all(term))) if terms else None
    return TranslationRequest(body.source, body.target, options, glossary, details=body.details, pivot=body.pivot)


def text_at_deadline(text: str, pending: PendingText | None, details: bool) -> dict[str, Any]:
    """Return what is done of a text: its translation, or its sentences, of which some have no translation."""
    route = (pending.batch.route or pending.batch.first_of) if pending else None
    if pending and route and len(route.hops) == 1 and pending.is_done:
        return {**end_route(route, pending.translation, text).to_dict(details), "complete": True}
    # Where traditional Chinese has another length than simplified Chinese, there are no spans to give.
    has_spans = route is not None and len(route.read(text)) == len(text)
    return {
        "source": text, "translation": None, "complete": False, "score": None, "confidence": None,
        "from": route and route.languages[0], "to": route and route.languages[1], "n_best": [], "warnings": [],
        "sentences": pending.sentences() if pending and has_spans else None,
    }  # fmt: skip


class ApiRoutes:
    """The routes of /api/v1. Their docstrings are their descriptions in OpenAPI."""

    def __init__(self, admission: Admission) -> None:
        self._admission, self._service = admission, admission.service

    async def translate(self, body: TranslateRequest, request: Request) -> JsonResponse:
        """Translate texts. Each translation has a score and warnings, and with `details` tokens and an alignment.

        At the deadline, `complete` is false, and each text that is not done has its sentences: their translations, or
        null where one is missing. Through a pivot language all are null. The same request goes on from there, since the
        sentences that are done are kept for a while.
        """
        caller = Caller(self._admission.admit(request, body.texts), has_deadline=True)
        progress = TextProgress(len(body.texts))
        try:
            async with self._service.deadline():
                translations = await self._service.translate(body.texts, request_of(body), caller, progress)
        except TimeoutError:
            self._service.count_deadline()
            pairs = zip(body.texts, progress.texts, strict=True)
            texts = [text_at_deadline(text, pending, body.details) for text, pending in pairs]
            return JsonResponse({"translations": texts, "complete": False, **progress.counts()})
        done = [{**each.to_dict(body.details), "complete": True} for each in translations]
        return JsonResponse({"translations": done, "complete": True, **progress.counts()})

    async def stream(self, body: TranslateRequest, request: Request) -> StreamingResponse:
        """Translate texts and send server-sent events as sentences are translated.

        - `sentence`: the next sentence of a text. `index` is that of the text, `text` is the sentence with the white
          space before it, and `done` of `total` sentences of all texts are translated. Through a pivot language each
          counts twice.
        - `translation`: a whole translation with its `index`, when all of its sentences are there.
        - `done`: the end, with the `count` of texts. `error`: the end too, with what went wrong.
        """
        client = self._admission.admit(request, body.texts)
        # While an error status can still be sent.
        await self._service.maybe_in_thread(
            len(body.texts) > INLINE_TEXTS, lambda: self._service.check_routes(body.texts, request_of(body))
        )
        events = stream_texts(self._service, body.texts, request_of(body), client)
        return event_response(events)

    async def alternatives(self, body: AlternativesRequest, request: Request) -> JsonResponse:
        """List what may come next after a prefix of the translation, each with the rest of the translation."""
        self._admission.admit(request, [body.text], cost=body.count)  # each is a search of its own
        translations = await self._service.run_with_translator(
            lambda translator: translator.alternatives(body.text, body.prefix, body.count, body.source, body.target)
        )
        return JsonResponse({"translations": [each.to_dict() for each in translations]})

    async def score(self, body: ScoreRequest, request: Request) -> JsonResponse:
        """Score a given translation: how likely it is for the model, token by token."""
        self._admission.admit(request, [body.text, body.translation])
        scored = await self._service.run_with_translator(
            lambda translator: translator.score(body.text, body.translation, body.source, body.target).to_dict(
                details=True
            )
        )
        return JsonResponse({"translations": [scored]})

    async def models(self) -> JsonResponse:
        """List the directions that can be translated, the models that write texts, and all models with their cards."""
        models = self._service.models
        return JsonResponse({
            "directions": models.directions, "writing": models.generator_names, "models": models.cards
        })  # fmt: skip


def api_router(admission: Admission) -> APIRouter:
    """Return a router with the routes of /api/v1."""
    routes, router = ApiRoutes(admission), APIRouter(prefix="/api/v1", tags=["sixfold"])
    stream = {
        **ERROR_RESPONSES,
        200: {"content": {"text/event-stream": {}}, "description": "One event for each sentence and text."},
    }
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
    key_errors: dict[int | str, dict[str, Any]] = {status: ERROR_RESPONSES[status] for status in (400, 403, 421)}
    router.add_api_route("/models", routes.models, methods=["GET"], response_model=ModelsResponse, responses=key_errors)
    return router
