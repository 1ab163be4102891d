"""The server's part of document translation. Three steps, all computed by the child: extract texts, translate, insert.

The child parses the documents because a malicious file may crash or hang the parser, and a child can be replaced. A
large document is translated a few texts at a time, so that it neither fills the queue nor delays other requests.
"""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from transduce.serving.job_queue import Job
from transduce.serving.refusal import Refusal
from transduce.serving.service import Service

_CHARACTERS_PER_TOKEN = 4
_TEXTS_AT_ONCE = 32


@dataclass(frozen=True)
class FilledDocument:
    """A document with its untranslated texts filled in."""

    content: bytes
    filled: int
    """Number of texts translated now."""
    kept: int
    """Number of texts that were translated already."""
    left: list[dict[str, str]]
    """Place and reason of each text that stays untranslated."""
    reasons: dict[str, int]
    """Number of texts that stay untranslated for each kind of reason."""


@dataclass(frozen=True)
class FillingRequest:
    """What a request asks for: the format of its documents, the model, and which translations are filled in."""

    kind: str
    model: str
    character_limit: int
    leave_below: float = 0.0
    keep_placeholders: str | None = None


async def fill_documents(service: Service, contents: Sequence[bytes], asked: FillingRequest) -> list[FilledDocument]:
    """Translate the untranslated texts of documents of one format."""
    try:
        async with asyncio.timeout(service.config.file_seconds):
            return await _fill(service, contents, asked)
    except TimeoutError:
        raise Refusal(
            503, f"The document was not finished within {service.config.file_seconds:g} seconds.", retry_after=10
        ) from None


async def _fill(service: Service, contents: Sequence[bytes], asked: FillingRequest) -> list[FilledDocument]:
    fills_incomplete = asked.keep_placeholders in ("report", "off")
    rules = {"leave_below": asked.leave_below, "fills_incomplete": fills_incomplete}
    items: list[dict[str, Any]] = [
        {"content": base64.b64encode(content).decode("ascii"), "kind": asked.kind, "rules": rules}
        for content in contents
    ]
    found = await _compute(service, "gaps", asked.model, items)
    texts = [text for own in found for text in own["texts"]]
    characters = sum(map(len, texts))
    if characters > asked.character_limit:
        raise Refusal(400, f"Invalid request: request ({characters}) exceeds text limit ({asked.character_limit})")
    translations = iter(await _translate(service, texts, asked))
    for item, own in zip(items, found, strict=True):
        item["translations"] = list(islice(translations, len(own["texts"])))
    filled = await _compute(service, "fill", asked.model, items)
    return [FilledDocument(**{**own, "content": base64.b64decode(own["content"])}) for own in filled]


async def _compute(service: Service, task: str, model: str, items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return await service.dispatcher.submit(
        [Job(task, model, item, 1 + len(item["content"]) // _CHARACTERS_PER_TOKEN, {}) for item in items]
    )


async def _translate(service: Service, texts: Sequence[str], asked: FillingRequest) -> list[dict[str, Any]]:
    options = {"alternatives": 1, "beam": service.dispatcher.models[asked.model]["beam"]}
    if asked.keep_placeholders is not None:
        options["keep_placeholders"] = asked.keep_placeholders
    found: list[dict[str, Any]] = []
    while len(found) < len(texts):
        window = texts[len(found) : len(found) + _TEXTS_AT_ONCE]
        try:
            found += await service.translate(window, model=asked.model, options=options)
        except Refusal as refusal:
            if refusal.status_code != 429 or not found:
                raise
            # A half-translated document is useless: once begun, wait for room until `file_seconds` are over.
            await asyncio.sleep(float((refusal.headers or {}).get("Retry-After", 1)))
    return found
