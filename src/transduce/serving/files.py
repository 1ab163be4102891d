"""LibreTranslate's routes for files: one is uploaded, filled in, and fetched at the address that the answer gives."""

from pathlib import PurePosixPath
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from transduce.serving.bodies import Json, upload_of
from transduce.serving.documents import fill_documents
from transduce.serving.refusal import Refusal
from transduce.serving.schemas import REFUSALS, TranslateFileAnswer
from transduce.serving.service import Service, unless_client_goes

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
"""By ending. It is that of `documents.filling.FORMATS`, which would load torch into this process."""
_DETECTED = 5000  # characters
_UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": f"One of {', '.join(KINDS)}."},
                        "source": {"type": "string", "description": "Source language code, or auto."},
                        "target": {"type": "string", "description": "Target language code."},
                        "api_key": {"type": "string"},
                    },
                    "required": ["file", "source", "target"],
                }
            }
        },
    }
}


@router.post("/translate_file", responses=REFUSALS, response_model=TranslateFileAnswer, openapi_extra=_UPLOAD)
async def translate_file(request: Request) -> Json:
    """Fill in a document: what has no translation gets one, and nothing else changes."""
    service: Service = request.app.state.service
    fields, name, content = await upload_of(request)
    for wanted in ("source", "target"):
        if not isinstance(fields.get(wanted), str) or not fields[wanted]:
            raise Refusal(400, f"Invalid request: missing {wanted} parameter")
    ending = PurePosixPath(name).suffix.lower()
    if ending not in KINDS:
        raise Refusal(400, "Invalid request: file format not supported")
    model = _model_for(service, content, source=fields["source"], target=fields["target"])
    (filled,) = await unless_client_goes(
        request,
        fill_documents(
            service,
            [content],
            kind=KINDS[ending],
            model=model,
            character_limit=service.config.file_character_limit,
        ),
    )
    target = service.dispatcher.models[model]["target"] or "translated"
    kept = service.finished_files.add(filled.content, shown_name=f"{target}{ending}")
    answer: dict[str, Any] = {"translatedFileUrl": str(request.url_for("download_file", name=kept))}
    return Json({**answer, "filled": filled.filled, "kept": filled.kept, "left": filled.left})


def _model_for(service: Service, content: bytes, *, source: str, target: str) -> str:
    languages = service.languages
    fitting = [code for code in languages.sources if target in languages.targets(code)]
    if source == "auto" and fitting:  # a document holds both languages: only what can be translated from is looked for
        ranked = languages.detect(content[:_DETECTED].decode("utf-8", "replace"))
        source = next(own.language for own in ranked if own.language in fitting)
    return languages.model(target if source == "auto" else source, target)


@router.get(
    "/download_file/{name}",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}}, 404: REFUSALS[404]},
)
async def download_file(request: Request, name: str) -> Response:
    """Give a file that was translated; its name is its key, and it is forgotten after half an hour."""
    service: Service = request.app.state.service
    file = service.finished_files.get(name)
    if file is None:
        raise Refusal(404, "There is no such file, or no longer: translate it again.")
    return Response(
        file.content,
        media_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{file.shown_name}"'},
    )
