"""LibreTranslate's HTTP interface for its existing clients: the same paths, fields, language codes and errors."""

from __future__ import annotations

import codecs
import json
import re
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.responses import Response

from sixfold.serving.admission import Admission
from sixfold.serving.batcher import RequestOptions
from sixfold.serving.downloads import Downloads
from sixfold.serving.libretranslate_schema import ROUTE_SETTINGS
from sixfold.serving.responses import HttpError, JsonResponse
from sixfold.translation.documents.document import FORMATS, format_of, prose_of
from sixfold.translation.options import TranslateOptions
from sixfold.translation.prepare import replace_surrogates
from sixfold.translation.result import Translation

# Language codes that differ between models and LibreTranslate's clients.
CLIENT_CODES = {"zh": "zh-Hans"}
MODEL_CODES = {"zh-hans": "zh", "zh-cn": "zh", "zh-sg": "zh"}
LANGUAGE_NAMES = {
    "ar": "Arabic", "cs": "Czech", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "hi": "Hindi",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese",
    "ru": "Russian", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
FILE_SUFFIXES = (".txt", *(suffix for form in FORMATS.values() for suffix in form.suffixes))
SAMPLE_CHARACTERS = 4000  # of a document, from which its language is detected
BAD_REQUEST = "The browser (or proxy) sent a request that this server could not understand."


async def read_fields(request: Request) -> dict[str, Any]:
    """Return the fields of a request: a JSON object if the body is JSON, otherwise form fields and the query string."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json")):
        try:
            body = json.loads((await request.body()).decode("utf-8"))
        except (ValueError, RecursionError):
            raise HttpError(400, BAD_REQUEST) from None
        if not isinstance(body, dict):
            raise HttpError(400, "Invalid JSON format")
        return body
    fields: dict[str, Any] = parse_form(request.scope["query_string"])
    if media_type == "application/x-www-form-urlencoded":
        return parse_form(await request.body()) | fields
    if media_type == "multipart/form-data":
        form = dict((await request.form(max_files=1, max_fields=20)).items())
        for upload in form.values():
            if isinstance(upload, UploadFile):  # it may be a file on disk: close it with the request
                request.scope["state"]["cleanup"].callback(upload.file.close)
        return form | fields
    return fields


def parse_form(encoded: bytes) -> dict[str, Any]:
    """Return the fields of a form or a query string in UTF-8, escaped or not. The first of two equal names counts."""
    try:
        pairs = parse_qsl(encoded.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise HttpError(400, BAD_REQUEST) from None
    return dict(reversed(pairs))


def require_text(fields: dict[str, Any], name: str) -> str:
    """Return a field that must be a string, or raise HttpError 400."""
    value = fields.get(name)
    if value is None or value == "" or value == []:
        raise HttpError(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise HttpError(400, f"Invalid request: {name} parameter is not a string")
    return replace_surrogates(value)


def require_texts(fields: dict[str, Any]) -> list[str]:
    """Return the texts of the field `q`, which is a string or a list of strings."""
    value = fields.get("q")
    if isinstance(value, list) and value:
        if not all(isinstance(text, str) for text in value):
            raise HttpError(400, "Invalid request: q parameter is not a string or a list of strings")
        return [replace_surrogates(text) for text in value]
    return [require_text(fields, "q")]


def model_code(code: str) -> str:
    """Return the code that models use for a language that a client names."""
    code = code.strip().lower().replace("_", "-")
    return MODEL_CODES.get(code, code)


def client_code(code: str) -> str:
    """Return the code that clients use for a language of a model."""
    return CLIENT_CODES.get(code, code)


class TextTranslation:
    """Translates texts as LibreTranslate does: languages, HTML, alternatives, and one response for a list of texts."""

    def __init__(self, admission: Admission) -> None:
        self._service, self._options = admission.service, admission.options

    def languages(self, fields: dict[str, Any], text: str) -> tuple[str, str, dict[str, Any]]:
        """Return source, target and what was detected; the last is empty unless the source is `auto`."""
        source, target = model_code(require_text(fields, "source")), model_code(require_text(fields, "target"))
        supported = {code for direction in self._service.models.directions for code in direction}
        detected: dict[str, Any] = {}
        if source == "auto":
            source, confidence = self._service.detect_language(text)
            detected = {"confidence": confidence, "language": client_code(source)}
        elif source not in supported:
            raise HttpError(400, f"{source} is not supported")
        if target not in supported:
            raise HttpError(400, f"{target} is not supported")
        return source, target, detected

    def check_direction(self, source: str, target: str) -> None:
        """Raise HttpError 400 if no model translates from source to target, not even through English."""
        directions = self._service.models.directions
        has_pivot = self._options.pivot and {(source, "en"), ("en", target)} <= set(directions)
        if source != target and (source, target) not in directions and not has_pivot:
            names = [f"{LANGUAGE_NAMES.get(code, code)} ({code})" for code in (target, source)]
            raise HttpError(400, f"{names[0]} is not available as a target language from {names[1]}")

    async def respond(self, fields: dict[str, Any], texts: list[str]) -> dict[str, Any]:
        """Return the response of /translate. If `q` is a list, its fields are lists too."""
        is_list = isinstance(fields.get("q"), list)
        count = parse_alternatives(fields, self._options.max_alternatives)
        form = fields.get("format") or "text"
        if form not in ("text", "html"):
            raise HttpError(400, f"{str(form)[:40]} format is not supported")
        # With source `auto`, each text has its own language.
        languages = [self.languages(fields, text) for text in texts]
        groups: dict[tuple[str, str], list[int]] = {}
        for index, (source, target, _) in enumerate(languages):
            self.check_direction(source, target)
            groups.setdefault((source, target), []).append(index)
        results: dict[int, tuple[str, list[str]]] = {}
        for (source, target), indices in groups.items():
            group = [texts[index] for index in indices]
            translated = await self._translate_group(group, source, target, form, count)
            results.update(zip(indices, translated, strict=True))
        translations = [results[index][0] for index in range(len(texts))]
        alternatives = [results[index][1] for index in range(len(texts))]
        detected = [each for _, _, each in languages]
        response: dict[str, Any] = {"translatedText": translations if is_list else translations[0]}
        if count:
            response["alternatives"] = alternatives if is_list else alternatives[0]
        if detected[0]:
            response["detectedLanguage"] = detected if is_list else detected[0]
        return dict(sorted(response.items()))

    async def _translate_group(
        self, texts: list[str], source: str, target: str, form: str, count: int
    ) -> list[tuple[str, list[str]]]:
        """Translate texts of one direction; return each translation with up to `count` alternatives."""
        if source == target:
            return [(text, []) for text in texts]
        if form == "html":
            request = RequestOptions(source, target, TranslateOptions(self._options.beam))
            return [(await self._translate_html(text, request), []) for text in texts]
        request = RequestOptions(source, target, TranslateOptions(self._options.beam, count + 1))
        translations = await self._service.translate(texts, request, self._options.pivot)
        return [(each.text, alternative_texts(each, count)) for each in translations]

    async def _translate_html(self, text: str, request: RequestOptions) -> str:
        data = text.encode()
        parts = await self._service.read_document(data, "html")
        return (await self._service.translate_document(parts, data, request))[0].decode()


def alternative_texts(translation: Translation, count: int) -> list[str]:
    """Return up to `count` of the n best texts, without empty and repeated ones and the translation itself."""
    texts = dict.fromkeys(each.text for each in translation.n_best if each.text.strip())
    texts.pop(translation.text, None)
    return list(texts)[:count]


def parse_alternatives(fields: dict[str, Any], limit: int) -> int:
    """Return the number of alternatives that a request asks for."""
    value = fields.get("alternatives", 0)
    if value is None or value == "":
        return 0
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise HttpError(400, "Invalid request: alternatives parameter is not a number")
    if value > limit:
        raise HttpError(400, f"Invalid request: alternatives parameter must be <= {limit}")
    return max(0, value)


def api_key(fields: dict[str, Any]) -> str:
    key = fields.get("api_key")
    return key if isinstance(key, str) else ""


class LibreTranslateRoutes:
    """The routes. Their docstrings are their descriptions in OpenAPI."""

    def __init__(self, admission: Admission, downloads: Downloads) -> None:
        self._admission, self._downloads, self._texts = admission, downloads, TextTranslation(admission)
        self._service, self._options = admission.service, admission.options

    async def translate(self, request: Request) -> Response:
        """Translate a text, or in JSON a list of texts."""
        fields = await read_fields(request)
        texts = require_texts(fields)
        self._admission.admit(request, api_key(fields), texts)
        return JsonResponse(await self._texts.respond(fields, texts))

    async def detect(self, request: Request) -> Response:
        """Detect which of the supported languages a text is in."""
        fields = await read_fields(request)
        texts = require_texts(fields)
        self._admission.admit(request, api_key(fields), texts)
        detected = [self._service.detect_language(text) for text in texts]
        return JsonResponse(
            [{"confidence": confidence, "language": client_code(code)} for code, confidence in detected]
        )

    async def languages(self) -> Response:
        """List the languages, and the languages that each can be translated into."""
        return JsonResponse(list_languages(self._service.models.directions, self._options.pivot))

    async def health(self) -> Response:
        """Confirm that the server is running."""
        return JsonResponse({"status": "ok"})

    async def settings(self) -> Response:
        """Return the settings that a web page or an app needs."""
        target = self._service.models.directions[0][1]
        return JsonResponse({
            "apiKeys": self._admission.keys is not None, "charLimit": self._options.max_characters,
            "filesTranslation": True, "frontendTimeout": 500, "keyRequired": self._admission.keys is not None,
            "language": {"source": {"code": "auto", "name": "Auto Detect"},
                         "target": {"code": target, "name": LANGUAGE_NAMES.get(target, target)}},
            "suggestions": bool(self._options.suggestions), "supportedFilesFormat": list(FILE_SUFFIXES),
        })  # fmt: skip

    async def suggest(self, request: Request) -> Response:
        """Save a better translation, as a line of a file that `sixfold finetune` reads."""
        fields = await read_fields(request)
        if not self._options.suggestions:
            raise HttpError(403, "Suggestions are disabled on this server.")
        text, suggestion = require_text(fields, "q"), require_text(fields, "s")
        source, target, _ = self._texts.languages(fields, text)
        self._admission.admit(request, api_key(fields), [text, suggestion])
        # One file for each direction, because `sixfold finetune` expects source and target columns.
        path = Path(self._options.suggestions)
        direction_path = path.with_name(f"{path.stem}.{source}-{target}{path.suffix or '.tsv'}")
        append_suggestion(direction_path, text, suggestion)
        return JsonResponse({"success": True})

    async def translate_file(self, request: Request) -> Response:
        """Translate a document. The response has the URL of the translated file."""
        if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            raise HttpError(400, BAD_REQUEST)
        fields = await read_fields(request)
        upload = fields.get("file")
        if not isinstance(upload, UploadFile):
            raise HttpError(400, BAD_REQUEST)
        name = PurePath((upload.filename or "").replace("\\", "/"))
        if not name.name:
            raise HttpError(400, "Invalid request: missing file parameter")
        self._admission.admit(request, api_key(fields), [])
        for field in ("source", "target"):
            require_text(fields, field)
        if name.suffix.lower() not in FILE_SUFFIXES:
            raise HttpError(400, "Invalid request: file format not supported")
        data = await upload.read()
        form = format_of(Path(name.name))
        bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        parts = await self._service.read_document(data, form, name.name) if form else {}
        text = prose_of(parts) if form else decode_text(data.removeprefix(bom), name.name)
        self._admission.admit_document(request, len(text))
        source, target = self._document_languages(fields, text[:SAMPLE_CHARACTERS])
        self._texts.check_direction(source, target)
        options = RequestOptions(source, target, TranslateOptions(self._options.beam))
        if form:
            translated = (await self._service.translate_document(parts, data, options))[0]
        else:
            translated = bom + (await self._service.translate([text], options))[0].text.encode()
        address = self._downloads.add(translated, f"{name.stem}_{target}{name.suffix}")
        return JsonResponse({"translatedFileUrl": f"{request.base_url}download_file/{address}"})

    def _document_languages(self, fields: dict[str, Any], text: str) -> tuple[str, str]:
        """Return source and target.

        A source of `auto` is detected. A target of `auto` is the first that a model has for the source.
        """
        if fields["target"] == "auto":
            is_auto = fields["source"] == "auto"
            source = self._service.detect_language(text)[0] if is_auto else model_code(fields["source"])
            targets = (target for code, target in self._service.models.directions if code == source)
            fields |= {"target": next(targets, source)}
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


def decode_text(data: bytes, name: str) -> str:
    """Return the text of a plain text file, or raise HttpError 400 if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise HttpError(400, f"{name[:60]}: expected UTF-8") from None


def libretranslate_router(admission: Admission, downloads: Downloads) -> APIRouter:
    """Return a router with LibreTranslate's routes."""
    routes, router = LibreTranslateRoutes(admission, downloads), APIRouter(tags=["LibreTranslate"])
    for name in ("translate", "detect", "suggest", "translate_file"):
        router.add_api_route(f"/{name}", getattr(routes, name), methods=["POST"], **ROUTE_SETTINGS[name])
    for name in ("languages", "health"):
        router.add_api_route(f"/{name}", getattr(routes, name), methods=["GET"], **ROUTE_SETTINGS[name])
    # One of LibreTranslate's clients uses POST for this route.
    router.add_api_route("/languages", routes.languages, methods=["POST"], include_in_schema=False)
    router.add_api_route("/frontend/settings", routes.settings, methods=["GET"], **ROUTE_SETTINGS["settings"])
    download = ROUTE_SETTINGS["download_file"]
    router.add_api_route("/download_file/{name}", routes.download_file, methods=["GET"], **download)
    return router


def list_languages(directions: list[tuple[str, str]], pivot: bool) -> list[dict[str, Any]]:
    """Return the languages with their targets, English first, then by name. Each language is a target of itself."""
    codes = dict.fromkeys(code for direction in directions for code in direction)
    into_english = {source for source, target in directions if target == "en"} | {"en"}
    from_english = {target for source, target in directions if source == "en"} | {"en"}

    def targets(source: str) -> set[str]:
        direct = {target for code, target in directions if code == source} | {source}
        return direct | (from_english if pivot and source in into_english else set())

    languages = [
        {
            "code": client_code(code),
            "name": LANGUAGE_NAMES.get(code, code),
            "targets": sorted(map(client_code, targets(code))),
        }
        for code in codes
    ]
    return sorted(languages, key=lambda language: (language["code"] != "en", language["name"]))
