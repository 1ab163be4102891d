"""The child's part of document translation: extract the texts to translate, and insert their translations."""

import base64
from pathlib import Path
from typing import Any

from transduce.data.formats.pair import Selection
from transduce.documents.document import Document
from transduce.documents.filling import FORMATS, document_of, fill_at_once
from transduce.translator import Alternative, Translation, Translator


def find_gaps(translator: Translator, items: list[dict[str, Any]], options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the untranslated texts of each document."""
    return [
        {"texts": [text for gap in FORMATS[item["kind"]].gaps(_document(translator, item)) for text in gap.texts]}
        for item in items
    ]


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
    content, report = fill_at_once(
        document, item["kind"], lambda texts, first: translations[first : first + len(texts)]
    )
    return {
        "content": base64.b64encode(content).decode("ascii"),
        "filled": report.filled,
        "kept": report.kept,
        "left": [{"where": where, "reason": reason} for where, reason, _ in report.left],
    }


def _translation(content: dict[str, Any]) -> Translation:
    """Return the translation that `worker.translate` turned into JSON; its source is not needed."""
    alternatives = tuple(
        Alternative(**{**own, "tokens": tuple(own["tokens"]), "sentences": ()}) for own in content["alternatives"]
    )
    return Translation("", alternatives, tuple(content["missing"]), tuple(content["surplus"]), content["refusal"])
