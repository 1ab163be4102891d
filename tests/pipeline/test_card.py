"""The card says what a corpus file is called without letting the name be HTML or Markdown."""

from markdown_it import MarkdownIt

from transduce.model_directory import in_card
from transduce.pipeline.card import _data_lines

NAME = "<img src=x onerror=alert(1)>|`b` [a](javascript:1) **c** \\| &lt;\x1b]0;x\x07\n# d.tsv"


def test_a_corpus_files_name_is_text_in_the_card() -> None:
    lines = _data_lines({"pairs": 7, "origin": NAME, "files": [{"name": NAME, "bytes": 9, "sha256": "ab"}]})
    html = MarkdownIt("commonmark").enable("table").render("\n".join(lines))
    shown = NAME.replace("\x1b", r"\x1b").replace("\x07", r"\x07").replace("\n", r"\n")
    for tag in ("<img", "<code>b", "<a ", "<strong>", "<h1>", "\x1b"):
        assert tag not in html
    assert html.count(shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")) == 2
    assert in_card("train_v2 (1).tsv.gz") == "train_v2 (1).tsv.gz"
