"""LibreTranslate's interface, as its clients use it: the same paths, fields, codes of languages and errors."""

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

from sixfold.serving.admission import Desk, suggest
from sixfold.serving.batcher import Way
from sixfold.serving.downloads import Files
from sixfold.serving.libretranslate_schema import SCHEMAS
from sixfold.serving.responses import Json, Refusal
from sixfold.translation.documents.document import FORMATS, format_of, prose_of
from sixfold.translation.options import TranslateOptions
from sixfold.translation.prepare import replace_surrogates
from sixfold.translation.result import Translation

# What clients call a language, and what models do.
OUTSIDE = {"zh": "zh-Hans"}
INSIDE = {"zh-hans": "zh", "zh-cn": "zh", "zh-sg": "zh"}
NAMES = {
    "ar": "Arabic", "cs": "Czech", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "hi": "Hindi",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese",
    "ru": "Russian", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
SUFFIXES = (".txt", *(suffix for form in FORMATS.values() for suffix in form.suffixes))
SAMPLE = 4000  # characters of a document that tell its language
BAD = "The browser (or proxy) sent a request that this server could not understand."


async def fields_of(request: Request) -> dict[str, Any]:
    """A JSON object where the request says that it is JSON, else the query string and the form together."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        try:
            found = json.loads((await request.body()).decode("utf-8"))
        except (ValueError, RecursionError):
            raise Refusal(400, BAD) from None
        if not isinstance(found, dict):
            raise Refusal(400, "Invalid JSON format")
        return found
    fields: dict[str, Any] = pairs_of(request.scope["query_string"])
    if kind == "application/x-www-form-urlencoded":
        return pairs_of(await request.body()) | fields
    if kind == "multipart/form-data":
        form = dict((await request.form(max_files=1, max_fields=20)).items())
        for upload in form.values():
            if isinstance(upload, UploadFile):  # it may be a file on disk, which is not to wait for the collector
                request.scope["state"]["held"].callback(upload.file.close)
        return form | fields
    return fields


def pairs_of(encoded: bytes) -> dict[str, Any]:
    """Text is UTF-8, escaped or not; of a name that comes twice, the first."""
    try:
        found = parse_qsl(encoded.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise Refusal(400, BAD) from None
    return dict(reversed(found))


def wanted(fields: dict[str, Any], name: str) -> str:
    """A field that must be there."""
    value = fields.get(name)
    if value is None or value == "" or value == []:
        raise Refusal(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise Refusal(400, f"Invalid request: {name} parameter is not a string")
    return replace_surrogates(value)


def texts_of(fields: dict[str, Any]) -> list[str]:
    value = fields.get("q")
    if isinstance(value, list) and value:
        if not all(isinstance(each, str) for each in value):
            raise Refusal(400, "Invalid request: q parameter is not a string or a list of strings")
        return [replace_surrogates(each) for each in value]
    return [wanted(fields, "q")]


def inside(code: str) -> str:
    code = code.strip().lower().replace("_", "-")
    return INSIDE.get(code, code)


def outside(code: str) -> str:
    return OUTSIDE.get(code, code)


class Libre:
    """What the routes share."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.service = desk, desk.service

    def languages(self, fields: dict[str, Any], text: str) -> tuple[str, str, dict[str, Any]]:
        """From, to, and what was found out of it where the source is `auto`."""
        source, target = inside(wanted(fields, "source")), inside(wanted(fields, "target"))
        known = self.service.models.directions
        told: dict[str, Any] = {}
        if source == "auto":
            source, confidence = self.service.language(text)
            told = {"confidence": confidence, "language": outside(source)}
        elif source not in {one for pair in known for one in pair}:
            raise Refusal(400, f"{source} is not supported")
        if target not in {one for pair in known for one in pair}:
            raise Refusal(400, f"{target} is not supported")
        return source, target, told

    def check_pair(self, source: str, target: str) -> None:
        known = self.service.models.directions
        through = self.desk.options.pivot and {(source, "en"), ("en", target)} <= set(known)
        if source != target and (source, target) not in known and not through:
            names = [f"{NAMES.get(code, code)} ({code})" for code in (target, source)]
            raise Refusal(400, f"{names[0]} is not available as a target language from {names[1]}")

    async def translate(self, fields: dict[str, Any], texts: list[str]) -> dict[str, Any]:
        is_list = isinstance(fields.get("q"), list)
        count = alternatives_of(fields, self.desk.options.max_alternatives)
        form = fields.get("format") or "text"
        if form not in ("text", "html"):
            raise Refusal(400, f"{str(form)[:40]} format is not supported")
        # Each text has a language of its own, where it is to be found out.
        told = [self.languages(fields, text) for text in texts]
        groups: dict[tuple[str, str], list[int]] = {}
        for place, (source, target, _) in enumerate(told):
            self.check_pair(source, target)
            groups.setdefault((source, target), []).append(place)
        answers: dict[int, tuple[str, list[str]]] = {}
        for (source, target), places in groups.items():
            some = [texts[place] for place in places]
            found = await self.some(some, source, target, form, count)
            answers.update(zip(places, found, strict=True))
        said = [answers[place][0] for place in range(len(texts))]
        others = [answers[place][1] for place in range(len(texts))]
        detected = [each for _, _, each in told]
        result: dict[str, Any] = {"translatedText": said if is_list else said[0]}
        if count:
            result["alternatives"] = others if is_list else others[0]
        if detected[0]:
            result["detectedLanguage"] = detected if is_list else detected[0]
        return dict(sorted(result.items()))

    async def some(
        self, texts: list[str], source: str, target: str, form: str, count: int
    ) -> list[tuple[str, list[str]]]:
        """Of one direction: each translation and other ways to say it."""
        if source == target:
            return [(text, []) for text in texts]
        way = Way(source, target, TranslateOptions(self.desk.options.beam, count + 1))
        if form == "html":
            plain = way._replace(options=TranslateOptions(self.desk.options.beam))
            return [(await self.page(text, plain), []) for text in texts]
        said = await self.service.translate(texts, way, self.desk.options.pivot)
        return [(each.text, other_ways(each, count)) for each in said]

    async def page(self, text: str, way: Way) -> str:
        """A text that is HTML."""
        data = text.encode()
        parts = await self.service.read(data, "html")
        return (await self.service.document(parts, data, way))[0].decode()


def other_ways(said: Translation, count: int) -> list[str]:
    """Neither empty nor the same as another."""
    found = dict.fromkeys(each.text for each in said.n_best if each.text.strip())
    found.pop(said.text, None)
    return list(found)[:count]


def alternatives_of(fields: dict[str, Any], most: int) -> int:
    value = fields.get("alternatives", 0)
    if value is None or value == "":
        return 0
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Refusal(400, "Invalid request: alternatives parameter is not a number")
    if value > most:
        raise Refusal(400, f"Invalid request: alternatives parameter must be <= {most}")
    return max(0, value)


def key_of(fields: dict[str, Any]) -> str:
    key = fields.get("api_key")
    return key if isinstance(key, str) else ""


class Routes:
    """What each address does."""

    def __init__(self, desk: Desk, files: Files) -> None:
        self._desk, self._files, self._libre = desk, files, Libre(desk)
        self._service, self._options = desk.service, desk.options

    async def translate(self, request: Request) -> Response:
        """A text, or a list of them in JSON."""
        fields = await fields_of(request)
        texts = texts_of(fields)
        self._desk.admit(request, key_of(fields), texts)
        return Json(await self._libre.translate(fields, texts))

    async def detect(self, request: Request) -> Response:
        """Which of the known languages a text is in."""
        fields = await fields_of(request)
        texts = texts_of(fields)
        self._desk.admit(request, key_of(fields), texts)
        found = [self._service.language(text) for text in texts]
        return Json([{"confidence": sure, "language": outside(code)} for code, sure in found])

    async def languages(self) -> Response:
        """What can be translated into what."""
        return Json(known_languages(self._service.models.directions, self._options.pivot))

    async def health(self) -> Response:
        """That the server is there."""
        return Json({"status": "ok"})

    async def settings(self) -> Response:
        """What a page or an app needs to know."""
        target = self._service.models.directions[0][1]
        return Json({
            "apiKeys": self._desk.keys is not None, "charLimit": self._options.max_characters,
            "filesTranslation": True, "frontendTimeout": 500, "keyRequired": self._desk.keys is not None,
            "language": {"source": {"code": "auto", "name": "Auto Detect"},
                         "target": {"code": target, "name": NAMES.get(target, target)}},
            "suggestions": bool(self._options.suggestions), "supportedFilesFormat": list(SUFFIXES),
        })  # fmt: skip

    async def suggest(self, request: Request) -> Response:
        """A better translation, kept for `sixfold finetune`."""
        fields = await fields_of(request)
        if not self._options.suggestions:
            raise Refusal(403, "Suggestions are disabled on this server.")
        text, better = wanted(fields, "q"), wanted(fields, "s")
        source, target, _ = self._libre.languages(fields, text)
        self._desk.admit(request, key_of(fields), [text, better])
        # One file for each direction: its columns are what `sixfold finetune` expects.
        path = Path(self._options.suggestions)
        suggest(path.with_name(f"{path.stem}.{source}-{target}{path.suffix or '.tsv'}"), text, better)
        return Json({"success": True})

    async def translate_file(self, request: Request) -> Response:
        """A document; the answer says where the translated one is to be had."""
        if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            raise Refusal(400, BAD)
        fields = await fields_of(request)
        upload = fields.get("file")
        if not isinstance(upload, UploadFile):
            raise Refusal(400, BAD)
        name = PurePath((upload.filename or "").replace("\\", "/"))
        if not name.name:
            raise Refusal(400, "Invalid request: missing file parameter")
        self._desk.admit(request, key_of(fields), [])
        for each in ("source", "target"):
            wanted(fields, each)
        if name.suffix.lower() not in SUFFIXES:
            raise Refusal(400, "Invalid request: file format not supported")
        data = await upload.read()
        form = format_of(Path(name.name))
        bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        parts = await self._service.read(data, form, name.name) if form else {}
        text = prose_of(parts) if form else text_of(data.removeprefix(bom), name.name)
        self._desk.admit_document(request, len(text))
        source, target = self._directed(fields, text[:SAMPLE])
        self._libre.check_pair(source, target)
        way = Way(source, target, TranslateOptions(self._options.beam))
        if form:
            said = (await self._service.document(parts, data, way))[0]
        else:
            said = bom + (await self._service.translate([text], way))[0].text.encode()
        address = self._files.keep(said, f"{name.stem}_{target}{name.suffix}")
        return Json({"translatedFileUrl": f"{request.base_url}download_file/{address}"})

    def _directed(self, fields: dict[str, Any], text: str) -> tuple[str, str]:
        """Where they are `auto`, the source is told by the script of the prose, and the target by the first model."""
        if fields["target"] == "auto":
            source = self._service.language(text)[0] if fields["source"] == "auto" else inside(fields["source"])
            fields |= {"target": next((to for one, to in self._service.models.directions if one == source), source)}
        source, target, _ = self._libre.languages(fields, text)
        return source, target

    async def download_file(self, name: str) -> Response:
        """Once or many times, until it is forgotten."""
        return self._files.response(name)


def text_of(data: bytes, name: str) -> str:
    """The text of a file that is nothing but text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refusal(400, f"{name[:60]}: expected UTF-8") from None


def make_libre(desk: Desk, files: Files) -> APIRouter:
    """Ready to be put into an application."""
    routes, api = Routes(desk, files), APIRouter(tags=["LibreTranslate"])
    for name in ("translate", "detect", "suggest", "translate_file"):
        api.add_api_route(f"/{name}", getattr(routes, name), methods=["POST"], **SCHEMAS[name])
    for name in ("languages", "health"):
        api.add_api_route(f"/{name}", getattr(routes, name), methods=["GET"], **SCHEMAS[name])
    # One of its clients posts here.
    api.add_api_route("/languages", routes.languages, methods=["POST"], include_in_schema=False)
    api.add_api_route("/frontend/settings", routes.settings, methods=["GET"], **SCHEMAS["settings"])
    api.add_api_route("/download_file/{name}", routes.download_file, methods=["GET"], **SCHEMAS["download_file"])
    return api


def known_languages(directions: list[tuple[str, str]], pivot: bool) -> list[dict[str, Any]]:
    """English first, then by name; a language can always become itself."""
    codes = dict.fromkeys(code for pair in directions for code in pair)
    into_english = {source for source, target in directions if target == "en"} | {"en"}
    from_english = {target for source, target in directions if source == "en"} | {"en"}

    def targets(source: str) -> set[str]:
        straight = {target for one, target in directions if one == source} | {source}
        return straight | (from_english if pivot and source in into_english else set())

    found = [
        {"code": outside(code), "name": NAMES.get(code, code), "targets": sorted(map(outside, targets(code)))}
        for code in codes
    ]
    return sorted(found, key=lambda each: (each["code"] != "en", each["name"]))
