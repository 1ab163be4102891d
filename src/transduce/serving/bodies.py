"""Bodies of requests and answers: JSON or forms in, JSON out."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.datastructures import FormData, UploadFile
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


async def fields_of(request: Request, *, files: int = 0) -> dict[str, Any]:
    """Return the fields of a body that is JSON or a form, and of the query; a repeated field is a list.

    A form may bring `files`, which are passed over.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _FORMS:
        async with _form(request, files=files) as form:
            return _joined(request) | _texts_in(form)
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


async def upload_of(request: Request) -> tuple[dict[str, Any], str, bytes]:
    """Return the fields of a form, and the name and content of the file that it brings."""
    async with _form(request, files=1) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise Refusal(400, "Invalid request: missing file parameter")
        return _joined(request) | _texts_in(form), file.filename, await file.read()


@asynccontextmanager
async def _form(request: Request, *, files: int) -> AsyncIterator[FormData]:
    try:
        form = await request.form(max_files=files, max_fields=_MOST_FIELDS)
    except (MultiPartException, HTTPException):
        raise Refusal(400, "Invalid form data") from None
    try:
        yield form
    finally:
        await form.close()


def _texts_in(form: FormData) -> dict[str, Any]:
    values = {name: [value for value in form.getlist(name) if isinstance(value, str)] for name in form}
    return {name: own[0] if len(own) == 1 else own for name, own in values.items() if own}


def _joined(request: Request) -> dict[str, Any]:
    return dict(request.query_params)
