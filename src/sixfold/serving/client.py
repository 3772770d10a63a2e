"""A server asked from Python: what `Translator` does here is done there, at once or awaited, with patience."""

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
from sixfold.translation.result import Alternative, Details, Link, Notice, Sentence, Token, Translation

BUSY = (429, 502, 503, 504)  # come back later; all that is asked here may be asked twice


class Ask(NamedTuple):
    """A request to send."""

    method: str
    path: str
    body: dict[str, Any] | None = None


class Wait(NamedTuple):
    """Seconds to sleep."""

    seconds: float


class Answer(NamedTuple):
    """What came back; status 0: nothing did."""

    status: int
    body: Any
    retry_after: float = 0.0


NOTHING = Answer(0, None)
HERE = "http://127.0.0.1:5000"

Talk = Generator[Ask | Wait, Answer | None, Any]


def asked(ask: Ask, tries: int) -> Talk:
    """One request, sent again while the server is busy or away, each time after a longer and random pause."""
    answer = NOTHING
    for number in range(tries):
        answer = (yield ask) or answer
        if answer.status and answer.status not in BUSY:
            break
        if number + 1 < tries:
            pause = random.uniform(0.5, 1.0) * min(8.0, 0.25 * 2**number)
            yield Wait(max(pause, min(answer.retry_after, 30.0)))
    if answer.status == 200:
        return answer.body
    told = answer.body if isinstance(answer.body, dict) else {}
    message = told.get("error") or f"status {answer.status}" if answer.status else "no answer"
    raise RequestError(f"server: {message}", told.get("hint"))


def fields(
    source: str | None, target: str | None, options: TranslateOptions | None, glossary: Glossary | None
) -> dict[str, Any]:
    """As /api/v1/translate has them."""
    chosen = asdict(options or TranslateOptions())
    chosen.pop("length_penalty")
    terms = [term._asdict() for term in glossary.terms] if glossary else []
    return {"source": source, "target": target, "glossary": terms, **chosen}


def translation_of(said: dict[str, Any]) -> Translation:
    """As a translator would have given it."""
    details = Details(
        tuple(Token(each["text"], tuple(each["span"]), each["probability"], tuple(each["source"]))
              for each in said.get("tokens") or ()),
        tuple(Link(tuple(each["target"]), tuple(each["source"]), each["weight"])
              for each in said.get("alignment") or ()),
        tuple(Sentence(tuple(each["source"]), tuple(each["target"])) for each in said.get("sentences") or ()),
    )  # fmt: skip
    return Translation(
        said["source"], said["translation"], said["score"], (said["from"], said["to"]),
        tuple(Alternative(each["text"], each["score"]) for each in said["n_best"]),
        tuple(Notice(each["kind"], each["message"], each["span"] and tuple(each["span"])) for each in said["warnings"]),
        said["confidence"], lambda: details,
    )  # fmt: skip


class _Asker:
    """The requests; how they are sent is for those below to say."""

    def __init__(self, url: str, key: str, tries: int) -> None:
        self._url, self._tries = url.rstrip("/"), tries
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"

    def _batch(self, texts: Sequence[str], wish: dict[str, Any], details: bool) -> Talk:
        if isinstance(texts, str):
            raise RequestError(
                f"texts: expected a list of strings; got {texts!r:.60}", "translate() takes a single text"
            )
        if not texts:
            return []
        body = {"texts": list(texts), "details": details, **wish}
        said = yield from asked(Ask("POST", "/api/v1/translate", body), self._tries)
        return [translation_of(each) for each in said["translations"]]

    def _score(self, text: str, translation: str, source: str | None, target: str | None) -> Talk:
        body = {"text": text, "translation": translation, "source": source, "target": target}
        said = yield from asked(Ask("POST", "/api/v1/score", body), self._tries)
        return [translation_of(each) for each in said["translations"]]

    def _alternatives(self, text: str, prefix: str, count: int, source: str | None, target: str | None) -> Talk:
        body = {"text": text, "prefix": prefix, "count": count, "source": source, "target": target}
        said = yield from asked(Ask("POST", "/api/v1/alternatives", body), self._tries)
        return [translation_of(each) for each in said["translations"]]

    def _known(self) -> Talk:
        said = yield from asked(Ask("GET", "/api/v1/models"), self._tries)
        return [tuple(pair) for pair in said["directions"]]

    def _request(self, ask: Ask) -> dict[str, Any]:
        """For httpx."""
        return {"method": ask.method, "url": self._url + ask.path, "json": ask.body, "headers": self._headers}


def _answer(response: Any) -> Answer:
    try:
        body = response.json()
    except ValueError:
        body = None
    after = response.headers.get("retry-after", "")
    return Answer(response.status_code, body, float(after) if after.isdigit() else 0.0)


def _httpx() -> Any:
    try:
        import httpx
    except ModuleNotFoundError:
        raise SixfoldError("Client: expected httpx, which is not installed", "pip install 'sixfold[client]'") from None
    return httpx


class Client(_Asker):
    """`Translator`, at a server; open it once and use it from as many threads as you like."""

    def __init__(self, url: str = HERE, key: str = "", timeout: float = 60.0, tries: int = 5) -> None:
        super().__init__(url, key, tries)
        self._http = _httpx().Client(timeout=timeout)

    @property
    def directions(self) -> list[tuple[str, str]]:
        return self._run(self._known())

    def translate(
        self, text: str, source: str | None = None, target: str | None = None,
        options: TranslateOptions | None = None, glossary: Glossary | None = None, details: bool = False,
    ) -> Translation:  # fmt: skip
        """`details`: with tokens and alignment, which are empty otherwise."""
        return self.translate_batch([text], source, target, options, glossary, details)[0]

    def translate_batch(
        self, texts: Sequence[str], source: str | None = None, target: str | None = None,
        options: TranslateOptions | None = None, glossary: Glossary | None = None, details: bool = False,
    ) -> list[Translation]:  # fmt: skip
        return self._run(self._batch(texts, fields(source, target, options, glossary), details))

    def score(self, text: str, translation: str, source: str | None = None, target: str | None = None) -> Translation:
        return self._run(self._score(text, translation, source, target))[0]

    def alternatives(
        self, text: str, prefix: str = "", count: int = 5, source: str | None = None, target: str | None = None
    ) -> list[Translation]:
        return self._run(self._alternatives(text, prefix, count, source, target))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, talk: Talk) -> Any:
        answer = None
        try:
            while True:
                step = talk.send(answer)
                if isinstance(step, Wait):
                    time.sleep(step.seconds)
                answer = None if isinstance(step, Wait) else self._send(step)
        except StopIteration as done:
            return done.value

    def _send(self, ask: Ask) -> Answer:
        try:
            return _answer(self._http.request(**self._request(ask)))
        except _httpx().TransportError:
            return NOTHING


class AsyncClient(_Asker):
    """The same, awaited."""

    def __init__(self, url: str = HERE, key: str = "", timeout: float = 60.0, tries: int = 5) -> None:
        super().__init__(url, key, tries)
        self._http = _httpx().AsyncClient(timeout=timeout)

    async def directions(self) -> list[tuple[str, str]]:
        return await self._run(self._known())

    async def translate(
        self, text: str, source: str | None = None, target: str | None = None,
        options: TranslateOptions | None = None, glossary: Glossary | None = None, details: bool = False,
    ) -> Translation:  # fmt: skip
        return (await self.translate_batch([text], source, target, options, glossary, details))[0]

    async def translate_batch(
        self, texts: Sequence[str], source: str | None = None, target: str | None = None,
        options: TranslateOptions | None = None, glossary: Glossary | None = None, details: bool = False,
    ) -> list[Translation]:  # fmt: skip
        return await self._run(self._batch(texts, fields(source, target, options, glossary), details))

    async def score(
        self, text: str, translation: str, source: str | None = None, target: str | None = None
    ) -> Translation:
        return (await self._run(self._score(text, translation, source, target)))[0]

    async def alternatives(
        self, text: str, prefix: str = "", count: int = 5, source: str | None = None, target: str | None = None
    ) -> list[Translation]:
        return await self._run(self._alternatives(text, prefix, count, source, target))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, talk: Talk) -> Any:
        answer = None
        try:
            while True:
                step = talk.send(answer)
                if isinstance(step, Wait):
                    await asyncio.sleep(step.seconds)
                answer = None if isinstance(step, Wait) else await self._send(step)
        except StopIteration as done:
            return done.value

    async def _send(self, ask: Ask) -> Answer:
        try:
            return _answer(await self._http.request(**self._request(ask)))
        except _httpx().TransportError:
            return NOTHING
