"""The pages of `filter`, `parse` and `likelihood` in a real Chromium, and the attention page on a large screen."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.web.conftest import Open, Watched, make_network, make_report, written

from transduce.cli.surprise import surprise_page
from transduce.data.formats import Selection
from transduce.filtering.config import FilterConfig
from transduce.filtering.filtering import CorpusFilter
from transduce.filtering.report import report_page_content
from transduce.inspection.tree_drawing import page_of as page_of_trees
from transduce.pipeline.report import page_of as page_of_content
from transduce.text.trees import read_trees

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

PAIRS = "The dog sleeps.\tDer Hund schläft.\nWe have 3 dogs.\tWir haben 3 Hunde.\nI am 17 now.\tIch bin jetzt 18.\n"


def assert_fits_a_phone(page: Watched) -> None:
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.page.evaluate("document.querySelector('h1').getBoundingClientRect().left") >= 8
    paper = page.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in paper.removeprefix("rgb(").removesuffix(")").split(",")) < 64, "dark in the dark"
    assert Axe().run(page.page).response["violations"] == []


def test_the_page_of_a_filter_counts_kept_and_dropped_pairs(open_page: Open, tmp_path: Path) -> None:
    (tmp_path / "corpus.tsv").write_text(PAIRS, encoding="utf-8")
    filtering = CorpusFilter(str(tmp_path / "corpus.tsv"), Selection("en", "de"), FilterConfig())
    assert sum(verdict.dropped is None for verdict in filtering.verdicts()) == 2
    path = tmp_path / "filter.html"
    path.write_text(page_of_content(report_page_content(filtering.report, title="corpus.tsv")), encoding="utf-8")
    page = open_page(path.as_uri(), width=360, scheme="dark")
    figures = page.page.locator("#curves figure")
    told = {name: figures.filter(has_text=f"{name}:").locator("output").inner_text() for name in ("numbers", "empty")}
    assert told == {"numbers": "kept 2, dropped 1", "empty": "kept 3"}
    assert "Histograms" in page.text("#curves-section")
    assert not page.page.get_by_label("logarithmic axis of steps").is_visible()
    lines = "one => { const r = document.createRange(); r.selectNodeContents(one); return r.getClientRects().length }"
    heads = page.page.locator("#tables tr th:first-child").filter(has_text="kept")
    assert {head.evaluate(lines) for head in heads.all()} == {1}, "no word is broken into two lines"
    assert_fits_a_phone(page)


def test_the_page_of_trees(open_page: Open, tmp_path: Path) -> None:
    trees = [tree for _, tree in read_trees(["(S (NP (XX the) (XX dog)) (VP (XX sleeps)))"], name="x")]
    path = tmp_path / "trees.html"
    path.write_text(page_of_trees(trees, title="a model"), encoding="utf-8")
    page = open_page(path.as_uri(), width=360, scheme="dark")
    assert "XX stands for any word" in page.text("main")
    words = page.page.locator("svg .word").first.evaluate("one => getComputedStyle(one).fill")
    assert words == "rgb(230, 230, 227)", "light on dark"
    assert_fits_a_phone(page)


def test_the_page_of_a_likelihood(open_page: Open, tmp_path: Path) -> None:
    path = tmp_path / "likelihood.html"
    path.write_bytes(surprise_page("text.txt", [("to", -0.1), (" be", -9.0)]))
    page = open_page(path.as_uri(), width=360, scheme="dark")
    assert page.page.locator("i").all_inner_texts() == ["≤ 1", "≤ 3", "≤ 6", "≤ 10", "> 10"]
    shades = [page.page.locator(f"text={part}").last.evaluate("one => one.style.background") for part in ("> 10", "be")]
    assert shades[0] == shades[1], "9 nats are 13 bits"
    assert_fits_a_phone(page)


def test_a_large_screen_has_larger_cells_and_colours_are_not_called_dark(
    open_page: Open, address: str, tmp_path: Path
) -> None:
    report = make_report("the dog runs.", "der Hund läuft.", network=make_network(layers=1, heads=2), numbers=False)
    short = written(report, tmp_path / "short.html")
    heights = [
        open_page(f"{short}#view=matrix", width=width, height=2160)
        .page.locator(".spacer")
        .evaluate("one => one.clientHeight")
        for width in (1280, 3840)
    ]
    assert heights[1] > 1.4 * heights[0]
    assert "darker" not in open_page(f"{address}#view=model", scheme="dark").text("#about")
