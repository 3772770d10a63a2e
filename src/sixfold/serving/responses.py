"""JSON responses, and the exception that becomes an error response."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse, Response

CHANGED_MODEL = "the model's file was changed while it was in use"


class HttpError(Exception):
    """Raised to answer a request with an error: a status, a message, and perhaps a hint and when to try again.

    The body has the same shape as LibreTranslate's errors: {"error": "…"}.
    """

    def __init__(self, status: int, message: str, hint: str | None = None, retry_after: int | None = None) -> None:
        """Store what the response will hold; `retry_after` is in seconds."""
        super().__init__(message)
        self.status, self.message, self.hint, self.retry_after = status, message, hint, retry_after

    def response(self) -> Response:
        content = {"error": self.message} | ({"hint": self.hint} if self.hint else {})
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return JsonResponse(content, self.status, headers)


class JsonResponse(JSONResponse):
    """A JSON response in UTF-8. Characters that UTF-8 cannot encode, such as lone surrogates, become question marks."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
