"""The attention page beyond weights: every key as a strip, shares of weighted values, and a head taken out."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.web.conftest import TOKENIZER, make_report, written

import transduce
from transduce.inspection.ablation import with_ablation
from transduce.inspection.page import attention_page, beside_page
from transduce.inspection.report import AttentionReport
from transduce.model import Transformer

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]


def test_strips_show_every_key_with_the_share_of_its_weighted_value(
    open_page: Callable[..., Any], address: str, report: AttentionReport
) -> None:
    block = report.blocks["decoder"]
    assert block.projections is not None
    norms_LH1K = block.projections.value_LHKG.norm(dim=-1)[:, :, None].numpy()
    sizes_LHQK = block.weights_LHQK.numpy() * norms_LH1K
    shares_LHQK = sizes_LHQK / sizes_LHQK.sum(axis=-1, keepdims=True)
    differing = np.abs(shares_LHQK - block.weights_LHQK.numpy()).max(axis=-1)[:, :, 3:-1]
    layer, head, row = np.unravel_index(differing.argmax(), differing.shape)
    assert differing.max() > 0.05, "the share must not be the weight"
    page = open_page(f"{address}#view=neuron&stack=decoder&layer={layer}&head={head}&at={row + 3}.1")
    page.page.wait_for_selector(".strips")
    shown = [float(text) for text in page.page.locator("td.share-column").all_inner_texts()]
    assert shown == pytest.approx(shares_LHQK[layer, head, row + 3].tolist(), abs=6e-4)
    assert page.page.locator(".strips tr.masked").count() == shares_LHQK.shape[-1] - (row + 4)
    page.page.locator(".strips tbody button").nth(2).click()
    expect(page.page.locator("#neuron-key")).to_have_value("2")
    page.page.get_by_role("tab", name="Head view").click()
    page.page.locator(".queries li").nth(2).click()  # the strips follow the pinned token
    page.page.get_by_role("tab", name="Neuron view").click()
    expect(page.page.locator("#neuron-query")).to_have_value("2")


def test_a_head_taken_out_shows_what_would_be_predicted(
    open_page: Callable[..., Any], report: AttentionReport, network: Transformer, tmp_path: Path
) -> None:
    bare = open_page(written(report, tmp_path / "bare.html"))
    assert not bare.page.locator("#ablation").is_visible(), "a report without ablation has no such panel"
    content = with_ablation(replace(report, has_numbers=False), network, TOKENIZER)
    page = open_page(f"{written(content, tmp_path / 'page.html')}#stack=cross&layer=2&head=1&step=3")
    assert content.without is not None
    own = content.without["cross"][2][1]
    change = sum(own.log_probabilities) - sum(token.log_probability or 0 for token in report.target.tokens)
    assert f"changes by {change:.2f}" in page.text("#ablation")
    shown = page.rows("#ablation")
    assert [row[1] for row in shown[:5]] == [percent(one.probability) for one in own.candidates[2]]
    page.page.select_option("#removed", index=4)
    assert page.hash()["head"] == "4"
    results = Axe().run(page.page)
    assert results.violations_count == 0, results.generate_report()


def percent(value: float) -> str:
    if value < 0.0005:
        return "< 0.1 %"
    return f"{100 * value:.1f} %" if value < 0.0995 else f"{100 * value:.0f} %"


@pytest.mark.parametrize("keys", [None, ["ein", "Hund", "bellt"]])
def test_anybodys_tensors_have_every_view(
    open_page: Callable[..., Any], tmp_path: Path, keys: list[str] | None
) -> None:
    tokens = ["a", "dog", "##s", "barks"]
    weights = np.random.default_rng(1).dirichlet(np.ones(len(keys or tokens)), size=(2, 3, 4))
    path = tmp_path / "page.html"
    path.write_text(transduce.show_attention(tokens, weights, keys=keys).to_html(), encoding="utf-8")
    page = open_page(f"{path.as_uri()}#view=matrix&layer=1&heads=2&at=3.1")
    shown = sorted(page.readout().values())
    assert shown == pytest.approx(sorted(weights[1, 2, 3]), abs=0.001)
    assert page.page.locator("[role=tab]:visible").all_inner_texts() == ["Head view", "Model view", "Matrix"]
    assert not page.page.locator("#precision").is_visible()


def test_reports_side_by_side_follow_each_other(
    open_page: Callable[..., Any], report: AttentionReport, network: Transformer, tmp_path: Path
) -> None:
    other = make_report("the dog runs.", "der Hund läuft.", network=network, numbers=False)
    pages = [(name, attention_page(one.to_dictionary())) for name, one in (("one", report), ("<b>two", other))]
    path = tmp_path / "page.html"
    path.write_text(beside_page(pages), encoding="utf-8")
    page = open_page(path.as_uri(), width=1600).page
    assert page.locator("h2").all_inner_texts() == ["one", "<b>two"]
    left, right = (page.frame_locator("iframe").nth(number) for number in (0, 1))
    left.get_by_role("tab", name="Matrix").click()
    expect(right.get_by_role("tab", name="Matrix")).to_have_attribute("aria-selected", "true")
    right.locator("#layer").select_option("0")
    expect(left.locator("#layer")).to_have_value("0")
    left.locator("#stack").select_option("encoder")
    expect(right.locator("#stack")).to_have_value("encoder")
    expect(right.locator(".zoom output")).to_contain_text("source → itself")
