"""LibreTranslate's HTTP interface for its existing clients: the same paths, fields, language codes and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from starlette.datastructures import UploadFile
from starlette.responses import Response

from sixfold.serving.addresses import is_cross_site
from sixfold.serving.admission import Admission
from sixfold.serving.downloads import Downloads
from sixfold.serving.events import event_response, stream_document
from sixfold.serving.fields import BAD_REQUEST, read_fields
from sixfold.serving.file_translation import FILE_SUFFIXES, FileTranslation, UploadedFile, download_url, file_name
from sixfold.serving.libretranslate_schema import ROUTE_SETTINGS, STREAM_SETTINGS
from sixfold.serving.libretranslate_texts import (
    LANGUAGE_NAMES,
    TextTranslation,
    detected_languages,
    list_languages,
    require_text,
    require_texts,
)
from sixfold.serving.responses import HttpError, JsonResponse
from sixfold.serving.service import Caller
from sixfold.serving.text_progress import TextProgress
from sixfold.text.chinese import can_convert
from sixfold.text.language_codes import normalise_code
from sixfold.translation.request import TranslationRequest
from sixfold.translation.routing import targets_of

SAMPLE_CHARACTERS = 4000  # of a document, from which its language is detected


class LibreTranslateRoutes:
    """The routes. Their docstrings are their descriptions in OpenAPI."""

    def __init__(self, admission: Admission, downloads: Downloads) -> None:
        self._admission, self._downloads, self._texts = admission, downloads, TextTranslation(admission)
        self._files = FileTranslation(admission, downloads)
        self._service, self._options = admission.service, admission.options

    async def translate(self, request: Request) -> Response:
        """Translate a text, or in JSON a list of texts."""
        fields = await read_fields(request)
        texts = require_texts(fields)
        client = self._admission.admit(request, texts)
        return JsonResponse(await self._texts.respond(fields, texts, client))

    async def detect(self, request: Request) -> Response:
        """Detect the language of a text: the candidates, the likeliest first, with confidences from 0 to 100.

        They may be languages that no model reads. For a list of texts there is one candidate for each.
        """
        fields = await read_fields(request)
        texts = require_texts(fields)
        self._admission.admit(request, texts)
        detected = [detected_languages(self._service.detect_language(text)) for text in texts]
        return JsonResponse([each[0] for each in detected] if isinstance(fields.get("q"), list) else detected[0])

    async def languages(self) -> Response:
        """List the languages, and the languages that each can be translated into."""
        return JsonResponse(list_languages(self._service.models.directions, self._options.pivot, can_convert()))

    async def health(self) -> Response:
        """Confirm that the server is running."""
        return JsonResponse({"status": "ok"})

    async def settings(self) -> Response:
        """Return the settings that a web page or an app needs."""
        directions = self._service.models.directions
        target = directions[0][1] if directions else "en"
        return JsonResponse({
            "apiKeys": self._admission.needs_key, "charLimit": self._options.max_characters,
            "filesTranslation": True, "frontendTimeout": 500, "keyRequired": self._admission.needs_key,
            "language": {"source": {"code": "auto", "name": "Auto Detect"},
                         "target": {"code": target, "name": LANGUAGE_NAMES.get(target, target)}},
            "suggestions": bool(self._options.suggestions), "supportedFilesFormat": list(FILE_SUFFIXES),
        })  # fmt: skip

    async def suggest(self, request: Request) -> Response:
        """Save a better translation, as a line of a file that `sixfold finetune` reads."""
        if is_cross_site(request.scope, self._options.cors):
            raise HttpError(
                403, "a page of another site may not send suggestions", "the setting `cors` names such sites"
            )
        fields = await read_fields(request)
        if not self._options.suggestions:
            raise HttpError(403, "Suggestions are disabled on this server.")
        text, suggestion = require_text(fields, "q"), require_text(fields, "s")
        source, target, _ = self._texts.languages(fields, text)
        self._admission.admit(request, [text, suggestion])
        # One file for each direction, because `sixfold finetune` expects source and target columns.
        path = Path(self._options.suggestions)
        direction_path = path.with_name(f"{path.stem}.{source}-{target}{path.suffix or '.tsv'}")
        append_suggestion(direction_path, text, suggestion)
        return JsonResponse({"success": True})

    async def translate_file(self, request: Request) -> Response:
        """Translate a document. The response has the URL of the translated file."""
        fields, upload, client = await self._admit_upload(request)
        progress = TextProgress()

        async def work() -> str:
            file = await self._files.read(request, upload)
            caller = Caller(client, has_deadline=True, needs_all=True)
            return await self._files.translate(file, self._file_request(fields, file), caller, progress)

        return JsonResponse(download_url(request, await self._service.before_deadline(work(), progress)))

    async def stream_file(self, request: Request) -> StreamingResponse:
        """Translate a document and send server-sent events.

        `progress`: `done` of `total` sentences are translated. `document`: the end, with the URL of the translated
        file. `error`: the end too, with what went wrong. It takes the fields of /translate_file and has no deadline.
        """
        fields, upload, client = await self._admit_upload(request)
        file = await self._files.read(request, upload)
        options, progress = self._file_request(fields, file), TextProgress()

        async def work() -> dict[str, Any]:
            return download_url(request, await self._files.translate(file, options, Caller(client), progress))

        return event_response(stream_document(work(), progress))

    async def _admit_upload(self, request: Request) -> tuple[dict[str, Any], UploadFile, str]:
        """Return the fields of a form, its file and the client, after checking that nothing is missing."""
        if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            raise HttpError(400, BAD_REQUEST)
        fields = await read_fields(request)
        upload = fields.get("file")
        if not isinstance(upload, UploadFile):
            raise HttpError(400, BAD_REQUEST)
        file_name(upload)
        client = self._admission.admit(request, [])
        for field in ("source", "target"):
            require_text(fields, field)
        return fields, upload, client

    def _file_request(self, fields: dict[str, Any], file: UploadedFile) -> TranslationRequest:
        source, target = self._document_languages(fields, file.text[:SAMPLE_CHARACTERS])
        self._texts.check_direction(source, target)
        return self._texts.request(source, target)

    def _document_languages(self, fields: dict[str, Any], text: str) -> tuple[str, str]:
        """Return source and target.

        A source of `auto` is detected. A target of `auto` is the first that a model has for the source.
        """
        if normalise_code(fields["target"]) == "auto":
            source = self._texts.supported(fields["source"])
            if source == "auto":
                source = self._texts.choose_source(text).language or self._texts.fallback_language()
            targets = targets_of(self._service.models.directions, source)
            return source, next(iter(targets), source)
        source, target, _ = self._texts.languages(fields, text)
        return source, target

    async def download_file(self, name: str) -> Response:
        """Fetch a translated file. It can be fetched several times until it expires."""
        return self._downloads.response(name)


def append_suggestion(path: Path, source: str, target: str) -> None:
    """Append a TSV line to a file, in one write, so that lines of several requests never mix."""
    line = "\t".join(" ".join(text.split()) for text in (source, target)) + "\n"
    with path.open("ab", buffering=0) as file:
        file.write(line.encode("utf-8", "replace"))


def libretranslate_router(admission: Admission, downloads: Downloads) -> APIRouter:
    """Return a router with LibreTranslate's routes."""
    routes, router = LibreTranslateRoutes(admission, downloads), APIRouter(tags=["LibreTranslate"])
    for name in ("translate", "detect", "suggest", "translate_file"):
        router.add_api_route(f"/{name}", getattr(routes, name), methods=["POST"], **ROUTE_SETTINGS[name])
    for name in ("languages", "health"):
        router.add_api_route(f"/{name}", getattr(routes, name), methods=["GET"], **ROUTE_SETTINGS[name])
    router.add_api_route("/frontend/settings", routes.settings, methods=["GET"], **ROUTE_SETTINGS["settings"])
    router.add_api_route("/api/v1/translate_file/stream", routes.stream_file, methods=["POST"], **STREAM_SETTINGS)
    download = ROUTE_SETTINGS["download_file"]
    router.add_api_route("/download_file/{name}", routes.download_file, methods=["GET"], **download)
    return router
