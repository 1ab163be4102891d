"""The learning page is whole in one file, and the lines that it quotes are in the source."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import transduce
from transduce.learning import code_lines
from transduce.learning.page import bundled_sentences, learning_page, served_learning_page


def test_quoted_lines_are_the_lines_of_the_source() -> None:
    folder = Path(transduce.__file__).parent.parent
    for quoted in code_lines.quoted_lines().values():
        lines = (folder / str(quoted["path"])).read_text(encoding="utf-8").splitlines()
        assert lines[int(quoted["line"]) - 1].strip() == quoted["text"]


def test_a_line_that_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(code_lines.QUOTED, "gone", ("model/masks.py", "return nothing"))
    with pytest.raises(AssertionError, match=r"no line of model/masks\.py begins with 'return nothing'"):
        code_lines.quoted_lines()


def test_the_steps_quote_what_there_is() -> None:
    folder = Path(transduce.__file__).parent / "web"
    steps = "".join(file.read_text(encoding="utf-8") for file in folder.glob("step_*.js"))
    assert set(re.findall(r'^ +\["(\w+)", "[^"]+:"\],?$|code: \[\["(\w+)"', steps, re.MULTILINE)) == {
        (name, "") for name in code_lines.QUOTED if name != "bleu"
    } | {("", "bleu")}


def test_one_file_loads_nothing_and_escapes_what_users_wrote(content: dict[str, Any]) -> None:
    changed = {**content, "reference": "</script><script>alert(1)</script>"}
    page = learning_page([changed])
    assert page.count("</script>") == page.count("<script") == 3
    assert "<link" not in page
    assert not re.search(r'\b(?:src|action)="', page)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    carried = re.search(r'id="lessons">(.*?)</script>', page)
    assert carried
    assert json.loads(carried[1])[0]["reference"] == changed["reference"]


def test_a_server_gives_the_page_without_lessons() -> None:
    page = served_learning_page()
    assert 'id="lessons"></script>' in page
    assert 'src="learn.js"' in page
    facts = re.search(r'id="facts">(.*?)</script>', page)
    assert facts
    assert [one["text"] for one in json.loads(facts[1])["sentences"]] == [text for text, _ in bundled_sentences()]
    assert len(bundled_sentences()) == 8
