"""The self-contained page: the files of `web/` and the report's JSON in one HTML file that opens from disk.

A browser refuses to import modules from disk, so the page contains them: their import lines are removed and the rest is
joined into one module element, each module after those that it imports. So a name at the top level of a module must be
unique among all modules. The page's security policy allows only this script and this style, by their hashes: no other
code and no network.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from typing import Any

ENTRY = "start.js"
_BESIDE_STYLE = (
    "body{margin:.7rem;font:16px/1.5 system-ui,sans-serif;background:Canvas;color:CanvasText}h1{font-size:1.2rem}"
    "h2{font-size:1rem;margin:0 0 .3rem}main{display:grid;gap:.7rem;"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,34rem),1fr))}"
    "iframe{width:100%;height:900px;border:1px solid}"
)
_BESIDE_SCRIPT = """addEventListener("message", ({ source, data }) => {
  for (const frame of document.querySelectorAll("iframe")) {
    const isSource = frame.contentWindow === source;
    if (isSource && Number.isFinite(data?.attentionHeight))
      frame.style.height = `${Math.min(Math.max(data.attentionHeight + 4, 300), 20000)}px`;
    if (!isSource && data?.attentionState)
      frame.contentWindow.postMessage({ attentionState: data.attentionState }, "*");
  }
});"""
"""Passes the choices made in one frame on to the others, and gives each frame the height of its page."""
_IMPORT = re.compile(r'^import (?:\{[^}]*\} from )?"\./([\w.]+)";\n', flags=re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", flags=re.MULTILINE)
_STYLE = re.compile(r'<link rel="stylesheet" href="([\w.]+)">\n')
_POLICY = re.compile(r'(<meta http-equiv="Content-Security-Policy" content=")[^"]*(">)')


def web_files() -> Traversable:
    """Return the folder with the page's files."""
    return package_files("transduce") / "web"


def attention_page(
    report: dict[str, Any] | Sequence[dict[str, Any]], *, roles: Sequence[Mapping[str, Any]] = ()
) -> str:
    """Return a page that shows a report, or lets the user choose among several; it loads nothing from the network.

    `roles` are links to examples: each has a text, a weight, the even share, and the address of a state of the page.
    """
    return one_file("attention.html", entry=ENTRY, data={"report": report, **({"roles": list(roles)} if roles else {})})


def beside_page(pages: Sequence[tuple[str, str]]) -> str:
    """Return named pages of `attention_page` side by side in one file; a choice in one is made in the others too."""
    frames = "".join(
        f'<section><h2>{html.escape(name)}</h2><iframe title="{html.escape(name)}" srcdoc="{html.escape(page)}" '
        'sandbox="allow-scripts allow-downloads allow-popups"></iframe></section>'
        for name, page in pages
    )
    inside = " ".join(sorted({source for _, page in pages for source in re.findall(r"'sha256-[^']+'", page)}))
    policy = (
        f"default-src 'none'; script-src {_hash_of(_BESIDE_SCRIPT)} {inside}; style-src {_hash_of(_BESIDE_STYLE)} "
        f"{inside}; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" '
        f'content="{policy}"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>Attention side by side</title>'
        f"<style>{_BESIDE_STYLE}</style></head><body><h1>Attention side by side</h1><main>{frames}</main>"
        f"<script>{_BESIDE_SCRIPT}</script></body></html>\n"
    )


def one_file(name: str, *, entry: str, data: Mapping[str, Any]) -> str:
    """Return a page of `web/` as one file: its styles and modules inside, and `data` in the elements with these ids."""
    folder = web_files()
    page = (folder / name).read_text(encoding="utf-8")
    script = joined_modules(folder, entry)
    style = "".join((folder / sheet).read_text(encoding="utf-8") for sheet in _STYLE.findall(page))
    policy = (
        f"default-src 'none'; script-src {_hash_of(script)}; style-src {_hash_of(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    page = _POLICY.sub(lambda match: match[1] + policy + match[2], page, count=1)
    page = _STYLE.sub("", page).replace("</head>", f"<style>{style}</style>\n</head>", 1)
    element = f'<script type="module" src="{entry}"></script>'
    assert page.count(element) == 1, f"{name} must hold {element} once"
    return with_data(page, data).replace(element, f'<script type="module">{script}</script>')


def with_data(page: str, data: Mapping[str, Any]) -> str:
    """Return a page with JSON in its elements for data, which have these ids and are empty."""
    for name, content in data.items():
        # "</script>" in a user's sentence must not end the element that holds the JSON.
        payload = json.dumps(content, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        empty = f'<script type="application/json" id="{name}"></script>'
        assert page.count(empty) == 1, f"the page must hold {empty} once"
        page = page.replace(empty, empty.replace("><", f">{payload}<"))
    return page


def joined_modules(folder: Traversable, entry: str) -> str:
    """Return `entry` and all its imports as one script, each module after those that it imports."""
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, f"modules import each other in a circle: {' -> '.join((*above, name))}"
        if name in order:
            return
        for needed in _IMPORT.findall((folder / name).read_text(encoding="utf-8")):
            visit(needed, (*above, name))
        order.append(name)

    visit(entry, ())
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", (folder / name).read_text(encoding="utf-8"))) for name in order)


def _hash_of(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode('utf-8')).digest()).decode('ascii')}'"
