"""The fields of a request to LibreTranslate's routes, from JSON, a form or the query string."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from sixfold.serving.responses import HttpError

BAD_REQUEST = "The browser (or proxy) sent a request that this server could not understand."


async def read_fields(request: Request) -> dict[str, Any]:
    """Return the fields of a request: a JSON object if the body is JSON, otherwise form fields and the query string.

    They are read once for each request, because a key may be looked for before a route reads them.
    """
    state = request.scope.setdefault("state", {})
    if "fields" not in state:
        state["fields"] = await parse_fields(request)
    fields: dict[str, Any] = state["fields"]
    return fields


async def parse_fields(request: Request) -> dict[str, Any]:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json")):
        try:
            body = json.loads((await request.body()).decode("utf-8"))
        except (ValueError, RecursionError):
            raise HttpError(400, BAD_REQUEST) from None
        if not isinstance(body, dict):
            raise HttpError(400, "Invalid JSON format")
        return body
    fields = query_fields(request)
    if media_type == "application/x-www-form-urlencoded":
        return parse_form(await request.body()) | fields
    if media_type == "multipart/form-data":
        return await parse_multipart(request) | fields
    return fields


async def parse_multipart(request: Request) -> dict[str, Any]:
    """Return the fields of a form with at most one file."""
    try:
        form = (await request.form(max_files=1, max_fields=20)).items()
    except HTTPException as error:  # in a route
        raise HttpError(400, str(error.detail)) from None
    except MultiPartException as error:  # before a route
        raise HttpError(400, error.message) from None
    fields: dict[str, Any] = {}
    for name, value in form:
        if isinstance(value, UploadFile):  # it may be a file on disk: close it with the request
            request.scope["state"]["cleanup"].callback(value.file.close)
        fields[name] = value if isinstance(value, UploadFile) else unix_lines(value)
    return fields


def query_fields(request: Request) -> dict[str, Any]:
    """Return the fields of the query string."""
    return parse_form(request.scope["query_string"])


def parse_form(encoded: bytes) -> dict[str, Any]:
    """Return the fields of a form or a query string in UTF-8, escaped or not. The first of two equal names counts."""
    try:
        pairs = parse_qsl(encoded.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise HttpError(400, BAD_REQUEST) from None
    return {name: unix_lines(value) for name, value in reversed(pairs)}


def unix_lines(text: str) -> str:
    """Return a field of a form with the line ends that the user typed: browsers send a line feed of a text as CR LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
