"""JSON records that hold their own SHA-256, so that a damaged one is noticed when it is read back."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def sealed(content: Mapping[str, Any]) -> str:
    """Return a JSON text with its own SHA-256, which `unsealed` checks."""
    return json.dumps({**content, "sha256": _seal(content)}, indent=1) + "\n"


def unsealed(raw: bytes) -> dict[str, Any]:
    """Return the content of a text by `sealed`; ValueError if it changed. Earlier versions wrote texts without seal."""
    content = json.loads(raw)
    if not isinstance(content, dict) or content.pop("sha256", None) not in (None, _seal(content)):
        raise ValueError("it does not match its SHA-256")
    return content


def _seal(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps({**content, "sha256": None}, sort_keys=True).encode()).hexdigest()
