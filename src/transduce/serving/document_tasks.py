"""The child's part of document translation: extract the texts to translate, and insert their translations."""

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

from transduce.data.formats.pair import Selection
from transduce.documents.document import Document
from transduce.documents.filling import FillingRules, copies_tags, document_of, fill_at_once, gaps_of
from transduce.translator import Alternative, Translation, Translator


def find_gaps(translator: Translator, items: list[dict[str, Any]], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the untranslated texts of each document."""
    found = []
    for item in items:
        document = _document(translator, item)
        document = replace(document, copies_tags=copies_tags(document, item["kind"], translator))
        found.append({"texts": [text for gap in gaps_of(document, item["kind"]) for text in gap.texts]})
    return found


def fill(translator: Translator, items: list[dict[str, Any]], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each document with the translations of its texts inserted."""
    return [_fill(_document(translator, item), item) for item in items]


def _document(translator: Translator, item: dict[str, Any]) -> Document:
    languages = translator.languages
    return document_of(
        base64.b64decode(item["content"]),
        item["kind"],
        path=Path(f"file.{item['kind']}"),  # the name in error messages; there is no such file
        selection=Selection(languages.source, languages.target),
    )


def _fill(document: Document, item: dict[str, Any]) -> dict[str, Any]:
    translations = [_translation(own) for own in item["translations"]]
    # `find_gaps` chose texts with or without tags. Without tags there are more texts, so their number shows the choice.
    is_tagged = sum(len(gap.texts) for gap in gaps_of(document, item["kind"])) == len(translations)
    document = replace(document, copies_tags=is_tagged)
    content, report = fill_at_once(
        document,
        item["kind"],
        lambda texts, first: translations[first : first + len(texts)],
        rules=FillingRules(**item.get("rules", {})),
    )
    return {
        "content": base64.b64encode(content).decode("ascii"),
        "filled": report.filled,
        "kept": report.kept,
        "left": [{"where": where, "reason": reason} for where, reason, _ in report.left],
        "reasons": dict(report.reasons()),
    }


def _translation(content: dict[str, Any]) -> Translation:
    """Return the translation that `worker.translate` turned into JSON; its source is not needed."""
    alternatives = tuple(
        Alternative(**{**own, "tokens": tuple(own["tokens"]), "sentences": ()}) for own in content["alternatives"]
    )
    names = ("missing", "surplus", "missing_numbers", "doubts")
    lists = {name: tuple(content[name]) for name in names}
    return Translation("", alternatives, **lists, confidence=content["confidence"], refusal=content["refusal"])
