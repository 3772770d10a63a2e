"""The OpenAPI description of LibreTranslate's routes, which read their fields from JSON, forms or the query string."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from sixfold.serving.schema import ErrorResponse


class DetectedLanguage(BaseModel):
    """A detected language, and the confidence from 0 to 100."""

    confidence: Annotated[float, Field(description="From 0 to 100.")]
    language: Annotated[str, Field(description="Code of the language.")]


class LibreTranslateResponse(BaseModel):
    """The translation of a text. If the request has a list of texts, the fields are lists too."""

    translatedText: str | list[str]  # noqa: N815 -- the name of the interface
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None  # noqa: N815


class LanguageResponse(BaseModel):
    """A language and the codes of the languages that it can be translated into."""

    code: Annotated[str, Field(description="Code of the language.")]
    name: Annotated[str, Field(description="English name of the language.")]
    targets: Annotated[list[str], Field(description="Codes of the languages that it can be translated into.")]


class HealthResponse(BaseModel):
    """The state of the server."""

    status: Annotated[str, Field(description="Always `ok`.")]


class SuggestResponse(BaseModel):
    """Whether the suggestion was saved."""

    success: Annotated[bool, Field(description="Always true; a suggestion that is refused is an error.")]


class TranslateFileResponse(BaseModel):
    """Where the translated file can be fetched."""

    translatedFileUrl: Annotated[  # noqa: N815
        str, Field(description="Address of the translated file. With API keys, fetching it needs a key too.")
    ]


TEXT = {"type": "string"}
SOURCE_HELP = "Language of the text, or auto to detect it."
TARGET_HELP = "Language to translate into."
LANGUAGES = {
    "source": {**TEXT, "example": "auto", "description": SOURCE_HELP},
    "target": {**TEXT, "example": "en", "description": TARGET_HELP},
}
API_KEY = {"api_key": {**TEXT, "description": "API key, if the server needs one."}}
QUERY = {"oneOf": [TEXT, {"type": "array", "items": TEXT}], "description": "A text, or in JSON a list of texts."}
JSON_OR_FORM = ("application/json", "application/x-www-form-urlencoded")


def _request_body(required: list[str], properties: dict[str, Any], media_types: tuple[str, ...]) -> dict[str, Any]:
    schema = {"type": "object", "required": required, "properties": properties}
    content = {media_type: {"schema": schema} for media_type in media_types}
    return {"requestBody": {"required": True, "content": content}}


def _error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorResponse} for status in statuses}


COMMON_ERRORS = _error_responses(400, 403, 408, 413, 421, 429, 503, 504)

# Arguments of `add_api_route` for each route.
ROUTE_SETTINGS: dict[str, dict[str, Any]] = {
    "translate": {
        "response_model": LibreTranslateResponse,
        "responses": COMMON_ERRORS,
        "openapi_extra": _request_body(
            ["q", "source", "target"],
            {
                "q": QUERY,
                **LANGUAGES,
                "format": {"enum": ["text", "html"], "description": "Whether the text is plain text or HTML."},
                "alternatives": {"type": "integer", "minimum": 0, "description": "Number of other translations."},
                **API_KEY,
            },
            JSON_OR_FORM,
        ),
    },
    "detect": {
        "response_model": list[DetectedLanguage],
        "responses": COMMON_ERRORS,
        "openapi_extra": _request_body(["q"], {"q": QUERY, **API_KEY}, JSON_OR_FORM),
    },
    "languages": {"response_model": list[LanguageResponse]},
    "health": {"response_model": HealthResponse},
    "settings": {"response_model": dict[str, Any]},
    "suggest": {
        "response_model": SuggestResponse,
        "responses": COMMON_ERRORS,
        "openapi_extra": _request_body(
            ["q", "s", "source", "target"],
            {
                "q": {**TEXT, "description": "The source text."},
                "s": {**TEXT, "description": "The better translation."},
                **LANGUAGES,
                **API_KEY,
            },
            JSON_OR_FORM,
        ),
    },
    "translate_file": {
        "response_model": TranslateFileResponse,
        "responses": COMMON_ERRORS,
        "openapi_extra": _request_body(
            ["file", "source", "target"],
            {"file": {**TEXT, "format": "binary", "description": "The document."}, **LANGUAGES, **API_KEY},
            ("multipart/form-data",),
        ),
    },
    "download_file": {
        "responses": {200: {"content": {"application/octet-stream": {}}}, **_error_responses(400, 403, 404, 421)},
        "response_class": Response,
    },
}
STREAM_SETTINGS: dict[str, Any] = {
    "response_class": StreamingResponse,
    "responses": {
        **COMMON_ERRORS,
        200: {"content": {"text/event-stream": {}}, "description": "Events about the progress, then the document."},
    },
    "openapi_extra": ROUTE_SETTINGS["translate_file"]["openapi_extra"],
}
