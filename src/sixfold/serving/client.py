"""The Python client of a server: the methods of `Translator` over HTTP, blocking or async, with retries."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Generator, Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Any, NamedTuple, Self

from sixfold.errors import RequestError, SixfoldError
from sixfold.translation.glossary import Glossary
from sixfold.translation.options import TranslateOptions
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Alternative, Details, Link, Notice, Sentence, Token, Translation

# Statuses of requests that the server has not worked on, or whose work it has kept: these are sent again. A request
# without a response in time is not, because the server may still be working on it.
RETRY_STATUSES = (429, 502, 503)
DEFAULT_URL = "http://127.0.0.1:5000"
DEFAULT_TIMEOUT = 90.0  # more than the server's default deadline, at which it answers with what is done
MAX_FUTILE = 3  # responses in a row in which no sentence more is done: at first the server may still be splitting texts


class HttpRequest(NamedTuple):
    """A request to send."""

    method: str
    path: str
    body: dict[str, Any] | None = None


class Pause(NamedTuple):
    """A number of seconds to sleep before the next request."""

    seconds: float


class HttpResponse(NamedTuple):
    """A response; status 0 means that the server could not be reached or ended the connection."""

    status: int
    body: Any
    retry_after: float = 0.0


NO_RESPONSE = HttpResponse(0, None)
TIMED_OUT = HttpResponse(
    408,
    {"error": "no response in time", "hint": "let `timeout` be more than the server's deadline, or send less at once"},
)

# An exchange yields requests and pauses, receives the responses, and returns its result. So it is written once for
# both clients, which only differ in how they send and sleep.
Exchange = Generator[HttpRequest | Pause, HttpResponse | None, Any]


def send_with_retries(request: HttpRequest, tries: int) -> Exchange:
    """Send a request and return the body of its response.

    While the server is busy or cannot be reached, the request is sent again, each time after a longer, random pause.
    """
    response = NO_RESPONSE
    for number in range(tries):
        response = (yield request) or response
        if response.status and response.status not in RETRY_STATUSES:
            break
        if number + 1 < tries:
            pause = random.uniform(0.5, 1.0) * min(8.0, 0.25 * 2**number)
            yield Pause(max(pause, min(response.retry_after, 30.0)))
    if response.status == 200:
        return response.body
    body = response.body if isinstance(response.body, dict) else {}
    message = body.get("error") or f"status {response.status}" if response.status else "no response"
    raise RequestError(f"server: {message}", body.get("hint"))


def request_fields(request: TranslationRequest) -> dict[str, Any]:
    """Return a request as fields of /api/v1/translate."""
    values = asdict(request.options)
    terms = [term._asdict() for term in request.glossary.terms] if request.glossary else []
    languages = {"source": request.source, "target": request.target}
    return {**languages, "glossary": terms, "pivot": request.pivot, "details": request.details, **values}


def parse_translation(fields: dict[str, Any]) -> Translation:
    """Return a translation of the server as the object that a translator returns."""
    details = Details(
        tuple(Token(each["text"], tuple(each["span"]), each["probability"], tuple(each["source"]))
              for each in fields.get("tokens") or ()),
        tuple(Link(tuple(each["target"]), tuple(each["source"]), each["weight"])
              for each in fields.get("alignment") or ()),
    )  # fmt: skip
    sentences = tuple(
        Sentence(**{**each, "source": tuple(each["source"]), "target": tuple(each["target"])})
        for each in fields.get("sentences") or ()
    )
    return Translation(
        fields["source"], fields["translation"], fields["score"], (fields["from"], fields["to"]),
        tuple(Alternative(each["text"], each["score"]) for each in fields["n_best"]),
        tuple(Notice(each["kind"], each["message"], each["span"] and tuple(each["span"]))
              for each in fields["warnings"]),
        fields["confidence"], sentences, lambda: details,
    )  # fmt: skip


class _Exchanges:
    """The exchanges that both clients have in common."""

    def __init__(self, url: str, key: str, tries: int) -> None:
        self._url, self._tries = url.rstrip("/"), tries
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"

    def _translate_exchange(self, texts: Sequence[str], request: TranslationRequest) -> Exchange:
        """Return the translations. What the server has not finished by its deadline is sent again: it goes on there."""
        if isinstance(texts, str):
            raise RequestError(
                f"texts: expected a list of strings; got {texts!r:.60}", "translate() takes a single text"
            )
        translations: dict[int, Translation] = {}
        remaining = list(range(len(texts)))
        most_done, futile = 0, 0  # sentences of the remaining texts, and responses without a new one
        while remaining:
            fields = {"texts": [texts[index] for index in remaining], **request_fields(request)}
            body = yield from send_with_retries(HttpRequest("POST", "/api/v1/translate", fields), self._tries)
            responses = dict(zip(remaining, body["translations"], strict=True))
            complete = {index: each for index, each in responses.items() if each.get("complete", True)}
            translations |= {index: parse_translation(each) for index, each in complete.items()}
            remaining = [index for index in remaining if index not in complete]
            done = body.get("done", 0)
            futile = 0 if complete or done > most_done else futile + 1
            most_done = 0 if complete else max(done, most_done)
            if futile >= MAX_FUTILE:  # the same request would never end
                raise RequestError("server: its deadline passes before a sentence is done", "send less at once")
        return [translations[index] for index in range(len(texts))]

    def _score_exchange(self, text: str, translation: str, source: str | None, target: str | None) -> Exchange:
        fields = {"text": text, "translation": translation, "source": source, "target": target}
        return (yield from self._translations("score", fields))

    def _alternatives_exchange(
        self, text: str, prefix: str, count: int, source: str | None, target: str | None
    ) -> Exchange:
        fields = {"text": text, "prefix": prefix, "count": count, "source": source, "target": target}
        return (yield from self._translations("alternatives", fields))

    def _directions_exchange(self) -> Exchange:
        body = yield from send_with_retries(HttpRequest("GET", "/api/v1/models"), self._tries)
        return [tuple(direction) for direction in body["directions"]]

    def _translations(self, route: str, fields: dict[str, Any]) -> Exchange:
        body = yield from send_with_retries(HttpRequest("POST", f"/api/v1/{route}", fields), self._tries)
        return [parse_translation(each) for each in body["translations"]]

    def _httpx_arguments(self, request: HttpRequest) -> dict[str, Any]:
        url = self._url + request.path
        return {"method": request.method, "url": url, "json": request.body, "headers": self._headers}


def _parse_response(response: Any) -> HttpResponse:
    try:
        body = response.json()
    except ValueError:
        body = None
    retry_after = response.headers.get("retry-after", "")
    return HttpResponse(response.status_code, body, float(retry_after) if retry_after.isdigit() else 0.0)


def _import_httpx() -> Any:
    try:
        import httpx
    except ModuleNotFoundError:
        raise SixfoldError("Client: expected httpx, which is not installed", "pip install 'sixfold[client]'") from None
    return httpx


class Client(_Exchanges):
    """Translates on a server, with the methods of `Translator`. Any number of threads can share one client.

    `timeout` is the time for a response in seconds. It must be more than the server's `deadline` (60 s by default), at
    which the server answers with the sentences that are done; the client then asks for the others. `tries` is how often
    a request is sent to a server that is busy or cannot be reached.
    """

    def __init__(self, url: str = DEFAULT_URL, key: str = "", timeout: float = DEFAULT_TIMEOUT, tries: int = 5) -> None:
        super().__init__(url, key, tries)
        self._http = _import_httpx().Client(timeout=timeout)

    @property
    def directions(self) -> list[tuple[str, str]]:
        """Source and target language of each direction that the server translates."""
        return self._run(self._directions_exchange())

    def translate(
        self, text: str, source: str | None = None, target: str | None = None,
        options: TranslateOptions | None = None, glossary: Glossary | None = None, details: bool = False,
        pivot: bool = False,
    ) -> Translation:  # fmt: skip
        """Translate a text. Tokens and alignment are empty unless `details` is true."""
        return self.translate_batch([text], source, target, options, glossary, details, pivot)[0]

    def translate_batch(
        self, texts: Sequence[str], source: str | None = None, target: str | None = None,
        options: TranslateOptions | None = None, glossary: Glossary | None = None, details: bool = False,
        pivot: bool = False,
    ) -> list[Translation]:  # fmt: skip
        """Return the translations in the order of the texts."""
        request = TranslationRequest(
            source, target, options or TranslateOptions(), glossary, details=details, pivot=pivot
        )
        return self._run(self._translate_exchange(texts, request))

    def score(self, text: str, translation: str, source: str | None = None, target: str | None = None) -> Translation:
        """Return a given translation with the score and the tokens that the model gives it."""
        return self._run(self._score_exchange(text, translation, source, target))[0]

    def alternatives(
        self, text: str, prefix: str = "", count: int = 5, source: str | None = None, target: str | None = None
    ) -> list[Translation]:
        """Return translations that begin with the prefix, each with a different next word."""
        return self._run(self._alternatives_exchange(text, prefix, count, source, target))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, exchange: Exchange) -> Any:
        response: HttpResponse | None = None
        try:
            while True:
                step = exchange.send(response)
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                response = None if isinstance(step, Pause) else self._send(step)
        except StopIteration as end:
            return end.value

    def _send(self, request: HttpRequest) -> HttpResponse:
        httpx = _import_httpx()
        try:
            return _parse_response(self._http.request(**self._httpx_arguments(request)))
        except (httpx.ReadTimeout, httpx.WriteTimeout):
            return TIMED_OUT
        except httpx.TransportError:
            return NO_RESPONSE


class AsyncClient(_Exchanges):
    """Translates on a server, with the methods and settings of `Client` as coroutines."""

    def __init__(self, url: str = DEFAULT_URL, key: str = "", timeout: float = DEFAULT_TIMEOUT, tries: int = 5) -> None:
        super().__init__(url, key, tries)
        self._http = _import_httpx().AsyncClient(timeout=timeout)

    async def directions(self) -> list[tuple[str, str]]:
        return await self._run(self._directions_exchange())

    async def translate(
        self, text: str, source: str | None = None, target: str | None = None,
        options: TranslateOptions | None = None, glossary: Glossary | None = None, details: bool = False,
        pivot: bool = False,
    ) -> Translation:  # fmt: skip
        return (await self.translate_batch([text], source, target, options, glossary, details, pivot))[0]

    async def translate_batch(
        self, texts: Sequence[str], source: str | None = None, target: str | None = None,
        options: TranslateOptions | None = None, glossary: Glossary | None = None, details: bool = False,
        pivot: bool = False,
    ) -> list[Translation]:  # fmt: skip
        request = TranslationRequest(
            source, target, options or TranslateOptions(), glossary, details=details, pivot=pivot
        )
        return await self._run(self._translate_exchange(texts, request))

    async def score(
        self, text: str, translation: str, source: str | None = None, target: str | None = None
    ) -> Translation:
        return (await self._run(self._score_exchange(text, translation, source, target)))[0]

    async def alternatives(
        self, text: str, prefix: str = "", count: int = 5, source: str | None = None, target: str | None = None
    ) -> list[Translation]:
        return await self._run(self._alternatives_exchange(text, prefix, count, source, target))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, exchange: Exchange) -> Any:
        response: HttpResponse | None = None
        try:
            while True:
                step = exchange.send(response)
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                response = None if isinstance(step, Pause) else await self._send(step)
        except StopIteration as end:
            return end.value

    async def _send(self, request: HttpRequest) -> HttpResponse:
        httpx = _import_httpx()
        try:
            return _parse_response(await self._http.request(**self._httpx_arguments(request)))
        except (httpx.ReadTimeout, httpx.WriteTimeout):
            return TIMED_OUT
        except httpx.TransportError:
            return NO_RESPONSE
