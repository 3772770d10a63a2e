"""How a server says no: a status, a sentence, and when to come back."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse, Response


class Refusal(Exception):  # noqa: N818 -- it is an answer
    """Becomes an answer of the same shape as LibreTranslate's: {"error": "…"}."""

    def __init__(self, status: int, message: str, hint: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.hint, self.retry_after = status, message, hint, retry_after

    def response(self) -> Response:
        content = {"error": self.message} | ({"hint": self.hint} if self.hint else {})
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return Json(content, self.status, headers)


class Json(JSONResponse):
    """What no UTF-8 can say, such as half of a surrogate pair in a request, becomes a question mark."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
