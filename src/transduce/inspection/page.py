"""The self-contained page: the files of `web/` and the report's JSON in one HTML file that opens from disk.

A browser refuses to import modules from disk, so the page contains them: their import lines are removed and the rest is
joined into one module element, each module after those that it imports. So a name at the top level of a module must be
unique among all modules. The page's security policy allows only this script and this style, by their hashes: no other
code and no network.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from typing import Any

ENTRY = "start.js"
_IMPORT = re.compile(r'^import (?:\{[^}]*\} from )?"\./([\w.]+)";\n', flags=re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class)\b)", flags=re.MULTILINE)
_STYLE = re.compile(r'<link rel="stylesheet" href="([\w.]+)">\n')
_POLICY = re.compile(r'(<meta http-equiv="Content-Security-Policy" content=")[^"]*(">)')


def web_files() -> Traversable:
    """Return the folder with the page's files."""
    return package_files("transduce") / "web"


def attention_page(report: dict[str, Any] | Sequence[dict[str, Any]]) -> str:
    """Return a page that shows a report, or lets the user choose among several; it loads nothing from the network."""
    return one_file("attention.html", entry=ENTRY, data={"report": report})


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
