"""Routes of the web pages. Their files are read once at the start: no path of a request reaches the file system."""

from collections.abc import Awaitable, Callable
from importlib.resources import files as package_files

from fastapi import APIRouter
from starlette.responses import Response

from transduce.learning.page import served_learning_page

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_ATTENTION_MODULES = (
    *("start", "served", "sentences", "attention", "controls", "head_view", "matrix_view", "model_view", "neuron_view"),
    *("numbers", "paint", "panels", "picture", "report", "state", "strips"),
)
_LEARNING_MODULES = (
    *("learn", "learn_served", "learn_parts", "exercises", "algebra", "beam", "bleu"),
    *("step_attention", "step_real_head", "step_scale", "step_masks", "step_heads", "step_search", "step_bleu"),
)
_FILES = {
    "/": "index.html",
    "/attention": "attention.html",
    "/documentation": "documentation.html",
    **{f"/{name}": name for name in ("page.css", "page.js", "attention.css", "documentation.js", "learn.css")},
    **{f"/{name}.js": f"{name}.js" for name in (*_ATTENTION_MODULES, *_LEARNING_MODULES)},
}
_MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
_LEARN = "/learn"
PAGE_ROUTES = frozenset({*_FILES, _LEARN})
"""The paths of the pages. They need no key: the files of the package are public."""


def page_router() -> APIRouter:
    """Return a route for each file, with its content in memory."""
    router = APIRouter(include_in_schema=False)
    for path, name in _FILES.items():
        content = (package_files("transduce") / "web" / name).read_bytes()
        media_type = _MEDIA_TYPES[name.rpartition(".")[2]]
        router.add_api_route(path, _responder(content, media_type), methods=["GET"], name=name)
    learn = served_learning_page().encode("utf-8")
    router.add_api_route(_LEARN, _responder(learn, "text/html"), methods=["GET"], name="learn.html")
    return router


def _responder(content: bytes, media_type: str) -> Callable[[], Awaitable[Response]]:
    async def respond() -> Response:
        # With no-referrer a browser would send forms with the origin "null", which the gate refuses.
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache", "Referrer-Policy": "same-origin"}
        return Response(content, media_type=media_type, headers=headers)

    return respond
