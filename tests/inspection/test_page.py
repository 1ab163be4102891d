"""The page is whole in one file, and its policy lets nothing else in."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from transduce.inspection.page import joined_modules
from transduce.inspection.report import AttentionReport


@pytest.fixture(scope="module")
def page(report: AttentionReport) -> str:
    return report.to_html()


def test_markup_in_a_sentence_stays_text(page: str) -> None:
    assert page.count("<script") == 3
    assert "alert(" in page
    assert "</script><script>alert" not in page


def test_nothing_is_loaded_and_only_this_code_may_run(page: str) -> None:
    assert not re.search(r'\b(?:src|action)="', page)
    assert "<link" not in page
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]
    for element in ("style", 'script type="module"'):
        content = re.search(rf"<{element}>(.*?)</{element.split()[0]}>", page, flags=re.DOTALL)
        assert content
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]


def test_a_notebook_shows_the_page_in_a_closed_frame(report: AttentionReport) -> None:
    note, frame, script = re.split(r"(?=<iframe)|(?=<script>)", report._repr_html_())
    assert note.startswith("<p>")
    assert "trust this notebook" in note
    assert "allow-same-origin" not in frame
    assert frame.count("<") == 2
    assert re.findall(r"<(\w+)", note) == ["p", "code"], "the user's sentence adds no element"
    assert report.source.text not in script


def test_modules_come_after_what_they_import_and_once(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text(
        'import { b } from "./b.js";\nimport { c } from "./c.js";\nb(c);\n', encoding="utf-8"
    )
    (tmp_path / "b.js").write_text('import { c } from "./c.js";\n\nexport function b() { c(); }\n', encoding="utf-8")
    (tmp_path / "c.js").write_text("export const c = 1;\n", encoding="utf-8")
    assert " ".join(joined_modules(tmp_path, "a.js").split()) == "const c = 1; function b() { c(); } b(c);"
    (tmp_path / "c.js").write_text('import { b } from "./b.js";\n', encoding="utf-8")
    with pytest.raises(AssertionError, match=r"b\.js -> c\.js -> b\.js"):
        joined_modules(tmp_path, "a.js")
