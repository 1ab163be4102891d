"""The pages and what they need, read from the package once: no path of a request ever reaches the file system."""

from collections.abc import Awaitable, Callable
from importlib.resources import files as package_files

from fastapi import APIRouter
from starlette.responses import Response

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_ATTENTION_MODULES = (
    *("start", "served", "attention", "controls", "head_view", "matrix_view", "model_view", "neuron_view"),
    *("numbers", "paint", "panels", "picture", "report", "state"),
)
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/attention": ("attention.html", "text/html; charset=utf-8"),
    "/attention.css": ("attention.css", "text/css; charset=utf-8"),
    **{f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8") for name in _ATTENTION_MODULES},
    "/documentation": ("documentation.html", "text/html; charset=utf-8"),
    "/documentation.js": ("documentation.js", "text/javascript; charset=utf-8"),
}
PAGE_ROUTES = frozenset(_FILES)
"""Where they are; none of them holds anything but what the package does."""


def page_router() -> APIRouter:
    """Return routes for the pages, each with its content in hand."""
    router = APIRouter(include_in_schema=False)
    for path, (name, kind) in _FILES.items():
        content = (package_files("transduce") / "web" / name).read_bytes()
        router.add_api_route(path, _giver(content, kind), methods=["GET"], name=name)
    return router


def _giver(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def give() -> Response:
        # Under no-referrer a form would be sent with the origin "null", which the gate refuses.
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache", "Referrer-Policy": "same-origin"}
        return Response(content, media_type=kind, headers=headers)

    return give
