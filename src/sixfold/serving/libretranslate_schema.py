"""LibreTranslate's interface as OpenAPI describes it; its routes read their fields themselves, from three places."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from sixfold.serving.schema import Refused


class Detected(BaseModel):
    confidence: float
    language: str


class LibreTranslated(BaseModel):
    translatedText: str | list[str]  # noqa: N815 -- the name is theirs
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: Detected | list[Detected] | None = None  # noqa: N815


class LibreLanguage(BaseModel):
    code: str
    name: str
    targets: list[str]


class Health(BaseModel):
    status: str


class Success(BaseModel):
    success: bool


class TranslatedFile(BaseModel):
    translatedFileUrl: str  # noqa: N815


TEXT = {"type": "string"}
LANGUAGES = {"source": {**TEXT, "example": "auto"}, "target": {**TEXT, "example": "en"}}
KEY = {"api_key": TEXT}


def _body(required: list[str], properties: dict[str, Any], kinds: tuple[str, ...]) -> dict[str, Any]:
    schema = {"type": "object", "required": required, "properties": properties}
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": Refused} for status in statuses}


BOTH = ("application/json", "application/x-www-form-urlencoded")
COMMON = _refusals(400, 403, 408, 413, 429, 503, 504)
QUERY = {"oneOf": [TEXT, {"type": "array", "items": TEXT}]}

SCHEMAS: dict[str, dict[str, Any]] = {
    "translate": {
        "response_model": LibreTranslated,
        "responses": COMMON,
        "openapi_extra": _body(
            ["q", "source", "target"],
            {
                "q": QUERY,
                **LANGUAGES,
                "format": {"enum": ["text", "html"]},
                "alternatives": {"type": "integer", "minimum": 0},
                **KEY,
            },
            BOTH,
        ),
    },
    "detect": {
        "response_model": list[Detected],
        "responses": COMMON,
        "openapi_extra": _body(["q"], {"q": QUERY, **KEY}, BOTH),
    },
    "languages": {"response_model": list[LibreLanguage]},
    "health": {"response_model": Health},
    "settings": {"response_model": dict[str, Any]},
    "suggest": {
        "response_model": Success,
        "responses": COMMON,
        "openapi_extra": _body(["q", "s", "source", "target"], {"q": TEXT, "s": TEXT, **LANGUAGES, **KEY}, BOTH),
    },
    "translate_file": {
        "response_model": TranslatedFile,
        "responses": COMMON,
        "openapi_extra": _body(
            ["file", "source", "target"],
            {"file": {**TEXT, "format": "binary"}, **LANGUAGES, **KEY},
            ("multipart/form-data",),
        ),
    },
    "download_file": {
        "responses": {200: {"content": {"application/octet-stream": {}}}, **_refusals(404)},
        "response_class": Response,
    },
}
