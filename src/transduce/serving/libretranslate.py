"""LibreTranslate's API, so that its clients work unmodified: paths, fields, answers and errors are its own.

`files` has its routes for files. Departures: no request is without limits, a confidence is the detector's own
probability, and an answer in HTML tells which stretches were left because their tags would not have come back whole.
"""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request

from transduce.serving.bodies import Json, fields_of, whole_characters
from transduce.serving.documents import fill_documents
from transduce.serving.files import KINDS
from transduce.serving.languages import Detection, Languages
from transduce.serving.refusal import Refusal
from transduce.serving.schemas import (
    REFUSALS,
    DetectionBody,
    HealthBody,
    LanguageBody,
    LibreTranslateAnswer,
    form_or_json,
)
from transduce.serving.service import Service, unless_client_goes
from transduce.text.language_names import language_name

router = APIRouter(tags=["LibreTranslate's"])
_TAG = re.compile(r"<[^<>]*>")
_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_TRANSLATE_BODY = form_or_json(
    {
        "q": {**_TEXTS, "description": "Text, or several."},
        "source": {"type": "string", "description": "Source language code, or auto."},
        "target": {"type": "string", "description": "Target language code."},
        "format": {"type": "string", "enum": ["text", "html"]},
        "alternatives": {"type": "integer", "minimum": 0, "description": "How many other translations to give."},
        "api_key": {"type": "string"},
    },
    required=["q", "source", "target"],
)


@router.post("/translate", responses=REFUSALS, response_model=LibreTranslateAnswer, openapi_extra=_TRANSLATE_BODY)
async def translate(request: Request) -> Json:
    """Translate a text or a list of texts."""
    service: Service = request.app.state.service
    fields = await fields_of(request)
    return Json(await unless_client_goes(request, _translated(service, fields)))


async def _translated(service: Service, fields: dict[str, Any]) -> dict[str, Any]:
    texts = _texts_of(fields)
    source, target = _required(fields, "source"), _required(fields, "target")
    service.check_texts(texts)
    if fields.get("format") not in (None, "", "text", "html"):
        raise Refusal(400, f"{fields['format']} format is not supported")
    is_html = fields.get("format") == "html"
    count = _alternatives_of(fields, limit=service.config.alternative_limit)
    languages = service.languages
    plain = [_TAG.sub(" ", text) for text in texts] if is_html else texts
    detected = languages.detect_source(plain, target) if source == "auto" else [Detection(source, 100.0)] * len(texts)
    outputs = [_Output([text]) for text in texts]
    for model, places in _places_of(languages, detected, target=target).items():
        own = [texts[place] for place in places]
        found = await (_from_html(service, own, model) if is_html else _from_text(service, own, model, count=count))
        for place, output in zip(places, found, strict=True):
            outputs[place] = output
    answer: dict[str, Any] = {"translatedText": [own.texts[0] for own in outputs]}
    if source == "auto":
        answer["detectedLanguage"] = [{"confidence": own.confidence, "language": own.language} for own in detected]
    if count:
        answer["alternatives"] = [own.texts[1:] for own in outputs]  # none in HTML, as at LibreTranslate
    if any(own.left for own in outputs):
        answer["left"] = [own.left for own in outputs]
    return answer if isinstance(fields["q"], list) else {name: values[0] for name, values in answer.items()}


@dataclass(frozen=True)
class _Output:
    """What became of one text: the best output and others, and what of it was left."""

    texts: list[str]
    left: list[dict[str, str]] = field(default_factory=list)


def _places_of(languages: Languages, detected: Sequence[Detection], *, target: str) -> dict[str, list[int]]:
    """Return which texts go to which model; what is in the target language already goes to none."""
    places: dict[str, list[int]] = {}
    for place, own in enumerate(detected):
        if own.language != target or (own.language, target) in languages.pairs:
            places.setdefault(languages.model(own.language, target), []).append(place)
        elif target not in languages.all:
            raise Refusal(400, f"{target} is not supported")
    return places


async def _from_text(service: Service, texts: Sequence[str], model: str, *, count: int) -> list[_Output]:
    beam = service.dispatcher.models[model]["beam"]
    options = {"alternatives": count + 1, "beam": max(beam, count + 1)}
    found = await service.translate(texts, model=model, options=options)
    for translation in found:
        if translation["refusal"]:
            raise Refusal(400, f"Cannot translate text: {translation['refusal']}")
    return [_Output([own["text"] for own in translation["alternatives"]]) for translation in found]


async def _from_html(service: Service, texts: Sequence[str], model: str) -> list[_Output]:
    # The byte order mark says UTF-8, whatever a meta element in the text may say of the page it was cut out of.
    contents = [codecs.BOM_UTF8 + text.encode("utf-8") for text in texts]
    filled = await fill_documents(
        service, contents, kind="html", model=model, character_limit=service.config.character_limit
    )
    return [_Output([own.content.removeprefix(codecs.BOM_UTF8).decode("utf-8")], own.left) for own in filled]


@router.post(
    "/detect",
    responses=REFUSALS,
    response_model=list[DetectionBody],
    openapi_extra=form_or_json({"q": {"type": "string"}, "api_key": {"type": "string"}}, required=["q"]),
)
async def detect(request: Request) -> Json:
    """Tell which of the languages served a text is in."""
    service: Service = request.app.state.service
    texts = _texts_of(await fields_of(request))
    service.check_texts(texts)
    found = service.languages.detect("\n".join(texts))
    return Json([{"confidence": own.confidence, "language": own.language} for own in found])


@router.get("/languages", response_model=list[LanguageBody], responses={503: REFUSALS[503]})
async def list_languages(request: Request) -> Json:
    """List the languages that can be translated from, each with what it can be translated to."""
    service: Service = request.app.state.service
    languages = service.languages
    return Json(
        [{"code": code, "name": language_name(code), "targets": languages.targets(code)} for code in languages.all]
    )


@router.get("/frontend/settings", response_model=dict[str, Any])
async def frontend_settings(request: Request) -> Json:
    """Tell what a page should know: limits, and whether a key is needed."""
    service: Service = request.app.state.service
    source, target = next(iter(service.languages.pairs))
    return Json(
        {
            "charLimit": service.config.character_limit,
            "frontendTimeout": 500,
            "apiKeys": service.keys.are_required,
            "keyRequired": service.keys.are_required,
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": list(KINDS),
            "language": {
                "source": {"code": source, "name": language_name(source)},
                "target": {"code": target, "name": language_name(target)},
            },
        }
    )


@router.get("/health", response_model=HealthBody, responses={503: REFUSALS[503]})
async def health(request: Request) -> Json:
    """Tell whether the server can translate, as LibreTranslate's does."""
    service: Service = request.app.state.service
    await service.probe()
    return Json({"status": "ok"})


def _texts_of(fields: dict[str, Any]) -> list[str]:
    given = fields.get("q")
    if not given:
        raise Refusal(400, "Invalid request: missing q parameter")
    texts = given if isinstance(given, list) else [given]
    if not all(isinstance(text, str) for text in texts):
        raise Refusal(400, "Invalid request: q must be a text or a list of texts")
    return [whole_characters(text) for text in texts]


def _required(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not value:
        raise Refusal(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise Refusal(400, f"Invalid request: {name} must be a language code")
    return value


def _alternatives_of(fields: dict[str, Any], *, limit: int) -> int:
    given = fields.get("alternatives") or 0
    try:
        count = int(given) if isinstance(given, int | str) else -1
    except ValueError:
        count = -1
    if count < 0:
        raise Refusal(400, "Invalid request: alternatives must be a whole number, 0 or more")
    if count + 1 > limit:
        raise Refusal(400, f"Invalid request: alternatives ({count}) exceeds limit ({limit - 1})")
    return count
