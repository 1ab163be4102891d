"""The attention page in Chromium: every gesture, and that what it shows is what was recorded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from torch import Tensor

from transduce.inspection.report import AttentionReport

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
TOLERANCE = 0.0008  # half a step of the three digits shown, after half a step of half precision
LAYER = 2  # where the page begins: the last of the decoder


def names(report: AttentionReport, side: str) -> list[str]:
    """Return what the page calls the tokens: continuing pieces begin with +."""
    tokens = getattr(report, side).tokens
    found = []
    for number, token in enumerate(tokens):
        body = token.text.removeprefix("▁") or "␣"
        is_inside = number > 0 and token.word is not None and tokens[number - 1].word == token.word
        is_marked = token.text.startswith("▁") or (number > 0 and tokens[number - 1].text == "▁")
        found.append(f"+{body}" if is_inside and not is_marked else body)
    return [
        name + str(number).translate(SUBSCRIPTS) if found.count(name) > 1 else name
        for number, name in enumerate(found, start=1)
    ]


def cross(report: AttentionReport) -> Tensor:
    return report.blocks["cross"].weights_LHQK[LAYER]


def check_readout(shown: dict[str, float], expected: Tensor, tokens: list[str]) -> None:
    by_name: dict[str, list[float]] = {}
    for name, value in zip(tokens, expected.tolist(), strict=True):
        by_name.setdefault(name, []).append(value)
    assert shown.keys() == by_name.keys()
    for name, value in shown.items():
        assert any(abs(value - other) <= TOLERANCE for other in by_name[name]), name


def test_opens_from_disk_and_shows_every_head(
    open_page: Callable[..., Any], address: str, report: AttentionReport
) -> None:
    page = open_page(f"{address}#view=model")
    assert page.page.locator("#view .grid button").count() == 3 * 5
    assert page.page.title() == f"Attention: {report.source.text}"
    assert page.text("#source") == report.source.text
    assert page.text("#target") == report.target.text
    assert "not an explanation" in page.text("footer")
    assert len(page.requests) == 1
    pixel = page.page.evaluate(
        """() => { const c = document.querySelector('[data-layer="1"][data-head="3"] canvas');
        return {size: [c.height, c.width], row: [...c.getContext("2d").getImageData(0, 2, c.width, 1).data]}; }"""
    )
    weights_QK = report.blocks["cross"].weights_LHQK[1, 3]
    assert pixel["size"] == list(weights_QK.shape)
    reds = torch.tensor(pixel["row"][::4]).float()
    assert (reds - (255 + (11 - 255) * weights_QK[2])).abs().max() <= 1.01


def test_model_view_previews_chooses_and_opens(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#view=model")
    head = page.page.locator('[data-layer="0"][data-head="2"]')
    head.hover()
    assert "layer 1, head 3:" in page.text("#readout")
    head.click()
    assert head.get_attribute("aria-pressed") == "true"
    assert (page.hash()["layer"], page.hash()["heads"]) == ("0", "2")
    page.page.locator('[data-layer="1"][data-head="4"]').dblclick()
    assert page.hash() == {"layer": "1", "head": "4", "heads": "4"}, "the head view is where the page begins"


def test_model_view_by_keyboard(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#view=model")
    page.page.locator('[data-layer="2"][data-head="0"]').focus()
    for key in ("ArrowUp", "ArrowRight"):
        page.page.keyboard.press(key)
    assert "layer 2, head 2:" in page.text("#readout")
    page.page.keyboard.press("Enter")
    assert page.hash()["heads"] == "1"
    page.page.keyboard.press("Enter")
    assert page.page.locator(".lines").count() == 1


def test_pointing_previews_and_clicking_pins(
    open_page: Callable[..., Any], address: str, report: AttentionReport
) -> None:
    page = open_page(f"{address}#view=head")
    targets, sources = names(report, "target"), names(report, "source")
    page.token("queries", targets[1]).hover()
    check_readout(page.readout(), cross(report)[:, 1].mean(dim=0), sources)
    page.page.mouse.move(640, 5)
    assert "Point at a token" in page.text("#readout")
    page.token("queries", targets[1]).click()
    page.page.mouse.move(640, 5)
    assert page.token("queries", targets[1]).get_attribute("aria-selected") == "true"
    check_readout(page.readout(), cross(report)[:, 1].mean(dim=0), sources)
    page.token("queries", targets[3]).click(modifiers=["Shift"])
    page.page.mouse.move(640, 5)
    assert page.hash()["pins"] == "1.3"
    check_readout(page.readout(), cross(report)[:, [1, 3]].mean(dim=0).sum(dim=0), sources)
    page.token("keys", sources[0]).click()
    page.page.mouse.move(640, 5)
    assert (page.hash()["side"], page.hash()["pins"]) == ("key", "0")
    check_readout(page.readout(), cross(report)[:, :, 0].mean(dim=0), targets)
    page.token("keys", sources[0]).click()
    assert "pins" not in page.hash()


def test_tokens_by_keyboard(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#view=head")
    page.page.locator(".queries li").first.focus()
    for key in ("ArrowDown", "Enter", "ArrowDown", "Shift+Enter"):
        page.page.keyboard.press(key)
    assert page.hash()["pins"] == "1.2"
    assert page.text("#announcement").endswith("pinned")
    page.page.keyboard.press("Escape")
    assert "pins" not in page.hash()
    for key in ("ArrowRight", "End", "Space"):
        page.page.keyboard.press(key)
    assert page.hash()["side"] == "key"
    assert page.page.locator(".keys li").last.get_attribute("aria-selected") == "true"


def test_heads_toggle_and_solo(open_page: Callable[..., Any], address: str, report: AttentionReport) -> None:
    page = open_page(f"{address}#view=head&pins=0")
    chips = page.page.locator("#heads button")
    assert [chips.nth(n).inner_text() for n in range(5)] == ["1", "2", "3", "4", "5"]
    chips.nth(1).click()
    assert chips.nth(1).get_attribute("aria-pressed") == "false"
    check_readout(page.readout(), cross(report)[[0, 2, 3, 4], 0].mean(dim=0), names(report, "source"))
    chips.nth(3).dblclick()
    assert page.hash()["heads"] == "3"
    check_readout(page.readout(), cross(report)[3, 0], names(report, "source"))
    chips.nth(2).press("Shift+Enter")
    assert page.hash()["heads"] == "2"
    chips.nth(2).press("Enter")
    assert "No head" in page.text("#readout")
    page.page.get_by_role("button", name="all heads").click()
    assert "heads" not in page.hash()


def test_mean_max_and_threshold(open_page: Callable[..., Any], address: str, report: AttentionReport) -> None:
    page = open_page(f"{address}#view=head&pins=2")
    page.page.select_option("#combine", "max")
    greatest = cross(report)[:, 2].amax(dim=0)
    check_readout(page.readout(), greatest, names(report, "source"))
    page.page.locator("#threshold").fill("30")
    assert page.text("#threshold-value") == "0.30"
    assert all(value >= 0.3 for value in page.readout().values())
    kept = {name for name, value in zip(names(report, "source"), greatest.tolist(), strict=True) if value >= 0.3}
    assert page.readout().keys() == kept


def test_special_tokens_hide_and_subwords_merge(
    open_page: Callable[..., Any], address: str, report: AttentionReport
) -> None:
    page = open_page(f"{address}#view=head")
    page.page.check("#specials")
    shown = page.page.locator(".queries li").all_inner_texts()
    assert shown == names(report, "target")[:-1]
    page.page.check("#words")
    words = page.page.locator(".queries li").all_inner_texts()
    assert words[:3] == ["der", "Hunde", "läuft"]
    page.token("queries", "Hunde").hover()
    rows = [n for n, token in enumerate(report.target.tokens) if token.word == 1]
    assert len(rows) > 1
    source_words = [token.word for token in report.source.tokens]
    from_word = cross(report).mean(dim=0)[rows].mean(dim=0)
    columns = [n for n, word in enumerate(source_words) if word == 1]
    assert len(columns) > 1
    assert page.readout()["dogs"] == pytest.approx(float(from_word[columns].sum()), abs=2 * TOLERANCE)


@pytest.mark.parametrize(
    ("stack", "rows", "columns"), [("encoder", "S", "S"), ("decoder", "T", "T"), ("all", "S+T", "S+T")]
)
def test_every_kind_of_attention(
    open_page: Callable[..., Any], address: str, report: AttentionReport, stack: str, rows: str, columns: str
) -> None:
    page = open_page(f"{address}#view=head")
    page.page.select_option("#stack", stack)
    source, target = len(report.source.ids), len(report.target.ids)
    sizes = {"S": source, "T": target, "S+T": source + target}
    assert page.page.locator(".queries li").count() == sizes[rows]
    assert page.page.locator(".keys li").count() == sizes[columns]
    keys = page.page.locator(".keys li").all_inner_texts()
    assert ("<start>" in keys) == (stack != "encoder")
    page.page.select_option("#layer", "0")
    last = page.page.locator(".queries li").last
    last.hover()
    weights = {name: block.weights_LHQK[0] for name, block in report.blocks.items()}
    expected = torch.cat([weights["cross"], weights["decoder"]], dim=-1) if stack == "all" else weights[stack]
    check_readout(page.readout(), expected[:, -1].mean(dim=0), keys)


def test_slider_walks_through_decoding(open_page: Callable[..., Any], address: str, report: AttentionReport) -> None:
    page = open_page(f"{address}#view=head")
    page.page.locator("#step").fill("3")
    assert page.text("#decoding output") == f"3 of {len(report.target.ids)}"
    shown = page.rows("#decoding")
    best = report.candidates[2]
    assert len(shown) in (len(best), len(best) + 1)
    assert shown[0][1].startswith(f"{100 * best[0].probability:.1f}"[:3])
    assert page.page.locator(".queries li.future").count() == len(report.target.ids) - 3
    page.page.locator(".queries li.future").first.hover()
    assert set(page.readout().values()) == {0.0}
    page.page.locator("#step").press("ArrowLeft")
    assert page.hash()["step"] == "2"


def test_the_address_holds_the_whole_state(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(address)
    page.page.get_by_role("tab", name="Matrix").click()
    page.page.select_option("#stack", "all")
    page.page.select_option("#combine", "max")
    page.page.locator("#threshold").fill("7")
    page.page.check("#words")
    page.page.check("#specials")
    page.page.locator("#heads button").nth(0).click()
    page.page.locator(".matrix").press("ArrowDown")
    page.page.locator(".matrix").press("Enter")
    page.page.get_by_role("button", name="Zoom in").click()
    page.page.locator("#step").fill("4")
    again = open_page(page.page.url)
    assert again.hash() == page.hash()
    assert len(page.hash()) >= 10
    for selector in ("#stack", "#combine", "#layer", "#threshold", "#step"):
        assert again.page.locator(selector).input_value() == page.page.locator(selector).input_value()
    assert again.page.is_checked("#words")
    assert again.page.is_checked("#specials")
    assert again.text("#readout") == page.text("#readout")
    page.page.get_by_role("button", name="Reset").click()
    assert page.hash() == {"view": "matrix"}


def test_a_senseless_address_is_put_right(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#view=x&stack=no&layer=99&heads=1.99.-4&pins=a.b&at=5&step=0&zoom=-3&threshold=1e9&q=%")
    assert page.page.locator("#view .lines").count() == 1
    assert page.page.locator("#heads button[aria-pressed=true]").count() == 1


def test_matrix_moves_zooms_and_reads_out(open_page: Callable[..., Any], address: str, report: AttentionReport) -> None:
    page = open_page(f"{address}#view=matrix&heads=1")
    frame = page.page.locator(".matrix")
    frame.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
        page.page.keyboard.press(key)
    weight = float(cross(report)[1, 2, 1])
    assert float(page.text("#announcement").rpartition(" ")[2]) == pytest.approx(weight, abs=TOLERANCE)
    check_readout(page.readout(), cross(report)[1, 2], names(report, "source"))
    page.page.keyboard.press("+")
    zoom = int(page.hash()["zoom"])
    page.page.keyboard.press("+")
    assert int(page.hash()["zoom"]) > zoom
    page.page.keyboard.press("0")
    assert "zoom" not in page.hash()
    frame.hover(position={"x": 120, "y": 160})
    page.page.keyboard.down("Control")
    page.page.mouse.wheel(0, -100)
    page.page.keyboard.up("Control")
    page.page.wait_for_function("location.hash.includes('zoom=')")
    frame.click(position={"x": 130, "y": 170})
    assert page.hash()["side" if "side" in page.hash() else "pins"].isdigit()
    pinned, column = int(page.hash()["pins"]), int(page.hash()["at"].split(".")[1])
    assert page.page.locator("#readout tr.on").inner_text().startswith(names(report, "source")[column])
    check_readout(page.readout(), cross(report)[1, pinned], names(report, "source"))


def test_neuron_view_follows_the_equation(open_page: Callable[..., Any], address: str, report: AttentionReport) -> None:
    page = open_page(f"{address}#view=neuron&stack=decoder&layer=1&head=2&heads=2&at=3.1")
    page.page.wait_for_selector("#view h2")
    weights_K, projections = report.blocks["decoder"].weights_LHQK[1, 2, 3], report.blocks["decoder"].projections
    assert projections is not None
    query_E, key_E = projections.query_LHQE[1, 2, 3], projections.key_LHKE[1, 2, 1]
    components = page.rows("#view .scroll >> nth=0 >> css=table")
    shown = torch.tensor([[float(cell) for cell in row[1:]] for row in components])
    expected = torch.stack([query_E, key_E, query_E * key_E], dim=-1)
    torch.testing.assert_close(shown, expected, atol=6e-5, rtol=0)
    assert f"q · k = {float(query_E @ key_E):.4f}" in page.text(".equation")
    rows = page.rows("#view .scroll >> nth=1 >> css=table")
    assert [row[3] for row in rows] == ["yes"] * 4 + ["no"] * (len(report.target.ids) - 4)
    weights = torch.tensor([float(row[4]) for row in rows])
    torch.testing.assert_close(weights, weights_K, atol=6e-5, rtol=0)
    output = torch.tensor([float(row[3]) for row in page.rows("#view .scroll >> nth=2 >> css=table")])
    mixed_G = weights_K @ projections.value_LHKG[1, 2]
    torch.testing.assert_close(output, mixed_G, atol=6e-5, rtol=0)
    page.page.select_option("#neuron-key", "0")
    assert page.hash()["at"] == "3.0"
    page.page.select_option("#stack", "all")
    page.page.select_option("#neuron-key", str(len(report.source.ids)))
    page.page.wait_for_selector("text=No head connects")


def test_without_numbers_the_neuron_view_says_how_to_get_them(open_page: Callable[..., Any], long_address: str) -> None:
    page = open_page(f"{long_address}#view=neuron")
    page.page.wait_for_selector("text=--numbers")


@pytest.mark.parametrize("view", ["model", "head", "neuron", "matrix"])
def test_pictures_are_saved(open_page: Callable[..., Any], address: str, view: str, tmp_path: Path) -> None:
    page = open_page(f"{address}#view={view}&threshold=10&pins=1.2")
    page.page.wait_for_timeout(50)
    with page.page.expect_download() as drawn:
        page.page.get_by_role("button", name="SVG").click()
    drawn.value.save_as(tmp_path / "a.svg")
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    texts = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts
    if view in ("head", "matrix"):
        assert "<b>" in texts
    with page.page.expect_download() as painted:
        page.page.get_by_role("button", name="PNG").click()
    painted.value.save_as(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    width = int.from_bytes(content[16:20], "big")
    assert width == 2 * int(root.attrib["width"])
    assert painted.value.suggested_filename == f"attention-{view}-cross-layer-3.png"


def test_alignment_is_that_of_the_report(open_page: Callable[..., Any], address: str, report: AttentionReport) -> None:
    page = open_page(address)
    assert report.alignment is not None
    shown = page.rows("#alignment")
    assert len(shown) == len(report.alignment.hard)
    for row, soft, hard in zip(shown, report.alignment.soft, report.alignment.hard, strict=True):
        assert hard is not None
        assert float(row[-1]) == pytest.approx(soft[hard], abs=0.006)
    assert json.loads(report.to_json())["alignment"]["layer"] == 1
    assert "cross, layer 2, mean of the heads" in page.text("#alignment")
