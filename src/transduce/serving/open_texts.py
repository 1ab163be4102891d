"""The texts that language models are writing in the child, a portion at a time.

An item is a prompt with its options, an id, and how many characters of the text the client has. A text that this
process does not know, or that has got further than the client, is written again from its beginning: the same seed
writes the same text. So the client does not see a crash or a reload in the middle of a text.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from transduce.translator import Translator

_SECONDS_OF_PORTION = 0.1
_MOST_OPEN = 16  # each holds keys and values of up to a whole context


@dataclass
class _OpenText:
    parts: Iterator[str]
    written: int


class OpenTexts:
    """The texts that are being written, the one that was continued last at the end."""

    def __init__(self) -> None:
        self._open: dict[str, _OpenText] = {}

    def portions(
        self, translator: Translator, items: list[dict[str, Any]], options: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the next portion of each text, and whether it is finished; `written` = None ends a text."""
        return [self._portion(translator, item) for item in items]

    def _portion(self, translator: Translator, item: dict[str, Any]) -> dict[str, Any]:
        own, written = self._open.pop(item["id"], None), item["written"]
        if written is None:
            return {"text": "", "is_finished": True}
        if own is None or own.written != written:
            parts = translator.stream(item["prompt"], **item["options"])
            own = _OpenText(_after(parts, written), written)
        end, text = time.monotonic() + _SECONDS_OF_PORTION, ""
        for part in own.parts:
            text += part
            if time.monotonic() > end:
                own.written += len(text)
                self._open[item["id"]] = own
                if len(self._open) > _MOST_OPEN:
                    del self._open[next(iter(self._open))]
                return {"text": text, "is_finished": False}
        return {"text": text, "is_finished": True}


def _after(parts: Iterator[str], count: int) -> Iterator[str]:
    """Yield the text without its first `count` characters."""
    for part in parts:
        if len(part) > count:
            yield part[count:]
        count = max(0, count - len(part))
