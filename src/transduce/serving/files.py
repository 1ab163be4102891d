"""LibreTranslate's routes for files: upload a file, and download its translation from the URL in the answer."""

from pathlib import PurePosixPath
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from transduce.documents.kinds import BYTES_TO_LOOK_AT, FORMAT_OF_ENDING, refuse_other_kinds
from transduce.errors import DataError
from transduce.serving.bodies import JsonAnswer, language_field, read_upload
from transduce.serving.documents import FillingRequest, fill_documents
from transduce.serving.refusal import Refusal
from transduce.serving.schemas import REFUSALS, TranslateFileAnswer, request_body
from transduce.serving.service import Service, while_connected

router = APIRouter(tags=["LibreTranslate's"])
_BYTES_FOR_DETECTION = 5000
_UPLOAD_BODY = request_body(
    {
        "file": {"type": "string", "format": "binary", "description": f"One of {', '.join(FORMAT_OF_ENDING)}."},
        "source": {"type": "string", "description": "Source language code, or auto."},
        "target": {"type": "string", "description": "Target language code."},
        "leave_below": {
            "type": "number",
            "description": "Leave texts untranslated whose confidence is below this, from 0 to 1.",
        },
        "keep_placeholders": {"type": "string", "enum": ["enforce", "report", "off"]},
        "api_key": {"type": "string"},
    },
    required=["file", "source", "target"],
    media_types=("multipart/form-data",),
)


@router.post("/translate_file", responses=REFUSALS, response_model=TranslateFileAnswer, openapi_extra=_UPLOAD_BODY)
async def translate_file(request: Request) -> JsonAnswer:
    """Translate the untranslated texts of a document, and change nothing else."""
    service: Service = request.app.state.service
    fields, name, content = await read_upload(request)
    source, target = language_field(fields, "source"), language_field(fields, "target")
    ending = PurePosixPath(name).suffix.lower()
    kind = FORMAT_OF_ENDING.get(ending)
    try:
        refuse_other_kinds(PurePosixPath(name), content[:BYTES_TO_LOOK_AT], format_name=kind)
    except DataError as fault:
        raise Refusal(400, f"Invalid request: file format not supported: {fault}") from None
    if kind is None:
        raise Refusal(400, f"Invalid request: file format not supported; choose one of {', '.join(FORMAT_OF_ENDING)}")
    if source == "auto" and kind == "docx":
        raise Refusal(400, "Invalid request: the source language of a packed document cannot be detected; name it")
    if source == "auto":  # without `target` among the candidates: a half-translated document holds both languages
        beginning = content[:_BYTES_FOR_DETECTION].decode("utf-8", "replace")
        source = service.languages.likeliest_source(beginning, target=target) or target
    model = service.languages.model(source, target)
    asked = FillingRequest(
        kind,
        model,
        service.config.file_character_limit,
        leave_below=_leave_below(fields, is_calibrated=service.models[model]["is_calibrated"]),
        keep_placeholders=_keep_placeholders(fields),
    )
    (document,) = await while_connected(request, fill_documents(service, [content], asked))
    language = service.models[model]["target"] or "translated"
    download_name = service.finished_files.add(document.content, shown_name=f"{language}{ending}")
    url = str(request.url_for("download_file", name=download_name))
    counts = {name: getattr(document, name) for name in ("filled", "unsure", "kept", "left", "reasons")}
    pivot = service.models[model]["pivot"]
    return JsonAnswer({"translatedFileUrl": url, **counts, **({"pivot": pivot} if pivot else {})})


def _leave_below(fields: dict[str, Any], *, is_calibrated: bool) -> float:
    given = fields.get("leave_below") or "0"
    try:
        value = float(given)
    except (TypeError, ValueError):
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise Refusal(400, "Invalid request: leave_below must be a number from 0 to 1")
    if value and not is_calibrated:
        raise Refusal(400, "Invalid request: leave_below needs a model with a calibration, and this one has none")
    return value


def _keep_placeholders(fields: dict[str, Any]) -> str | None:
    given = fields.get("keep_placeholders") or None
    if given not in (None, "enforce", "report", "off"):
        raise Refusal(400, "Invalid request: keep_placeholders must be enforce, report or off")
    return given


@router.get(
    "/download_file/{name}",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}, 404: REFUSALS[404]},
)
async def download_file(request: Request, name: str) -> Response:
    """Return a translated file. Its name is a secret that replaces a key; it is deleted after half an hour."""
    service: Service = request.app.state.service
    file = service.finished_files.get(name)
    if file is None:
        raise Refusal(404, "There is no such file, or it has been deleted: translate it again.")
    return Response(
        file.content,
        media_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{file.shown_name}"'},
    )
