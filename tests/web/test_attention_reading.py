"""What a reader needs to read the attention page: scales, keys, digits, positions, and choices that carry over."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from tests.web.conftest import make_network, make_report, written
from tests.web.test_attention_page import LAYER, check_readout, cross, names

from transduce.inspection.report import AttentionReport
from transduce.model import Transformer

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]


def test_only_known_digits_are_printed_and_candidates_keep_their_word_start(
    open_page: Callable[..., Any], served: str
) -> None:
    found = open_page(served).page.evaluate(
        """async () => {
          const { candidateText, weightText } = await import("./report.js");
          const after = (text, before) => candidateText({ text }, before && { text: before });
          return {
            halves: [0.6558, 0.0017, 0.00002, 0].map((weight) => weightText(weight, 3)),
            bytes: [0.6558, 0.0017].map((weight) => weightText(weight, 2)),
            candidates: [after("▁Hund", "▁der"), after("heit", "▁Frei"), after(".", "▁Hund"), after("Hund", "▁"),
                         after("Hund"), after("<EOS>", "."), after("犬", "猫"), after("▁", "▁der")],
          };
        }"""
    )
    assert found["halves"] == ["0.656", "0.0017", "< 0.0001", "0"]
    assert found["bytes"] == ["0.66", "0.00"]
    assert found["candidates"] == ["Hund", "+heit", ".", "Hund", "Hund", "<EOS>", "犬", "␣"]


def test_rows_of_bytes_sum_to_one(open_page: Callable[..., Any], served: str) -> None:
    total = open_page(served).page.evaluate(
        """async () => {
          const { readReport } = await import("./report.js");
          const block = { shape: [1, 1, 1, 200], base64_u8: btoa("\\x01".repeat(200)) };
          const nothing = { text: "", language: null, tokens: [] };
          const { encoder } = readReport({ format: "transduce-attention", format_version: 1, source: nothing,
            target: nothing, weights: { encoder: block, decoder: block, cross: block },
            entropy: { encoder: [[7]], decoder: [[7]], cross: [[7]] } }).stacks;
          return Array.from({ length: 200 }, (_, key) => encoder.weight(0, 0, 0, key)).reduce((a, b) => a + b);
        }"""
    )
    assert total == pytest.approx(1, abs=1e-5), "200 bytes of 1/255 sum to 0.78"


def test_one_head_is_read_out_and_a_pinned_token_carries_over(
    open_page: Callable[..., Any], address: str, report: AttentionReport
) -> None:
    page = open_page(f"{address}#head=3")
    targets, sources = names(report, "target"), names(report, "source")
    page.token("queries", targets[2]).click()
    page.page.mouse.move(640, 5)
    page.page.select_option("#read", "3")
    check_readout(page.readout(), cross(report)[3, 2], sources)
    assert "(head 4)" in page.text("#readout caption")
    strongest = int(cross(report)[3, 2].argmax())
    page.page.get_by_role("tab", name="Neuron view").click()
    assert page.page.locator("#neuron-query").input_value() == "2"
    assert page.page.locator("#neuron-key").input_value() == str(strongest)
    page.page.go_back()
    assert page.page.locator(".lines").is_visible(), "Back leaves the view, not the page"
    page.page.get_by_role("tab", name="Model view").click()
    page.page.locator(f'[data-layer="{LAYER}"][data-head="1"]').focus()
    for _ in range(2):
        page.page.keyboard.press("Enter")
    assert page.page.evaluate("document.activeElement.getAttribute('role')") == "option", "the focus is in the new view"


def test_a_long_matrix_is_readable(open_page: Callable[..., Any], long_address: str) -> None:
    page = open_page(f"{long_address}#view=matrix&layer=1")
    assert page.page.locator("#scale").input_value() == "log"
    assert "0.001 or less" in page.text(".legend")
    page.page.select_option("#scale", "row")
    assert "largest of its row" in page.text(".legend")


def test_shades_follow_their_scale(open_page: Callable[..., Any], served: str) -> None:
    found = open_page(served).page.evaluate(
        """async () => {
          const { shadesOf } = await import("./picture.js");
          const weights = Float32Array.from([0.5, 0.1, 0, 0.001, 0.002, 0.004]);
          return ["linear", "log", "row"].map((scale) => [...shadesOf(weights, 3, scale, 0.5)]);
        }"""
    )
    weights = torch.tensor([0.5, 0.1, 0, 0.001, 0.002, 0.004])
    logarithmic = (1 + weights.log10() / 3).clamp(min=0)
    by_row = weights.view(2, 3) / weights.view(2, 3).amax(dim=1, keepdim=True)
    for shades, expected in zip(found, (weights / 0.5, logarithmic, by_row.flatten()), strict=True):
        assert shades == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize(("view", "key"), [("head", "colour: head"), ("matrix", "0"), ("model", "0")])
def test_views_say_what_they_show_and_pictures_have_a_key(
    open_page: Callable[..., Any], address: str, tmp_path: Path, view: str, key: str
) -> None:
    page = open_page(f"{address}#view={view}")
    about = page.text("#about")
    assert "quer" in about
    assert "weight" in about
    with page.page.expect_download() as drawn:
        page.page.get_by_role("button", name="SVG").click()
    drawn.value.save_as(tmp_path / "a.svg")
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert key in ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_it_fits_a_large_screen_many_heads_and_a_phone(
    open_page: Callable[..., Any], address: str, tmp_path: Path
) -> None:
    wide = open_page(f"{address}#view=head", width=3840, height=2160)
    assert wide.page.locator("main").bounding_box()["width"] > 3000
    report = make_report("the dog runs.", "der Hund läuft.", network=make_network(layers=1, heads=16), numbers=True)
    page = open_page(f"{written(report, tmp_path / 'page.html')}#view=model")
    spans = page.page.locator(".grid .label").evaluate_all(
        "all => all.slice(1, 17).map(one => [one.getBoundingClientRect().left, one.scrollWidth])"
    )
    assert all(left + width <= after for (left, width), (after, _) in itertools.pairwise(spans))
    small = open_page(f"{address}#view=neuron", width=360)
    small.page.wait_for_selector("th.index")
    heights = small.page.locator("th.index").evaluate_all("all => all.map(one => one.clientHeight)")
    assert len(set(heights)) == 1, "no number is broken into two lines"


def test_a_report_in_a_notebook(
    open_page: Callable[..., Any], report: AttentionReport, network: Transformer, tmp_path: Path
) -> None:
    assert len(repr(report)) < 500
    assert "cross (3, 5," in repr(report)
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8>{report._repr_html_()}", encoding="utf-8")
    page = open_page(notebook.as_uri()).page
    assert "trust this notebook" in page.locator("p").inner_text()
    inside = page.frame_locator("iframe")
    inside.get_by_role("tab", name="Neuron view").click()
    inside.locator("text=4. Values").wait_for()
    page.wait_for_timeout(100)
    height = inside.locator("html").evaluate("page => [page.scrollHeight, page.clientHeight]")
    assert height[0] <= height[1], "the frame needs no scroll bar of its own"
