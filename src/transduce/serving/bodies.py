"""Bodies of requests and answers: JSON or forms in, JSON out."""

import json
import re
from typing import Any

from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import JSONResponse

from transduce.serving.refusal import Refusal

_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_FIELDS = 256


class Json(JSONResponse):
    """JSON as UTF-8 whatever the text: half of a surrogate pair, which UTF-8 has no form for, becomes "?"."""

    def render(self, content: Any) -> bytes:  # noqa: ANN401 - whatever JSON can say
        """Return the body."""
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def refusal_response(refusal: HTTPException) -> Json:
    """Return a refusal as every client of ours reads it."""
    return Json({"error": refusal.detail}, status_code=refusal.status_code, headers=refusal.headers)


def whole_characters(text: str) -> str:
    """Return a text with U+FFFD for every half of a surrogate pair, which JSON can bring in."""
    return _SURROGATE.sub("\ufffd", text)


async def fields_of(request: Request) -> dict[str, Any]:
    """Return the fields of a body that is JSON or a form, and of the query; a repeated field is a list."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _FORMS:
        return _joined(request) | await _form_fields(request)
    body = await request.body()
    if kind != "application/json":
        return _joined(request)
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "Invalid JSON format") from None
    if not isinstance(content, dict):
        raise Refusal(400, "Invalid JSON format")
    return content


async def _form_fields(request: Request) -> dict[str, Any]:
    try:
        async with request.form(max_files=0, max_fields=_MOST_FIELDS) as form:
            values = {name: [value for value in form.getlist(name) if isinstance(value, str)] for name in form}
    except (MultiPartException, HTTPException):
        raise Refusal(400, "Invalid form data") from None
    return {name: own[0] if len(own) == 1 else own for name, own in values.items()}


def _joined(request: Request) -> dict[str, Any]:
    return dict(request.query_params)
