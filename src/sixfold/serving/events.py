"""Server-sent events of texts and documents that are being translated, sentence by sentence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from typing import Any

from fastapi.responses import StreamingResponse

from sixfold.errors import ModelFileError, SixfoldError
from sixfold.serving.responses import CHANGED_MODEL, HttpError
from sixfold.serving.service import Caller, Service
from sixfold.serving.text_progress import TextProgress
from sixfold.translation.hops import end_route
from sixfold.translation.request import TranslationRequest

EVENT_SECONDS = 0.1  # between two events about the progress of a document
STREAM_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
KEEP_ALIVE_SECONDS = 15.0  # of silence, after which a comment is sent


def event(kind: str, values: dict[str, Any]) -> bytes:
    """Return a server-sent event with JSON data."""
    return f"event: {kind}\ndata: {json.dumps(values, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


def event_response(events: AsyncGenerator[bytes]) -> StreamingResponse:
    """Return a response that streams events; proxies are asked to pass them on at once."""
    body = with_keep_alive(with_error_event(events))
    return StreamingResponse(body, headers=STREAM_HEADERS, media_type="text/event-stream")


async def with_error_event(events: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the events; an error becomes a last event, because the status has already been sent.

    Like an error response it may have a hint and, if the server is busy, the seconds after which to try again.
    """
    try:
        async with aclosing(events):
            async for each in events:
                yield each
    except ModelFileError:  # its message has the name of the file, which the client need not know
        yield event("error", {"error": CHANGED_MODEL, "retry_after": 5})
    except (SixfoldError, HttpError) as error:
        retry_after = error.retry_after if isinstance(error, HttpError) else None
        values = {"error": str(error), "hint": error.hint, "retry_after": retry_after}
        yield event("error", {name: value for name, value in values.items() if value is not None})


async def with_keep_alive(events: AsyncGenerator[bytes], seconds: float = KEEP_ALIVE_SECONDS) -> AsyncGenerator[bytes]:
    """Yield the events, and a comment where none comes for a while, so that proxies do not end the connection."""
    async with aclosing(events):
        while True:
            pending = asyncio.ensure_future(anext(events, None))
            try:
                while not (await asyncio.wait([pending], timeout=seconds))[0]:
                    yield b": keep-alive\n\n"
            finally:
                if not pending.done():
                    pending.cancel()
                    await asyncio.gather(pending, return_exceptions=True)
            latest = pending.result()
            if latest is None:
                return
            yield latest


async def stream_texts(
    service: Service, texts: Sequence[str], request: TranslationRequest, client: str
) -> AsyncGenerator[bytes]:
    """Yield a `sentence` event for each sentence, a `translation` event for each text, and `done`.

    The texts come in their order. Through a pivot language, the whole translations come at the end, and the sentences
    of both hops are counted.
    """
    progress = TextProgress(len(texts))
    work = asyncio.ensure_future(service.translate(texts, request, Caller(client), progress))
    index = 0  # of the text whose events are sent
    try:
        async for _ in changes(work, progress):
            while index < len(texts) and (text := progress.texts[index]) is not None and text.batch.route is not None:
                for piece in text.new_pieces():
                    yield event("sentence", {"index": index, "text": piece, **progress.counts()})
                route = text.batch.route
                if work.done() and not work.exception():
                    translation = work.result()[index]
                elif text.is_done and len(route.hops) == 1:
                    translation = end_route(route, (await service.assemble([text]))[0], texts[index])
                else:
                    break
                yield event("translation", {"index": index, **translation.to_dict(request.details)})
                index += 1
        work.result()  # raises what went wrong
        yield event("done", {"count": len(texts)})
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def stream_document(work: Coroutine[Any, Any, dict[str, Any]], progress: TextProgress) -> AsyncGenerator[bytes]:
    """Yield `progress` events while a document is translated, and a `document` event with the result of `work`."""
    task = asyncio.ensure_future(work)
    try:
        async for _ in changes(task, progress):
            yield event("progress", progress.counts())
            await asyncio.wait([task], timeout=EVENT_SECONDS)
        yield event("document", task.result())
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def changes(work: asyncio.Future[Any], progress: TextProgress) -> AsyncGenerator[None]:
    """Yield whenever the progress has changed, and once more when the work is done."""
    while not work.done():
        changed: asyncio.Future[Any] = asyncio.ensure_future(progress.changed.wait())
        try:
            await asyncio.wait([work, changed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
        progress.changed.clear()
        yield
    yield
