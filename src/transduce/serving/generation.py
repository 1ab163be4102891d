"""`/v1/generate`: what a language model writes, as a stream of server-sent events or as one JSON object.

A text is computed in portions, each a job of its own, so that other requests are answered between them and that no more
is written when the client leaves. `open_texts.py` has the child's side.

    data: {"text": "…"}                 as often as there is more text
    event: end                          data: {"model": "…"}
    event: error                        data: {"error": "…"}
"""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from transduce.serving.bodies import JsonAnswer, replace_lone_surrogates
from transduce.serving.job_queue import Job
from transduce.serving.refusal import Refusal
from transduce.serving.schemas import REFUSALS, GenerateAnswer, GenerateRequest
from transduce.serving.service import Service, while_connected

router = APIRouter(prefix="/v1", tags=["native"])
_TOKENS_OF_PORTION = 256  # for the budget of a round, so that few texts share one; portions are bounded by time
_EVENTS = {"description": "With stream, server-sent events.", "content": {"text/event-stream": {}}}


@router.post("/generate", response_model=GenerateAnswer, responses={**REFUSALS, 200: _EVENTS})
async def generate(request: Request, asked: GenerateRequest) -> Response:
    """Write text with a language model, after a prompt; with `stream`, as server-sent events while it is written."""
    service: Service = request.app.state.service
    prompt = replace_lone_surrogates(asked.prompt)
    service.check_texts([prompt])
    for name, value, limit in (
        ("tokens", asked.tokens, service.config.token_limit),
        ("beam", asked.beam or 1, service.config.alternative_limit),
        ("stop", len(asked.stop), service.config.text_limit),
    ):
        if value > limit:
            raise Refusal(400, f"{name} ({value}) exceeds limit ({limit})")
    model = service.model(asked.model, kind="language-model")
    options = asked.model_dump(exclude_none=True, exclude={"prompt", "model", "stream", "api_key"})
    portions = _portions(service, model, {"prompt": prompt, "options": options})
    if not asked.stream:
        return JsonAnswer({"model": model, "text": await while_connected(request, _whole(portions))})
    first = await while_connected(request, _next(portions))  # so that a refusal is an answer and not an event
    unbuffered = {"X-Accel-Buffering": "no"}  # nginx would keep events back
    return StreamingResponse(_events(first, portions, model), media_type="text/event-stream", headers=unbuffered)


async def _whole(portions: AsyncIterator[str]) -> str:
    return "".join([text async for text in portions])


async def _next(portions: AsyncIterator[str]) -> str:
    return await anext(portions)


async def _events(first: str, portions: AsyncIterator[str], model: str) -> AsyncIterator[str]:
    async with aclosing(portions):  # type: ignore[type-var]
        yield _event("", {"text": first})
        try:
            async for text in portions:
                yield _event("", {"text": text})
        except Refusal as refusal:
            yield _event("event: error\n", {"error": refusal.detail})
            return
        yield _event("event: end\n", {"model": model})


def _event(name: str, content: dict[str, str]) -> str:
    return f"{name}data: {json.dumps(content)}\n\n"


async def _portions(service: Service, model: str, asked: dict[str, Any]) -> AsyncIterator[str]:
    """Yield the text in portions, of which only the first may be empty; tell the child if no more is wanted."""
    loop, seconds = asyncio.get_running_loop(), service.config.request_seconds
    deadline, written, number, is_finished = loop.time() + seconds, 0, uuid.uuid4().hex, False
    try:
        while not is_finished:
            if loop.time() > deadline:
                raise Refusal(503, f"The text was not written within {seconds:g} seconds.")
            job = Job("generate", model, {**asked, "id": number, "written": written}, _TOKENS_OF_PORTION, {})
            [found] = await service.dispatcher.submit([job])
            is_finished = found["is_finished"]
            if found["text"] or not written:
                yield found["text"]
            written += len(found["text"])
    finally:
        if not is_finished:
            service.dispatcher.post(Job("generate", model, {"id": number, "written": None}, 1, {}))
