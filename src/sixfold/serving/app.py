"""The ASGI application: routes, middleware, error handlers, and what happens when the server starts and stops."""

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
from sixfold.serving.addresses import route_path
from sixfold.serving.admission import Admission, RateLimits
from sixfold.serving.api import api_router
from sixfold.serving.api_keys import ApiKeys
from sixfold.serving.authorization import Authorization
from sixfold.serving.docs_page import docs_page
from sixfold.serving.downloads import Downloads
from sixfold.serving.explorer_routes import explorer_router
from sixfold.serving.generate_routes import generate_router
from sixfold.serving.libretranslate import libretranslate_router
from sixfold.serving.metrics import Metrics
from sixfold.serving.middleware import Log, RequestMiddleware, log_line
from sixfold.serving.models import ReloadingModels
from sixfold.serving.openai_routes import openai_router
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import CHANGED_MODEL, HttpError, JsonResponse, is_openai
from sixfold.serving.service import Service
from sixfold.serving.static_files import static_router
from sixfold.serving.writing import Ending, WritingService

EXPOSED_HEADERS = ["Content-Disposition", "Retry-After", "X-Request-Id"]  # that pages of other origins may read


def make_app(
    options: ServeOptions, models: ReloadingModels, log: Log = log_line, ending: Ending | None = None
) -> ASGIApp:
    """Return the ASGI application. It closes the models when it stops; `ending` tells it before."""
    keys = ApiKeys(Path(options.api_key_file)) if options.api_key_file else None
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = Service(models, options, metrics)
        writing = WritingService(models, options, metrics, ending)
        limits = RateLimits(options.requests_per_minute, options.concurrent)
        admission = Admission(service, options, limits, needs_key=keys is not None)
        add_server_routes(app, admission, writing, metrics)
        app.include_router(api_router(admission))
        app.include_router(libretranslate_router(admission, Downloads()))
        app.include_router(explorer_router(admission))
        app.include_router(generate_router(admission, writing))
        app.include_router(openai_router(admission, writing))
        app.include_router(static_router())
        refreshers: dict[str, Callable[[], str | None]] = {"model": models.refresh}
        if keys is not None:
            refreshers["keys"] = keys.refresh
        reloading = [
            asyncio.create_task(refresh_repeatedly(refresh, options.reload, log, event))
            for event, refresh in refreshers.items()
        ]
        log({"event": "ready", "directions": models.directions, "writing": models.generator_names})
        yield
        for task in reloading:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await writing.close()
        await service.close()
        log({"event": "stopped"})

    app = FastAPI(
        title="Sixfold", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url=None, default_response_class=JsonResponse, redirect_slashes=False,
    )  # fmt: skip
    add_error_handlers(app)
    wrapped: ASGIApp = RequestMiddleware(Authorization(app, keys), options, metrics, log)
    if options.cors:
        # It is outermost, so that errors have its headers too, and a browser's preflight needs no key.
        wrapped = CORSMiddleware(
            wrapped, options.cors, allow_methods=["GET", "POST"], allow_headers=["*"], expose_headers=EXPOSED_HEADERS
        )
    return wrapped


def add_server_routes(app: FastAPI, admission: Admission, writing: WritingService, metrics: Metrics) -> None:
    """Add the routes about the server itself: /metrics, /ready, and its interface at /docs, /openapi.json and /spec."""

    @app.get("/metrics", include_in_schema=False)
    async def show_metrics() -> Response:
        metrics.gauges = admission.service.gauges() | writing.gauges()
        return PlainTextResponse(metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/ready", include_in_schema=False)
    async def ready() -> Response:
        if admission.service.queue.sentences > 0.9 * admission.options.queue:
            raise HttpError(503, "busy", retry_after=2)
        return JsonResponse({"status": "ready"})

    @app.get("/docs", include_in_schema=False)
    async def show_docs(request: Request) -> Response:
        return Response(docs_page(app.openapi(), request.scope.get("root_path", "")), media_type="text/html")

    @app.get("/openapi.json", include_in_schema=False)
    @app.get("/spec", include_in_schema=False)  # LibreTranslate's address
    async def show_openapi(request: Request) -> Response:
        prefix = request.scope.get("root_path", "")
        return JsonResponse(app.openapi() | ({"servers": [{"url": prefix}]} if prefix else {}))


def add_error_handlers(app: FastAPI) -> None:
    """Turn every exception into a JSON response of the same shape."""

    async def http_error(request: Request, error: HttpError) -> Response:
        return error.response(route_path(request.scope))

    async def user_mistake(request: Request, error: SixfoldError) -> Response:
        return await http_error(request, HttpError(400, str(error), error.hint))

    async def unreadable_model(request: Request, _: ModelFileError) -> Response:
        # This is not the client's mistake, and the client need not know the file name. The log has it.
        return await http_error(request, HttpError(503, CHANGED_MODEL, retry_after=5))

    async def invalid_field(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            reason = first.get("ctx", {}).get("error", "")
            return await http_error(request, HttpError(400, f"the body is not valid JSON: {reason}".rstrip(": ")))
        field = ".".join(str(part) for part in first["loc"][1:]) or "body"
        status = 400 if is_openai(route_path(request.scope)) else 422
        return await http_error(request, HttpError(status, f"{field}: {first['msg']}"))

    async def framework_error(request: Request, error: HTTPException) -> Response:
        response = await http_error(request, HttpError(error.status_code, str(error.detail)))
        response.headers.update(error.headers or {})
        if response.headers.get("allow") == "GET":
            response.headers["allow"] = "GET, HEAD"
        return response

    async def server_bug(request: Request, _: Exception) -> Response:
        return await http_error(request, HttpError(500, "The server encountered an internal error"))

    handlers: dict[type[Exception], Callable[..., Awaitable[Response]]] = {
        HttpError: http_error, SixfoldError: user_mistake, ModelFileError: unreadable_model,
        RequestValidationError: invalid_field, HTTPException: framework_error, Exception: server_bug,
    }  # fmt: skip
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)


async def refresh_repeatedly(refresh: Callable[[], str | None], seconds: float, log: Log, event: str) -> None:
    """Call `refresh` every `seconds`, in a thread because it may take a while, and log its message. 0 means never."""
    while seconds:
        await asyncio.sleep(seconds)
        if message := await asyncio.to_thread(refresh):
            log({"event": event, "message": message})
