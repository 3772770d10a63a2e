"""JSON responses, and the exception that becomes an error response."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse, Response

CHANGED_MODEL = "the model's file was changed while it was in use"


# Types of errors that OpenAI's clients know; for other statuses, the request or the server is at fault.
ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def is_openai(path: str) -> bool:
    """Return whether a path belongs to OpenAI's interface."""
    return path.startswith("/v1/")


def openai_error(status: int, message: str, hint: str | None) -> dict[str, Any]:
    """Return the body of an error as OpenAI's clients expect it."""
    kind = ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    text = f"{message}; {hint}" if hint else message
    return {"error": {"message": text, "type": kind, "param": None, "code": None}}


class HttpError(Exception):
    """Raised to answer a request with an error: a status, a message, and perhaps a hint and when to try again.

    The body has the same shape as LibreTranslate's errors: {"error": "…"}; below /v1/ it has that of OpenAI's.
    """

    def __init__(self, status: int, message: str, hint: str | None = None, retry_after: int | None = None) -> None:
        """Store what the response will hold; `retry_after` is in seconds."""
        super().__init__(message)
        self.status, self.message, self.hint, self.retry_after = status, message, hint, retry_after

    def response(self, path: str = "") -> Response:
        """Return the response to a request for this path."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if is_openai(path):
            return JsonResponse(openai_error(self.status, self.message, self.hint), self.status, headers)
        content = {"error": self.message} | ({"hint": self.hint} if self.hint else {})
        return JsonResponse(content, self.status, headers)


class JsonResponse(JSONResponse):
    """A JSON response in UTF-8. Characters that UTF-8 cannot encode, such as lone surrogates, become question marks."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
