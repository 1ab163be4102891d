"""LibreTranslate's API: the same paths, fields, answers and errors, so that its clients work unmodified.

Its routes for files are in `files`. Departures: every request has limits, a confidence is the detector's probability,
an answer lists the placeholders and numbers that a translation lacks, if there are any, and the language between, if
no model serves the pair, and the answer to an HTML text lists the passages left untranslated because their tags would
have been damaged.
"""

import codecs
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fastapi import APIRouter, Request

from transduce.documents.kinds import FORMAT_OF_ENDING
from transduce.serving.bodies import JsonAnswer, language_field, read_fields, replace_lone_surrogates
from transduce.serving.documents import FillingRequest, fill_documents
from transduce.serving.languages import Detection, ServedLanguages
from transduce.serving.refusal import Refusal
from transduce.serving.schemas import (
    REFUSALS,
    DetectionBody,
    HealthBody,
    LanguageBody,
    LibreTranslateAnswer,
    request_body,
)
from transduce.serving.service import Service, while_connected
from transduce.text.language_names import language_name

router = APIRouter(tags=["LibreTranslate's"])
_TAG = re.compile(r"<[^<>]*>")
_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_TRANSLATE_BODY = request_body(
    {
        "q": {**_TEXTS, "description": "A text, or a list of texts."},
        "source": {"type": "string", "description": "Source language code, or auto."},
        "target": {"type": "string", "description": "Target language code."},
        "format": {"type": "string", "enum": ["text", "html"]},
        "alternatives": {"type": "integer", "minimum": 0, "description": "Number of other translations to return."},
        "api_key": {"type": "string"},
    },
    required=["q", "source", "target"],
)


@router.post("/translate", responses=REFUSALS, response_model=LibreTranslateAnswer, openapi_extra=_TRANSLATE_BODY)
async def translate(request: Request) -> JsonAnswer:
    """Translate a text or a list of texts."""
    service: Service = request.app.state.service
    fields = await read_fields(request)
    return JsonAnswer(await while_connected(request, _translate(service, fields)))


async def _translate(service: Service, fields: dict[str, Any]) -> dict[str, Any]:
    texts = _texts_of(fields)
    source, target = language_field(fields, "source"), language_field(fields, "target")
    service.check_texts(texts)
    if fields.get("format") not in (None, "", "text", "html"):
        raise Refusal(400, f"{fields['format']} format is not supported")
    is_html = fields.get("format") == "html"
    count = _alternatives_of(fields, limit=service.config.alternative_limit)
    languages = service.languages
    if source == "auto":
        detected = languages.detect_source([_TAG.sub(" ", text) for text in texts] if is_html else texts, target)
    else:
        detected = [Detection(confidence=100.0, language=source)] * len(texts)
    translated = [_TranslatedText([text]) for text in texts]
    for model, numbers in _texts_by_model(languages, detected, target=target).items():
        own = [texts[number] for number in numbers]
        work = _translate_html(service, own, model) if is_html else _translate_plain(service, own, model, count)
        for number, text in zip(numbers, await work, strict=True):
            translated[number] = replace(text, pivot=service.models[model]["pivot"])
    answer: dict[str, Any] = {"translatedText": [text.outputs[0] for text in translated]}
    if source == "auto":
        answer["detectedLanguage"] = [asdict(detection) for detection in detected]
    if count:
        answer["alternatives"] = [text.outputs[1:] for text in translated]  # none for HTML, as in LibreTranslate
    if any(text.left for text in translated):
        answer["left"] = [text.left for text in translated]
    if any(text.missing for text in translated):
        answer["missing"] = [text.missing for text in translated]
    if any(text.pivot for text in translated):
        answer["pivot"] = [text.pivot for text in translated]
    return answer if isinstance(fields["q"], list) else {name: values[0] for name, values in answer.items()}


@dataclass(frozen=True)
class _TranslatedText:
    """The outputs for one text, the best first, and the passages left untranslated."""

    outputs: list[str]
    left: list[dict[str, str]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Placeholders, numbers and terms that the best output lacks."""
    pivot: str | None = None
    """The language between, if two models translated."""


def _texts_by_model(languages: ServedLanguages, detected: Sequence[Detection], *, target: str) -> dict[str, list[int]]:
    """Return the numbers of the texts that each model translates; a text in the target language needs none."""
    numbers: dict[str, list[int]] = {}
    for number, own in enumerate(detected):
        if own.language != target or (own.language, target) in languages.pairs:
            numbers.setdefault(languages.model(own.language, target), []).append(number)
        elif target not in languages.codes:
            raise Refusal(400, f"{target} is not supported")
    return numbers


async def _translate_plain(service: Service, texts: Sequence[str], model: str, count: int) -> list[_TranslatedText]:
    beam = service.models[model]["beam"]
    options = {"alternatives": count + 1, "beam": max(beam, count + 1)}
    found = await service.translate(texts, model=model, options=options)
    for translation in found:
        if translation["refusal"]:
            raise Refusal(400, f"Cannot translate text: {translation['refusal']}")
    return [
        _TranslatedText(
            [own["text"] for own in translation["alternatives"]],
            missing=[*translation["missing"], *translation["missing_numbers"]],
        )
        for translation in found
    ]


async def _translate_html(service: Service, texts: Sequence[str], model: str) -> list[_TranslatedText]:
    # The byte order mark marks UTF-8 and overrides a meta element that names another encoding.
    contents = [codecs.BOM_UTF8 + text.encode("utf-8") for text in texts]
    filled = await fill_documents(service, contents, FillingRequest("html", model, service.config.character_limit))
    return [_TranslatedText([own.content.removeprefix(codecs.BOM_UTF8).decode("utf-8")], own.left) for own in filled]


@router.post(
    "/detect",
    responses=REFUSALS,
    response_model=list[DetectionBody],
    openapi_extra=request_body({"q": {"type": "string"}, "api_key": {"type": "string"}}, required=["q"]),
)
async def detect(request: Request) -> JsonAnswer:
    """Rank the served languages by the probability that a text is in them."""
    service: Service = request.app.state.service
    texts = _texts_of(await read_fields(request))
    service.check_texts(texts)
    return JsonAnswer([asdict(detection) for detection in service.languages.detect("\n".join(texts))])


@router.get("/languages", response_model=list[LanguageBody], responses={503: REFUSALS[503]})
async def list_languages(request: Request) -> JsonAnswer:
    """List the languages, each with the languages it can be translated to."""
    service: Service = request.app.state.service
    languages = service.languages
    return JsonAnswer(
        [{"code": code, "name": language_name(code), "targets": languages.targets(code)} for code in languages.codes]
    )


@router.get("/frontend/settings", response_model=dict[str, Any])
async def frontend_settings(request: Request) -> JsonAnswer:
    """Return the settings for a web page: limits, and whether a key is needed."""
    service: Service = request.app.state.service
    source, target = next(iter(service.languages.pairs))
    return JsonAnswer(
        {
            "charLimit": service.config.character_limit,
            "frontendTimeout": 500,
            "apiKeys": service.keys.are_required,
            "keyRequired": service.keys.are_required,
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": list(FORMAT_OF_ENDING),
            "language": {
                "source": {"code": source, "name": language_name(source)},
                "target": {"code": target, "name": language_name(target)},
            },
        }
    )


@router.get("/health", response_model=HealthBody, responses={503: REFUSALS[503]})
async def health(request: Request) -> JsonAnswer:
    """Report whether the server can translate."""
    service: Service = request.app.state.service
    await service.probe()
    return JsonAnswer({"status": "ok"})


def _texts_of(fields: dict[str, Any]) -> list[str]:
    given = fields.get("q")
    if not given:
        raise Refusal(400, "Invalid request: missing q parameter")
    texts = given if isinstance(given, list) else [given]
    if not all(isinstance(text, str) for text in texts):
        raise Refusal(400, "Invalid request: q must be a text or a list of texts")
    return [replace_lone_surrogates(text) for text in texts]


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
