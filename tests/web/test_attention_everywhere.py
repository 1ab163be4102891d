"""The attention page for everyone and everywhere: assistive technology, phones, the dark, notebooks, servers."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.web.conftest import make_report

from transduce.inspection.head_numbers import head_numbers
from transduce.inspection.page import attention_page
from transduce.inspection.report import AttentionReport
from transduce.model import Transformer

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

VIEWS = ("model", "head", "neuron", "matrix")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_axe_finds_nothing_to_object_to(
    open_page: Callable[..., Any], address: str, view: str, scheme: str, width: int
) -> None:
    page = open_page(f"{address}#view={view}&pins=1&step=5", width=width, scheme=scheme)
    page.page.locator("footer summary").click()
    results = Axe().run(page.page)
    assert results.violations_count == 0, results.generate_report()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("stack", ["cross", "all"])
def test_nothing_overflows_a_small_phone(open_page: Callable[..., Any], address: str, view: str, stack: str) -> None:
    page = open_page(f"{address}#view={view}&stack={stack}", width=360, height=640)
    page.page.wait_for_timeout(50)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_right_to_left_tokens_run_from_right_to_left(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#view=head&words=1")
    directions = page.page.eval_on_selector_all(
        ".queries li", "items => items.map(i => [i.textContent, getComputedStyle(i).direction])"
    )
    by_text = dict(directions)
    assert by_text["כלב"] == by_text["ובכן"] == "rtl"  # the second is spelled in bytes
    assert by_text["Hunde"] == "ltr"


def test_every_control_can_be_reached_and_named(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#view=matrix")
    reached: set[str] = set()
    for _ in range(40):
        page.page.keyboard.press("Tab")
        reached.add(page.page.evaluate("document.activeElement.id || document.activeElement.className || 'unnamed'"))
    wanted = {"tab-matrix", "stack", "layer", "combine", "threshold", "specials", "words", "step", "matrix"}
    assert wanted | {"export-png", "export-svg", "reset"} <= reached


def test_the_dark_has_other_colours_at_once(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#view=model")
    script = (
        "[...document.querySelector('#view canvas').getContext('2d').getImageData(0, 0, 50, 50).data].slice(0, 400)"
    )
    light = page.page.evaluate(script)
    page.page.emulate_media(color_scheme="dark")
    page.page.wait_for_function("getComputedStyle(document.body).backgroundColor === 'rgb(19, 21, 24)'")
    page.page.wait_for_timeout(300)  # the page draws again just after the style changes
    assert page.page.evaluate(script) != light


def test_a_page_of_several_sentences_lets_the_user_choose(
    open_page: Callable[..., Any], report: AttentionReport, network: Transformer, tmp_path: Path
) -> None:
    second = make_report("the dog runs.", "der Hund läuft.", network=network, numbers=False)
    path = tmp_path / "page.html"
    path.write_text(attention_page([report.to_dictionary(), second.to_dictionary()]), encoding="utf-8")
    page = open_page(f"{path.as_uri()}#view=matrix&layer=1&at=3.3")
    assert page.text("#source") == report.source.text
    page.page.select_option("#sentence", "1")
    expect(page.page).to_have_title("Attention: the dog runs.")
    assert page.hash() == {"view": "matrix", "layer": "1", "sentence": "2"}, "the view stays, the cell does not"
    assert f"{len(second.target.ids)} × {len(second.source.ids)}" in page.text(".zoom")
    page.page.locator("#layer").select_option("0")
    assert page.hash()["layer"] == "0", "the controls work in the second report"
    page.page.go_back()
    assert page.hash()["layer"] == "1", "Back undoes one choice and stays on the page"
    page.page.go_back()
    expect(page.page).to_have_title(f"Attention: {report.source.text}")


def test_a_notebooks_frame_shows_the_page(
    open_page: Callable[..., Any], report: AttentionReport, tmp_path: Path
) -> None:
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8>{report._repr_html_()}", encoding="utf-8")
    page = open_page(notebook.as_uri())
    frame = page.page.frame_locator("iframe")
    frame.get_by_role("tab", name="Head view").click()
    frame.locator(".queries li").first.click()
    assert frame.locator("#readout tbody tr").count() == len(report.source.ids)


def test_a_server_may_give_the_numbers_on_demand(
    open_page: Callable[..., Any], served: str, report: AttentionReport, network: Transformer, tmp_path: Path
) -> None:
    page = (tmp_path / "attention.html").read_text(encoding="utf-8")
    bare = replace(report, has_numbers=False).to_json().replace("<", "\\u003c")
    page = re.sub(r'(id="report">).*?(</script>)', lambda match: match[1] + bare + match[2], page, count=1)
    (tmp_path / "attention.html").write_text(page, encoding="utf-8")
    (tmp_path / "start.js").write_text(
        """import { showAttention } from "./attention.js";
import { headNumbersFrom } from "./numbers.js";
const ask = async (stack, layer, head) => headNumbersFrom(await (await fetch(`${stack}-${layer}-${head}.json`)).json());
showAttention(JSON.parse(document.getElementById("report").textContent), { numbers: ask });
""",
        encoding="utf-8",
    )
    numbers = head_numbers(network, report.source.ids, report.target.ids, "cross", 1, 2)
    (tmp_path / "cross-1-2.json").write_text(numbers.model_dump_json(), encoding="utf-8")
    shown = open_page(f"{served}#view=neuron&layer=1&head=2&heads=2&at=3.1")
    shown.page.wait_for_selector("text=3. All scores")
    weights = [float(row[4]) for row in shown.rows("#view .scroll >> nth=1 >> css=table")]
    assert weights == pytest.approx(report.blocks["cross"].weights_LHQK[1, 2, 3].tolist(), abs=6e-5)


def test_the_same_files_work_as_modules_from_a_server(open_page: Callable[..., Any], served: str) -> None:
    page = open_page(f"{served}#view=head")
    page.page.locator(".queries li").first.click()
    assert page.hash()["pins"] == "0"
    assert any(url.endswith("/matrix_view.js") for url in page.requests)


@pytest.mark.parametrize("view", ["head", "matrix", "model"])
def test_two_hundred_tokens_do_not_stutter(open_page: Callable[..., Any], long_address: str, view: str) -> None:
    page = open_page(f"{long_address}#view={view}&layer=1")
    middle = page.page.evaluate(
        """async (view) => {
          const frame = document.querySelector(".matrix");
          const targets = view === "head" ? [...document.querySelectorAll(".queries li")]
            : view === "model" ? [...document.querySelectorAll(".grid button")] : Array(60).fill(frame);
          const box = frame?.getBoundingClientRect();
          const times = [];
          for (const [index, target] of targets.slice(0, 60).entries()) {
            const [clientX, clientY] = [(box?.left ?? 0) + 150 + 2 * index, (box?.top ?? 0) + 150 + index];
            const kind = {head: "pointerover", matrix: "pointermove", model: "pointerenter"}[view];
            const start = performance.now();
            target.dispatchEvent(new PointerEvent(kind, {bubbles: true, clientX, clientY}));
            times.push(performance.now() - start);
            await new Promise((done) => setTimeout(done));
          }
          return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
        }""",
        view,
    )
    print(f"{view} view, 200 x 200 tokens: {middle:.1f} ms to follow the pointer (median)")
    assert middle < 60  # a sixteenth of a second; on a calm machine a few milliseconds
