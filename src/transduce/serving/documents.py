"""The server's part of document translation, in three steps: extract texts, translate them, insert the translations.

A malicious file may crash or hang a parser, so processes of their own parse and fill documents. A large document is
translated a few texts at a time, so that it neither fills the queue nor delays other requests.
"""

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from transduce.documents.kinds import are_mostly_whole
from transduce.serving.refusal import Refusal
from transduce.serving.service import Service

_TEXTS_AT_ONCE = 32


@dataclass(frozen=True)
class FilledDocument:
    """A document with its untranslated texts filled in."""

    content: bytes
    filled: int
    """Number of texts translated now."""
    unsure: int
    """Number of those whose confidence is below 0.5."""
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
    model = service.models[asked.model]
    common = {"kind": asked.kind, "languages": [model["source"], model["target"]]}
    rules = {"leave_below": asked.leave_below, "fills_incomplete": fills_incomplete}
    documents: list[dict[str, Any]] = [
        {**common, "content": base64.b64encode(content).decode("ascii")} for content in contents
    ]
    found = [await service.documents.compute({**document, "task": "gaps"}) for document in documents]
    _check_characters(found, asked)
    copies_tags = [await _copies_tags(service, own["tried"], asked) for own in found]
    texts = [own["tagged" if copies else "untagged"] for own, copies in zip(found, copies_tags, strict=True)]
    translations = iter(await _translate(service, list(chain.from_iterable(texts)), asked))
    filled = []
    for document, own, copies in zip(documents, texts, copies_tags, strict=True):
        request = {"task": "fill", "copies_tags": copies, "rules": rules}
        request["translations"] = list(islice(translations, len(own)))
        answer = await service.documents.compute({**document, **request})
        filled.append(FilledDocument(**{**answer, "content": base64.b64decode(answer["content"])}))
    return filled


def _check_characters(found: Sequence[dict[str, Any]], asked: FillingRequest) -> None:
    characters = sum(len(text) for own in found for text in own["tagged"])
    if characters > asked.character_limit:
        raise Refusal(400, f"Invalid request: request ({characters}) exceeds text limit ({asked.character_limit})")


async def _copies_tags(service: Service, texts: Sequence[str], asked: FillingRequest) -> bool:
    """Return whether the tags of these texts come back, as `filling.copies_tags` does."""
    if service.models[asked.model]["aligns_tags"] and asked.keep_placeholders in (None, "enforce"):
        return True
    options = {"alternatives": 1, "beam": 1, "keep_placeholders": "report"}
    tried = await service.translate(texts, model=asked.model, options=options) if texts else []
    return are_mostly_whole([(own["missing"], own["surplus"]) for own in tried])


async def _translate(service: Service, texts: Sequence[str], asked: FillingRequest) -> list[dict[str, Any]]:
    options = {"alternatives": 1, "beam": service.models[asked.model]["beam"]}
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
