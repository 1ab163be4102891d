"""The self-contained page: the files of `web/` and the report's JSON in one HTML file that opens from disk."""

import json
from importlib.resources import files as package_files
from typing import Any


def attention_page(report: dict[str, Any]) -> str:
    """Return a page that shows the report and asks nothing of any network."""
    web = package_files("transduce") / "web"
    page = (web / "attention.html").read_text(encoding="utf-8")
    # "</script>" in a user's sentence must not end the element that the JSON stands in.
    payload = json.dumps(report, ensure_ascii=False).replace("<", "\\u003c")
    return page.replace("/*REPORT*/", payload, 1)
