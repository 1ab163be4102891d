"""Documents over HTTP: the child finds their gaps and fills them in, their texts wait in the same queue as everybody's.

Hostile files are therefore read where a crash or an endless loop costs one child, and a large document is translated
in windows, so that it neither fills the queue nor keeps others waiting behind it.
"""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transduce.serving.dispatcher import Work
from transduce.serving.refusal import Refusal
from transduce.serving.service import Service

_CHARACTERS_PER_TOKEN = 4
_TEXTS_AT_ONCE = 32


@dataclass(frozen=True)
class Filled:
    """A document with its gaps filled in, and what was done."""

    content: bytes
    filled: int
    kept: int
    left: list[dict[str, str]]
    """Where a gap was left, and why."""


async def fill_documents(
    service: Service, contents: Sequence[bytes], *, kind: str, model: str, character_limit: int
) -> list[Filled]:
    """Return documents of one kind with their gaps filled in by a model."""
    try:
        async with asyncio.timeout(service.config.file_seconds):
            return await _filled(service, contents, kind=kind, model=model, character_limit=character_limit)
    except TimeoutError:
        raise Refusal(
            503, f"The document was not finished within {service.config.file_seconds:g} seconds.", retry_after=10
        ) from None


async def _filled(
    service: Service, contents: Sequence[bytes], *, kind: str, model: str, character_limit: int
) -> list[Filled]:
    items: list[dict[str, Any]] = [
        {"content": base64.b64encode(content).decode("ascii"), "kind": kind} for content in contents
    ]
    found = await _ask(service, "gaps", model, items)
    texts = [text for own in found for text in own["texts"]]
    characters = sum(map(len, texts))
    if characters > character_limit:
        raise Refusal(400, f"Invalid request: request ({characters}) exceeds text limit ({character_limit})")
    translations = await _translated(service, texts, model=model)
    place = 0
    for item, own in zip(items, found, strict=True):
        item["translations"] = translations[place : place + len(own["texts"])]
        place += len(own["texts"])
    return [
        Filled(
            content=base64.b64decode(own["content"]),
            filled=own["filled"],
            kept=own["kept"],
            left=[{"where": where, "reason": reason} for where, reason in own["left"]],
        )
        for own in await _ask(service, "fill", model, items)
    ]


async def _ask(service: Service, task: str, model: str, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return await service.dispatcher.submit(
        [Work(task, model, item, 1 + len(item["content"]) // _CHARACTERS_PER_TOKEN, {}) for item in items]
    )


async def _translated(service: Service, texts: Sequence[str], *, model: str) -> list[dict[str, Any]]:
    options = {"alternatives": 1, "beam": service.dispatcher.models[model]["beam"]}
    found: list[dict[str, Any]] = []
    while len(found) < len(texts):
        window = texts[len(found) : len(found) + _TEXTS_AT_ONCE]
        try:
            found += await service.translate(window, model=model, options=options)
        except Refusal as refusal:
            if refusal.status_code != 429 or not found:
                raise
            # Half a document helps nobody: what is begun waits for room until its own time is over.
            await asyncio.sleep(float((refusal.headers or {}).get("Retry-After", 1)))
    return found
