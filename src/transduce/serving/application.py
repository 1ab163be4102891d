"""The ASGI application: all routes behind the gate, error handlers, and the OpenAPI description."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from transduce.serving import files, generation, libretranslate, native
from transduce.serving.bodies import JsonAnswer, error_answer
from transduce.serving.gate import Gate
from transduce.serving.pages import page_router
from transduce.serving.refusal import Refusal
from transduce.serving.schemas import REFUSALS, HealthBody
from transduce.serving.service import Service
from transduce.version import __version__

_METRICS = "text/plain; version=0.0.4; charset=utf-8"


def make_application(service: Service) -> ASGIApp:
    """Return the routes behind the gate; start the service before the first request."""
    app = make_routes(service)
    gated: ASGIApp = Gate(app, service)
    if service.config.allowed_origin:
        # CORS wraps the gate, so that a page of an allowed origin can read the gate's errors too.
        gated = CORSMiddleware(
            gated,
            allow_origins=list(service.config.allowed_origin),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-ID"],
            expose_headers=["Retry-After", "X-Request-ID"],
        )
    return gated


def make_routes(service: Service) -> FastAPI:
    """Return the routes without the gate."""
    app = FastAPI(
        title="transduce",
        version=__version__,
        description="Translation with models trained by `transduce train`: LibreTranslate's API, and a native one.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.service = service
    app.include_router(libretranslate.router)
    app.include_router(files.router)
    app.include_router(native.router)
    app.include_router(generation.router)
    app.include_router(page_router())
    _add_operations(app, service)
    _add_error_handlers(app)
    _add_openapi(app, root_path=service.config.root_path)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    await app.state.service.stop()


def _add_operations(app: FastAPI, service: Service) -> None:
    @app.get("/health/live", response_model=HealthBody, tags=["operations"])
    async def live() -> JsonAnswer:
        """Report that the server process answers."""
        return JsonAnswer({"status": "ok"})

    @app.get("/health/ready", response_model=HealthBody, responses={503: REFUSALS[503]}, tags=["operations"])
    async def ready() -> JsonAnswer:
        """Report that the server can translate, by translating ahead of the queue."""
        await service.probe()
        return JsonAnswer({"status": "ok"})

    @app.get("/metrics", response_class=Response, tags=["operations"], responses={200: {"content": {_METRICS: {}}}})
    async def metrics() -> Response:
        """Return metrics in Prometheus's text format, without personal data."""
        return Response(service.metrics.render(), headers={"Content-Type": _METRICS})


def _add_openapi(app: FastAPI, *, root_path: str) -> None:
    content = JsonAnswer(openapi_description(app, root_path=root_path)).body  # once: it takes half a second

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        """Describe the API."""
        return Response(bytes(content), media_type="application/json")


def openapi_description(app: FastAPI, *, root_path: str) -> dict[str, Any]:
    """Return FastAPI's description, changed where we differ: 400 in place of 422, keys, and the proxy's path."""
    schema = dict(app.openapi())
    for operations in schema["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["security"] = [{"key": []}, {}]
    schema["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    schema["servers"] = [{"url": root_path or "/"}]
    return schema


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def refuse(request: Request, refusal: HTTPException) -> Response:
        return error_answer(refusal)

    @app.exception_handler(RequestValidationError)
    async def refuse_invalid(request: Request, fault: RequestValidationError) -> Response:
        first = fault.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:] if isinstance(part, str))
        message = first["msg"] if first["type"] != "json_invalid" else "Invalid JSON format"
        return error_answer(Refusal(400, f"Invalid request: {where}: {message}" if where else message))

    @app.exception_handler(Exception)
    async def report_failure(request: Request, fault: Exception) -> Response:
        # Starlette raises the exception again after this answer, and the gate logs it.
        return error_answer(Refusal(500, "The server failed on this request."))
