"""The native API: translation with scores and tokens, likelihood, attention."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from transduce.inspection.contract import HeadNumbersEntry
from transduce.serving.bodies import JsonAnswer, read_fields, replace_lone_surrogates
from transduce.serving.job_queue import Job
from transduce.serving.refusal import Refusal
from transduce.serving.schemas import (
    REFUSALS,
    AttentionRequest,
    LessonRequest,
    LikelihoodAnswer,
    LikelihoodRequest,
    ModelBody,
    NumbersRequest,
    TranslateAnswer,
    TranslateRequest,
    request_body,
)
from transduce.serving.service import Service, while_connected
from transduce.text.sentences import segments

router = APIRouter(prefix="/v1", tags=["native"])
_LONGEST_INSPECTED = 256
_LONGEST_SCORED = 1024
# The page's meta element holds the rest of its policy. The sandbox gives the page an opaque origin, so its scripts
# cannot act as pages of this server.
_PAGE_POLICY = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


@router.post("/translate", response_model=TranslateAnswer, responses=REFUSALS)
async def translate(request: Request, asked: TranslateRequest) -> JsonAnswer:
    """Translate texts, with alternatives, scores and tokens."""
    service: Service = request.app.state.service
    return JsonAnswer(await while_connected(request, _translate(service, asked)))


async def _translate(service: Service, asked: TranslateRequest) -> dict[str, Any]:
    texts = [replace_lone_surrogates(text) for text in (asked.text if isinstance(asked.text, list) else [asked.text])]
    service.check_texts(texts)
    limit = service.config.alternative_limit
    for name, value in (("alternatives", asked.alternatives), ("beam", asked.beam or 1)):
        if value > limit:
            raise Refusal(400, f"{name} ({value}) exceeds limit ({limit})")
    source = asked.source
    if source in (None, "auto") and asked.model is None:
        source = service.languages.likeliest_source("\n".join(texts), target=asked.target)
    model = service.model(asked.model, source=source, target=asked.target)
    beam = asked.beam or service.models[model]["beam"]
    options: dict[str, Any] = {"alternatives": asked.alternatives, "beam": max(beam, asked.alternatives)}
    given = {
        "length_penalty": asked.length_penalty,
        "consensus": asked.consensus,
        "keep_placeholders": asked.keep_placeholders,
    }
    options |= {name: value for name, value in given.items() if value is not None}
    found = await service.translate(texts, model=model, options=options)
    translations = [{"text": own["alternatives"][0]["text"], "pivot": None, **own} for own in found]
    return {"model": model, "translations": translations}


@router.post("/likelihood", response_model=LikelihoodAnswer, responses=REFUSALS)
async def likelihood(request: Request, asked: LikelihoodRequest) -> JsonAnswer:
    """Return log p(target | source) of each pair, in total and per token; each side counts as one sentence."""
    service: Service = request.app.state.service
    pairs = [(replace_lone_surrogates(pair.source), replace_lone_surrogates(pair.target)) for pair in asked.pairs]
    service.check_texts([text for pair in pairs for text in pair])
    model = service.single_model(asked.model)
    jobs = []
    for pair in pairs:
        tokens = max(service.count_tokens(model, pair[0]), service.count_target_tokens(model, pair[1]))
        if tokens > _LONGEST_SCORED:
            raise Refusal(400, f"A side of a pair has {tokens:,} tokens; the limit is {_LONGEST_SCORED:,}.")
        jobs.append(Job("likelihood", model, list(pair), tokens, {}))
    found = await while_connected(request, service.dispatcher.submit(jobs))
    return JsonAnswer({"model": model, "likelihoods": found})


@router.post("/attention", response_model=dict[str, Any], responses=REFUSALS)
async def attention(request: Request, asked: AttentionRequest) -> JsonAnswer:
    """Return the attention of every head for a sentence and its translation, as `transduce attention` writes it."""
    return JsonAnswer(await _inspect(request, asked, is_page=False))


@router.post(
    "/attention/page",
    response_class=HTMLResponse,
    responses=REFUSALS,
    openapi_extra=request_body(
        {name: {"type": "string"} for name in ("text", "target", "model", "api_key")}, required=["text"]
    ),
)
async def attention_page(request: Request) -> HTMLResponse:
    """Return the attention of every head as one self-contained page; a web page can post a form to open it in a tab."""
    fields = {name: value for name, value in (await read_fields(request)).items() if value != ""}
    if not isinstance(fields.get("text"), str):
        raise Refusal(400, "Invalid request: missing text parameter")
    if not all(isinstance(value, str | None) for value in fields.values()) or not fields.keys() <= _PAGE_FIELDS:
        raise Refusal(400, f"Invalid request: the fields are {', '.join(sorted(_PAGE_FIELDS))}, each a text")
    page = await _inspect(request, AttentionRequest(**fields), is_page=True)
    return HTMLResponse(page["page"].encode("utf-8", "replace"), headers={"Content-Security-Policy": _PAGE_POLICY})


_PAGE_FIELDS = frozenset(AttentionRequest.model_fields) - {"target_ids"}


async def _inspect(
    request: Request, asked: AttentionRequest, *, is_page: bool, task: str = "attention"
) -> dict[str, Any]:
    service: Service = request.app.state.service
    text = replace_lone_surrogates(asked.text)
    target = None if asked.target is None else replace_lone_surrogates(asked.target)
    service.check_texts([text, target or ""])
    model = service.single_model(asked.model)
    if not text.strip():
        raise Refusal(400, "There is no attention to show: the text is empty.")
    if target is not None and asked.target_ids is not None:
        raise Refusal(400, "Invalid request: give target or target_ids, not both")
    if target is None and asked.target_ids is None:
        _refuse_several_sentences(text, language=service.dispatcher.models[model]["source"])
    longest = _longest_inspected(service, model)
    tokens = max(service.count_tokens(model, text), service.count_target_tokens(model, target or ""))
    if tokens > longest:
        raise Refusal(400, f"The sentence or its translation has {tokens:,} tokens; the limit is {longest:,}.")
    if asked.target_ids is not None:
        _check_target_ids(service, model, "target_ids", asked.target_ids)
    job = Job(task, model, [text, asked.target_ids or target], tokens, {"is_page": is_page})
    found: list[dict[str, Any]] = await while_connected(request, service.dispatcher.submit([job]))
    return found[0]


def _refuse_several_sentences(text: str, *, language: str | None) -> None:
    count = sum(segment.is_sentence for segment in segments(text, language=language))
    if count > 1:
        raise Refusal(
            400,
            f"The text has {count} sentences, and a report shows one. Send one of them; /v1/translate returns where "
            "each begins and ends, with its token ids.",
        )


def _longest_inspected(service: Service, model: str) -> int:
    return min(_LONGEST_INSPECTED, int(service.dispatcher.models[model]["longest_sentence"]))


def _check_target_ids(service: Service, model: str, name: str, ids: Sequence[int]) -> None:
    most = _longest_inspected(service, model) + service.dispatcher.models[model]["extra_length"]
    _check_ids(name, ids, most=most, vocabulary=service.dispatcher.tokenizers[model].vocabulary_size)


def _check_ids(name: str, ids: Sequence[int], *, most: int, vocabulary: int) -> None:
    if len(ids) > most:
        raise Refusal(400, f"{name} has {len(ids):,} tokens; the limit is {most:,}.")
    if max(ids) >= vocabulary:
        raise Refusal(400, f"{name} must hold ids of tokens, which are below {vocabulary:,}.")


@router.post("/lesson", response_model=dict[str, Any], responses=REFUSALS)
async def lesson(request: Request, asked: LessonRequest) -> JsonAnswer:
    """Return everything that the learning page shows of a sentence, as `transduce learn` computes it."""
    inspected = AttentionRequest(text=asked.text, model=asked.model)
    return JsonAnswer(await _inspect(request, inspected, is_page=False, task="lesson"))


@router.post("/attention/numbers", response_model=HeadNumbersEntry, responses=REFUSALS)
async def attention_numbers(request: Request, asked: NumbersRequest) -> JsonAnswer:
    """Return q, k and v of one head, from which a reader can compute its attention (section 3.2.1)."""
    service: Service = request.app.state.service
    model = service.single_model(asked.model)
    tokenizers = service.dispatcher.tokenizers[model]
    vocabulary = tokenizers.source.vocabulary_size
    _check_ids("source", asked.source, most=_longest_inspected(service, model), vocabulary=vocabulary)
    _check_target_ids(service, model, "target", asked.target)
    end = tokenizers.source.special.end
    # `target` need not end in the end token: a translation that the length limit cut off has none.
    if tokenizers.source_end and asked.source[-1] != end:
        raise Refusal(400, f"source must end in {end}, the end token.")
    item = asked.model_dump(include={"source", "target", "stack", "layer", "head"})
    job = Job("numbers", model, item, max(len(asked.source), len(asked.target)), {})
    found = await while_connected(request, service.dispatcher.submit([job]))
    return JsonAnswer(found[0])


@router.get("/models", response_model=list[ModelBody], responses={code: REFUSALS[code] for code in (401, 403, 503)})
async def list_models(request: Request) -> JsonAnswer:
    """List the models, and two in turn for pairs of languages that no model serves."""
    service: Service = request.app.state.service
    shown = ("source", "target", "pivot", "longest_sentence", "parameters")
    loaded = {*service.dispatcher.loaded}
    return JsonAnswer(
        [
            {"name": name, **{key: model[key] for key in shown}, "is_loaded": {*(model["through"] or [name])} <= loaded}
            for name, model in service.models.items()
        ]
    )
