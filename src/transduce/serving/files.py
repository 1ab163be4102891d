"""LibreTranslate's routes for files: upload a file, and download its translation from the URL in the answer."""

from pathlib import PurePosixPath

from fastapi import APIRouter, Request
from starlette.responses import Response

from transduce.serving.bodies import JsonAnswer, language_field, read_upload
from transduce.serving.documents import fill_documents
from transduce.serving.refusal import Refusal
from transduce.serving.schemas import REFUSALS, TranslateFileAnswer, request_body
from transduce.serving.service import Service, while_connected

router = APIRouter(tags=["LibreTranslate's"])
KINDS = {
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".po": "po",
    ".tmx": "tmx",
    ".xlf": "xliff",
    ".xliff": "xliff",
    ".html": "html",
    ".htm": "html",
}
"""Document formats by file ending, a copy of `documents.filling.FORMATS`, which would load torch into this process."""
_BYTES_FOR_DETECTION = 5000
_UPLOAD_BODY = request_body(
    {
        "file": {"type": "string", "format": "binary", "description": f"One of {', '.join(KINDS)}."},
        "source": {"type": "string", "description": "Source language code, or auto."},
        "target": {"type": "string", "description": "Target language code."},
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
    if ending not in KINDS:
        raise Refusal(400, "Invalid request: file format not supported")
    if source == "auto":  # without `target` among the candidates: a half-translated document holds both languages
        beginning = content[:_BYTES_FOR_DETECTION].decode("utf-8", "replace")
        source = service.languages.likeliest_source(beginning, target=target) or target
    model = service.languages.model(source, target)
    limit = service.config.file_character_limit
    work = fill_documents(service, [content], kind=KINDS[ending], model=model, character_limit=limit)
    (document,) = await while_connected(request, work)
    language = service.dispatcher.models[model]["target"] or "translated"
    download_name = service.finished_files.add(document.content, shown_name=f"{language}{ending}")
    url = str(request.url_for("download_file", name=download_name))
    return JsonAnswer(
        {"translatedFileUrl": url, "filled": document.filled, "kept": document.kept, "left": document.left}
    )


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
