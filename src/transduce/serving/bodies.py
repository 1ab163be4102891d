"""Bodies of requests (JSON, forms, uploads) and of answers (JSON)."""

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


class JsonAnswer(JSONResponse):
    """A JSON response in UTF-8; a lone surrogate, which UTF-8 cannot encode, becomes "?"."""

    def render(self, content: Any) -> bytes:  # noqa: ANN401 - any JSON value
        """Return the body."""
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def error_answer(refusal: HTTPException) -> JsonAnswer:
    """Return the response for an error: `{"error": message}`, as LibreTranslate does."""
    return JsonAnswer({"error": refusal.detail}, status_code=refusal.status_code, headers=refusal.headers)


def replace_lone_surrogates(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate, which an escape in JSON can produce."""
    return _SURROGATE.sub("\ufffd", text)


async def read_fields(request: Request, *, most_files: int = 0) -> dict[str, Any]:
    """Return the fields of a JSON body, of a form and the query, or of the query; a repeated form field is a list.

    A form may hold up to `most_files` files, which are ignored.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _FORMS:
        async with _form(request, most_files=most_files) as form:
            return _text_fields(request, form)
    if kind != "application/json":
        return dict(request.query_params)
    try:
        content = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise Refusal(400, "Invalid JSON format") from None
    if not isinstance(content, dict):
        raise Refusal(400, "Invalid JSON format")
    return content


async def read_upload(request: Request) -> tuple[dict[str, Any], str, bytes]:
    """Return the fields of a form, and the name and content of its file."""
    async with _form(request, most_files=1) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise Refusal(400, "Invalid request: missing file parameter")
        return _text_fields(request, form), file.filename, await file.read()


@asynccontextmanager
async def _form(request: Request, *, most_files: int) -> AsyncIterator[FormData]:
    try:
        form = await request.form(max_files=most_files, max_fields=_MOST_FIELDS)
    except (MultiPartException, HTTPException):
        raise Refusal(400, "Invalid form data") from None
    try:
        yield form
    finally:
        await form.close()


def _text_fields(request: Request, form: FormData) -> dict[str, Any]:
    texts = {name: [value for value in form.getlist(name) if isinstance(value, str)] for name in form}
    fields = {name: values[0] if len(values) == 1 else values for name, values in texts.items() if values}
    return {**request.query_params, **fields}


def language_field(fields: dict[str, Any], name: str) -> str:
    """Return the language code in a field; refuse a missing one with LibreTranslate's error message."""
    value = fields.get(name)
    if not value:
        raise Refusal(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise Refusal(400, f"Invalid request: {name} must be a language code")
    return value
