"""The server put together: routes, the gate around them, and what happens when it starts and stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from sixfold import __version__
from sixfold.errors import ModelFileError, SixfoldError
from sixfold.serving.admission import Desk
from sixfold.serving.api import make_api
from sixfold.serving.api_keys import Keys, Limits
from sixfold.serving.docs_page import interface_page
from sixfold.serving.downloads import Files
from sixfold.serving.explore_model import make_inside
from sixfold.serving.explorer_routes import make_explore
from sixfold.serving.libretranslate import make_libre
from sixfold.serving.metrics import Metrics
from sixfold.serving.middleware import Gate, Log, log_line
from sixfold.serving.models import Models
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import Json, Refusal
from sixfold.serving.service import Service
from sixfold.serving.static_files import make_site


def make_app(options: ServeOptions, models: Models, log: Log = log_line) -> ASGIApp:
    """An ASGI application; it closes the models when it stops."""
    keys = Keys.read(Path(options.api_key_file)) if options.api_key_file else None
    metrics = Metrics()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        service = Service(models, options, metrics)
        desk = Desk(service, options, Limits(options.requests_per_minute, options.concurrent), keys)
        add_own_routes(app, desk, metrics)
        app.include_router(make_api(desk))
        app.include_router(make_libre(desk, Files()))
        app.include_router(make_explore(desk))
        app.include_router(make_inside(desk))
        app.include_router(make_site())
        watch = asyncio.create_task(keep_fresh(models, options.reload, log))
        log({"event": "ready", "directions": models.directions})
        yield
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        await service.close()
        log({"event": "stopped"})

    app = FastAPI(
        title="Sixfold", version=__version__, lifespan=life, docs_url=None, redoc_url=None,
        openapi_url="/openapi.json", default_response_class=Json, redirect_slashes=False,
    )  # fmt: skip
    add_handlers(app)
    whole: ASGIApp = Gate(app, options, metrics, log)
    if options.cors:
        whole = CORSMiddleware(whole, options.cors, allow_methods=["GET", "POST"], allow_headers=["*"])
    return whole


def add_own_routes(app: FastAPI, desk: Desk, metrics: Metrics) -> None:
    """About the server itself."""

    @app.get("/metrics", include_in_schema=False)
    async def measured() -> Response:
        metrics.levels = desk.service.levels()
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/ready", include_in_schema=False)
    async def ready() -> Response:
        if desk.service.batcher.waiting > 0.9 * desk.options.queue:
            raise Refusal(503, "busy", retry_after=2)
        return Json({"status": "ready"})

    @app.get("/docs", include_in_schema=False)
    async def documented() -> Response:
        return Response(interface_page(app.openapi()), media_type="text/html")


def add_handlers(app: FastAPI) -> None:
    """Every mistake has an answer of one shape."""

    async def refused(_: Request, error: Refusal) -> Response:
        return error.response()

    async def mistaken(_: Request, error: SixfoldError) -> Response:
        return Refusal(400, str(error), error.hint).response()

    async def unreadable(_: Request, __: ModelFileError) -> Response:
        # Not the client's mistake, and the name of the file is not theirs to know. The log of the reload has it.
        return Refusal(503, "the model's file was changed while it was in use", retry_after=5).response()

    async def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:]) or "body"
        return Refusal(422, f"{where}: {first['msg']}").response()

    async def other(_: Request, error: HTTPException) -> Response:
        answer = Refusal(error.status_code, str(error.detail)).response()
        answer.headers.update(error.headers or {})
        return answer

    async def failed(_: Request, __: Exception) -> Response:
        return Refusal(500, "The server encountered an internal error").response()

    handlers: dict[type[Exception], Callable[..., Awaitable[Response]]] = {
        Refusal: refused, SixfoldError: mistaken, ModelFileError: unreadable, RequestValidationError: invalid,
        HTTPException: other, Exception: failed,
    }  # fmt: skip
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


async def keep_fresh(models: Models, seconds: float, log: Log) -> None:
    """Look at the model files now and then, in a thread, as opening one takes a while."""
    while seconds:
        await asyncio.sleep(seconds)
        if happened := await asyncio.to_thread(models.refresh):
            log({"event": "model", "message": happened})
