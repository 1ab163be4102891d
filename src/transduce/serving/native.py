"""The native API: everything that a model can say, with scores and tokens."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from transduce.serving.bodies import Json, fields_of, whole_characters
from transduce.serving.dispatcher import Work
from transduce.serving.refusal import Refusal
from transduce.serving.schemas import (
    REFUSALS,
    AttentionRequest,
    LikelihoodAnswer,
    LikelihoodRequest,
    ModelBody,
    NumbersAnswer,
    NumbersRequest,
    TranslateAnswer,
    TranslateRequest,
    form_or_json,
)
from transduce.serving.service import Service, unless_client_goes

router = APIRouter(prefix="/v1", tags=["native"])
_LONGEST_INSPECTED = 256
_LONGEST_JUDGED = 1024
# The page brings its own policy in a meta element. An opaque origin keeps it from this server's, whatever it shows.
_PAGE_POLICY = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


@router.post("/translate", response_model=TranslateAnswer, responses=REFUSALS)
async def translate(request: Request, asked: TranslateRequest) -> Json:
    """Translate texts, with alternatives, scores and tokens."""
    service: Service = request.app.state.service
    return Json(await unless_client_goes(request, _translated(service, asked)))


async def _translated(service: Service, asked: TranslateRequest) -> dict[str, Any]:
    texts = [whole_characters(text) for text in (asked.text if isinstance(asked.text, list) else [asked.text])]
    service.check_texts(texts)
    limit = service.config.alternative_limit
    for name, value in (("alternatives", asked.alternatives), ("beam", asked.beam or 1)):
        if value > limit:
            raise Refusal(400, f"{name} ({value}) exceeds limit ({limit})")
    source = asked.source
    if source in (None, "auto") and asked.model is None:
        source = _likeliest_source(service, texts, target=asked.target)
    model = service.model(asked.model, source=source, target=asked.target)
    beam = asked.beam or service.dispatcher.models[model]["beam"]
    options: dict[str, Any] = {"alternatives": asked.alternatives, "beam": max(beam, asked.alternatives)}
    given = {"length_penalty": asked.length_penalty, "consensus": asked.consensus}
    options |= {name: value for name, value in given.items() if value is not None}
    found = await service.translate(texts, model=model, options=options)
    return {"model": model, "translations": [{"text": own["alternatives"][0]["text"], **own} for own in found]}


def _likeliest_source(service: Service, texts: Sequence[str], *, target: str | None) -> str | None:
    languages = service.languages
    sources = [source for source in languages.sources if target is None or target in languages.targets(source)]
    if len(sources) < 2:
        return sources[0] if sources else None
    return next(own.language for own in languages.detect("\n".join(texts)) if own.language in sources)


@router.post("/likelihood", response_model=LikelihoodAnswer, responses=REFUSALS)
async def likelihood(request: Request, asked: LikelihoodRequest) -> Json:
    """Give log p(target | source) of each pair, whole and token by token; each side is taken as one sentence."""
    service: Service = request.app.state.service
    pairs = [(whole_characters(pair.source), whole_characters(pair.target)) for pair in asked.pairs]
    service.check_texts([text for pair in pairs for text in pair])
    model = service.model(asked.model)
    works = []
    for pair in pairs:
        tokens = max(service.count_tokens(model, pair[0]), service.count_target_tokens(model, pair[1]))
        if tokens > _LONGEST_JUDGED:
            raise Refusal(400, f"A side of a pair has {tokens:,} pieces; at most {_LONGEST_JUDGED:,} are judged.")
        works.append(Work("likelihood", model, list(pair), tokens, {}))
    found = await unless_client_goes(request, service.dispatcher.submit(works))
    return Json({"model": model, "likelihoods": found})


@router.post("/attention", response_model=dict[str, Any], responses=REFUSALS)
async def attention(request: Request, asked: AttentionRequest) -> Json:
    """Give what every head did for a sentence and its translation; the format is that of `transduce attention`."""
    return Json(await _inspected(request, asked, is_page=False))


@router.post(
    "/attention/page",
    response_class=HTMLResponse,
    responses=REFUSALS,
    openapi_extra=form_or_json(
        {name: {"type": "string"} for name in ("text", "target", "model", "api_key")}, required=["text"]
    ),
)
async def attention_page(request: Request) -> HTMLResponse:
    """Show the same as one self-contained page; it takes a form, so that a page can open it in a new tab."""
    fields = {name: value for name, value in (await fields_of(request)).items() if value != ""}
    if not isinstance(fields.get("text"), str):
        raise Refusal(400, "Invalid request: missing text parameter")
    if not all(isinstance(value, str | None) for value in fields.values()) or not fields.keys() <= _PAGE_FIELDS:
        raise Refusal(400, f"Invalid request: the fields are {', '.join(sorted(_PAGE_FIELDS))}, each a text")
    page = await _inspected(request, AttentionRequest(**fields), is_page=True)
    return HTMLResponse(page["page"].encode("utf-8", "replace"), headers={"Content-Security-Policy": _PAGE_POLICY})


_PAGE_FIELDS = frozenset(AttentionRequest.model_fields)


async def _inspected(request: Request, asked: AttentionRequest, *, is_page: bool) -> dict[str, Any]:
    service: Service = request.app.state.service
    text = whole_characters(asked.text)
    target = None if asked.target is None else whole_characters(asked.target)
    service.check_texts([text, target or ""])
    model = service.model(asked.model)
    if not text.strip():
        raise Refusal(400, "There is nothing to look into: the text is empty.")
    longest = min(_LONGEST_INSPECTED, service.dispatcher.models[model]["longest_sentence"])
    tokens = max(service.count_tokens(model, text), service.count_target_tokens(model, target or ""))
    if tokens > longest:
        raise Refusal(400, f"The sentence has {tokens:,} pieces; at most {longest:,} can be looked into at once.")
    work = Work("attention", model, [text, target], tokens, {"is_page": is_page})
    found: list[dict[str, Any]] = await unless_client_goes(request, service.dispatcher.submit([work]))
    return found[0]


@router.post("/attention/numbers", response_model=NumbersAnswer, responses=REFUSALS)
async def attention_numbers(request: Request, asked: NumbersRequest) -> Json:
    """Give q, k and v of one head, so that a reader can follow section 3.2.1 number by number."""
    service: Service = request.app.state.service
    model = service.model(asked.model)
    described, tokenizers = service.dispatcher.models[model], service.dispatcher.tokenizers[model]
    longest = min(_LONGEST_INSPECTED, described["longest_sentence"])
    for name, ids, most, vocabulary in (
        ("source", asked.source, longest, tokenizers.source.vocabulary_size),
        ("target", asked.target, longest + described["extra_length"], tokenizers.vocabulary_size),
    ):
        if len(ids) > most:
            raise Refusal(400, f"{name} has {len(ids):,} tokens; at most {most:,} can be looked into at once.")
        if max(ids) >= vocabulary:
            raise Refusal(400, f"{name} must hold ids of tokens, which are below {vocabulary:,}.")
    end = tokenizers.source.special.end
    if tokenizers.source_end and asked.source[-1] != end:  # a translation that the limit on length cut off has none
        raise Refusal(400, f"source must end in {end}, the end token.")
    item = asked.model_dump(include={"source", "target", "stack", "layer", "head"})
    work = Work("numbers", model, item, max(len(asked.source), len(asked.target)), {})
    found = await unless_client_goes(request, service.dispatcher.submit([work]))
    return Json(found[0])


@router.get("/models", response_model=list[ModelBody], responses={code: REFUSALS[code] for code in (401, 403, 503)})
async def list_models(request: Request) -> Json:
    """List the models that are served."""
    service: Service = request.app.state.service
    told = ("source", "target", "longest_sentence", "parameters")
    return Json(
        [{"name": name, **{key: model[key] for key in told}} for name, model in service.dispatcher.models.items()]
    )
