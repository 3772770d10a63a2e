"""Authorisation in one place: with a file of keys, every route needs a key except those that are listed here."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sixfold.serving.addresses import route_path
from sixfold.serving.api_keys import ApiKey, ApiKeys
from sixfold.serving.fields import query_fields, read_fields
from sixfold.serving.responses import HttpError, is_openai

# LibreTranslate asks for no key here either: a page or an app reads these before its user has entered one.
PUBLIC_PATHS = frozenset(
    ["/", "/health", "/ready", "/languages", "/frontend/settings", "/docs", "/spec", "/openapi.json"]
)
PUBLIC_FOLDER = "/static/"


def is_public(path: str) -> bool:
    """Return whether a path can be reached without a key."""
    return path in PUBLIC_PATHS or path.startswith(PUBLIC_FOLDER)


class Authorization:
    """ASGI middleware that finds the owner of a request's key, and refuses requests without a valid key.

    The owner is stored as `api_key` in the state of the request; without a file of keys it is None. The middleware
    raises HttpError, so it belongs inside the one that answers these errors.
    """

    def __init__(self, app: ASGIApp, keys: ApiKeys | None) -> None:
        self.app, self._keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            state = scope.setdefault("state", {})
            state["api_key"] = None
            if self._keys is not None and not is_public(route_path(scope)):
                state["api_key"], receive = await self._authorize(self._keys, Request(scope, receive))
        await self.app(scope, receive, send)

    async def _authorize(self, keys: ApiKeys, request: Request) -> tuple[ApiKey, Receive]:
        """Return the owner of the request's key, and a function that receives the request once more."""
        receive = request.receive
        key = bearer_token(request) or query_fields(request).get("api_key", "")
        if not key:
            body, is_sent = await request.body(), False
            key = (await read_fields(request)).get("api_key")

            async def receive_again() -> Message:
                nonlocal is_sent
                if is_sent:
                    return await request.receive()
                is_sent = True
                return {"type": "http.request", "body": body, "more_body": False}

            receive = receive_again
        expects_openai = is_openai(route_path(request.scope))
        if not key or not isinstance(key, str):
            raise HttpError(401 if expects_openai else 400, "Please contact the server operator to get an API key")
        owner = keys.find(key)
        if owner is None:
            raise HttpError(401 if expects_openai else 403, "Invalid API key")
        return owner, receive


def bearer_token(request: Request) -> str:
    """Return the key of an `Authorization: Bearer` header, or an empty string."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else ""
