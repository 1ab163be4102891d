"""The application: all routes behind the gate, one form for every error, and OpenAPI without a network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from transduce.serving import files, libretranslate, native
from transduce.serving.bodies import Json, refusal_response
from transduce.serving.gate import Gate
from transduce.serving.pages import page_router
from transduce.serving.refusal import Refusal
from transduce.serving.schemas import REFUSALS, HealthBody
from transduce.serving.service import Service
from transduce.version import __version__

_METRICS = "text/plain; version=0.0.4; charset=utf-8"


def make_application(service: Service) -> ASGIApp:
    """Return the whole server as an ASGI application; the service must have been started."""
    app = make_routes(service)
    gated: ASGIApp = Gate(app, service)
    if service.config.allowed_origin:
        # Around the gate, so that a page of an allowed origin can read refusals too.
        gated = CORSMiddleware(
            gated,
            allow_origins=list(service.config.allowed_origin),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-ID"],
            expose_headers=["Retry-After", "X-Request-ID"],
        )
    return gated


def make_routes(service: Service) -> FastAPI:
    """Return the routes alone, without the gate."""
    app = FastAPI(
        title="transduce",
        version=__version__,
        description="Translation by models that `transduce train` made: LibreTranslate's API, and a native one.",
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
    app.include_router(page_router())
    _add_operations(app, service)
    _add_errors(app)
    _add_description(app, root_path=service.config.root_path)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    await app.state.service.stop()


def _add_operations(app: FastAPI, service: Service) -> None:
    @app.get("/health/live", response_model=HealthBody, tags=["operations"])
    async def live() -> Json:
        """Tell that the server answers."""
        return Json({"status": "ok"})

    @app.get("/health/ready", response_model=HealthBody, responses={503: REFUSALS[503]}, tags=["operations"])
    async def ready() -> Json:
        """Translate for real, ahead of everybody who waits, and tell whether that went well."""
        await service.probe()
        return Json({"status": "ok"})

    @app.get("/metrics", response_class=Response, tags=["operations"], responses={200: {"content": {_METRICS: {}}}})
    async def metrics() -> Response:
        """Give figures for Prometheus; none of them is about a person."""
        return Response(service.metrics.render(), headers={"Content-Type": _METRICS})


def _add_description(app: FastAPI, *, root_path: str) -> None:
    description = Json(described(app, root_path=root_path)).body  # made once: it takes half a second

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        """Describe the API."""
        return Response(bytes(description), media_type="application/json")


def described(app: FastAPI, *, root_path: str) -> dict[str, Any]:
    """Return the API as OpenAPI: FastAPI's, but that what it would answer with 422 we answer with 400."""
    schema = dict(app.openapi())
    for operations in schema["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            operation["security"] = [{"key": []}, {}]
    schema["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    schema["servers"] = [{"url": root_path or "/"}]
    return schema


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def refused(request: Request, refusal: HTTPException) -> Response:
        return refusal_response(refusal)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, fault: RequestValidationError) -> Response:
        first = fault.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:] if isinstance(part, str))
        message = first["msg"] if first["type"] != "json_invalid" else "Invalid JSON format"
        return refusal_response(Refusal(400, f"Invalid request: {where}: {message}" if where else message))

    @app.exception_handler(Exception)
    async def broken(request: Request, fault: Exception) -> Response:
        # Starlette raises the fault again after this answer, and the gate logs it.
        return refusal_response(Refusal(500, "This request met a fault of the server."))
