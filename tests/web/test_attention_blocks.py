"""The attention page for whatever blocks a report has: other networks, one block only, and reports of version 1."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from tests.importing.bert_folder import write_model
from tests.inspection.other_networks import MeanConfig, OneBlockNetwork
from tests.web.conftest import TOKENIZER, make_report, written

from transduce.inspection.page import attention_page
from transduce.inspection.report import AttentionReport
from transduce.loaded_encoder import LoadedEncoder
from transduce.networks.attention_axes import Axis
from transduce.rivals.rnnsearch import RnnSearch
from transduce.rivals.rnnsearch_config import RnnSearchConfig

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

VERSION_1 = Path(__file__).parent / "version_1_report.json"  # written by the last commit that wrote version 1
SOURCE, TARGET = "the dog runs.", "der Hund läuft."


def one_block(name: str, queries: Axis, keys: Axis) -> AttentionReport:
    config = MeanConfig(vocabulary_size=TOKENIZER.vocabulary_size, d_model=5)
    network = OneBlockNetwork(config, name=name, queries=queries, keys=keys).eval()
    return make_report(SOURCE, TARGET, network=network, numbers=True)


def without(side: str, content: dict[str, Any]) -> dict[str, Any]:
    """Return a report's JSON as of a network that has no source, or no target."""
    changes: dict[str, Any] = {side: {"text": "", "language": None, "tokens": []}}
    return {**content, **changes, **({"candidates": []} if side == "target" else {})}


def save(content: dict[str, Any], path: Path) -> str:
    path.write_text(attention_page(content), encoding="utf-8")
    return path.as_uri()


def shown_controls(page: Any) -> set[str]:  # noqa: ANN401
    names = ("stack", "layer", "combine", "scale", "threshold", "specials", "words", "heads")
    return {name for name in names if page.page.locator(f"#{name}").is_visible()}


def tabs(page: Any) -> list[str]:  # noqa: ANN401
    found: list[str] = page.page.locator("[role=tab]:visible").all_inner_texts()
    return found


def test_a_report_of_version_1_is_shown_as_it_was_written(open_page: Callable[..., Any], tmp_path: Path) -> None:
    content = json.loads(VERSION_1.read_text(encoding="utf-8"))
    assert content["format_version"] == 1
    address = save(content, tmp_path / "old.html")
    for name in ("encoder", "decoder", "cross"):
        block = content["weights"][name]
        weights_LHQK = np.frombuffer(base64.b64decode(block["base64_u8"]), np.uint8).reshape(block["shape"]) / 255
        page = open_page(f"{address}#view=matrix&stack={name}&layer=0&heads=1&at=2.0")
        found = sorted(float(row[1]) for row in page.rows("#readout"))
        assert found == pytest.approx(sorted(weights_LHQK[0, 1, 2]), abs=0.0051)
        assert all(len(row[1]) == len("0.00") for row in page.rows("#readout")), "a byte knows two decimals"
        bits = content["entropy"][name][0][1]
        label = page.page.locator("#heads button").nth(1).get_attribute("aria-label")
        assert label == f"head 2, entropy {bits:.2f} bits"
    assert [row[0] for row in page.rows("#alignment")] == ["der", "Hund", "läuft", "."]
    assert tabs(page) == ["Head view", "Model view", "Neuron view", "Matrix"]
    page.page.select_option("#stack", "all")
    size = sum(len(content[side]["tokens"]) for side in ("source", "target"))
    assert f"all in one, {size} × {size}" in page.text(".zoom")


def test_numbers_of_version_1_are_computed_with(open_page: Callable[..., Any], tmp_path: Path) -> None:
    content = json.loads(VERSION_1.read_text(encoding="utf-8"))
    page = open_page(f"{save(content, tmp_path / 'old.html')}#view=neuron&stack=decoder&layer=1&head=2&heads=2&at=3.1")
    page.page.wait_for_selector("text=4. Values")
    decoder = content["numbers"]["decoder"]
    query, key = (
        np.frombuffer(base64.b64decode(decoder[name]["base64_f32"]), "<f4").reshape(decoder[name]["shape"])[1, 2]
        for name in ("query", "key")
    )
    scores = query[3] @ key[:4].T * content["numbers"]["scale"]
    expected = np.exp(scores) / np.exp(scores).sum()
    rows = page.rows("#view .scroll >> nth=1 >> css=table")
    assert [float(row[4]) for row in rows[:4]] == pytest.approx(expected.tolist(), abs=6e-5)
    assert [row[3] for row in rows] == ["yes"] * 4 + ["no"] * (len(rows) - 4)


def test_a_single_block_needs_fewer_controls(open_page: Callable[..., Any], tmp_path: Path) -> None:
    report = one_block("cross", "target", "source")
    page = open_page(written(report, tmp_path / "page.html"))
    assert tabs(page) == ["Head view", "Matrix"]
    assert shown_controls(page) == {"threshold", "specials", "words"}
    assert page.text(".headings").split("\n") == ["translation (queries)", "source (keys)"]
    page.page.locator(".queries li").nth(1).hover()
    expected = report.blocks["cross"].weights_LHQK[0, 0, 1].tolist()
    assert sorted(page.readout().values()) == pytest.approx(sorted(expected), abs=0.0008)
    assert "Read off cross:" in page.text("#alignment")
    page.page.get_by_role("tab", name="Head view").focus()
    page.page.keyboard.press("ArrowRight")
    assert page.hash()["view"] == "matrix"
    page.page.keyboard.press("ArrowRight")
    assert "view" not in page.hash(), "the arrows pass over views that are not offered"
    again = open_page(f"{page.page.url}#view=neuron&stack=all&layer=3")
    assert again.page.locator(".lines").count() == 1


def test_rnnsearch_is_one_head_with_a_neuron_view(open_page: Callable[..., Any], tmp_path: Path) -> None:
    torch.manual_seed(3)
    sizes = {"d_model": 6, "embedding_width": 5, "alignment_width": 7, "output_width": 4}
    network = RnnSearch(RnnSearchConfig(vocabulary_size=TOKENIZER.vocabulary_size, **sizes)).eval()
    with torch.no_grad():
        network.alignment.v_A.mul_(9.0)  # make the alignment choose
    report = make_report(SOURCE, TARGET, network=network, numbers=True)
    page = open_page(f"{written(report, tmp_path / 'page.html')}#view=neuron&at=2.1")
    assert tabs(page) == ["Head view", "Neuron view", "Matrix"]
    assert shown_controls(page) == set()
    assert not page.page.locator("#neuron-head").is_visible()
    page.page.wait_for_selector("text=4. Values")
    assert page.text(".equation").startswith("v · tanh(q + k) = ")
    weights = [float(row[4]) for row in page.rows("#view .scroll >> nth=1 >> css=table")]
    assert weights == pytest.approx(report.blocks["cross"].weights_LHQK[0, 0, 2].tolist(), abs=6e-5)


def test_a_language_model_and_an_encoder_alone(open_page: Callable[..., Any], tmp_path: Path) -> None:
    model = one_block("text", "target", "read").to_dictionary()
    encoder = one_block("encoder", "source", "source").to_dictionary()
    page = open_page(save(without("source", model), tmp_path / "model.html"))
    assert page.page.locator(".keys li").first.inner_text() == "<start>"
    assert page.page.title() == f"Attention: {TARGET}"
    assert not page.page.locator("#source").is_visible()
    assert page.page.locator("#decoding").is_visible()
    assert not page.page.locator("#alignment").is_visible()
    page.page.get_by_role("tab", name="Matrix").click()
    assert "head 1; strongest: 1.000" in page.text(".zoom")
    assert "text → itself" in page.text(".zoom")
    page = open_page(save(without("target", encoder), tmp_path / "encoder.html"))
    count = len(encoder["source"]["tokens"])
    assert [page.page.locator(f".{side} li").count() for side in ("queries", "keys")] == [count, count]
    for hidden in ("#target", "#decoding", "#alignment", "#precision"):
        assert not page.page.locator(hidden).is_visible()


def test_two_texts_that_are_read_together_have_views_of_each_to_each(
    open_page: Callable[..., Any], tmp_path: Path
) -> None:
    report = LoadedEncoder.load(write_model(tmp_path), threads=1).attention("the cats", second="sat.", numbers=True)
    weights_QK = report.blocks["encoder"].weights_LHQK[0, 1].numpy()
    address = written(report, tmp_path / "page.html")
    page = open_page(f"{address}#view=matrix&stack=encoder_BA&layer=0&heads=1&at=1.0")
    titles = page.page.locator("#stack option").all_inner_texts()
    assert [title.partition(": ")[2] for title in titles] == [
        *("texts A, B → itself", "text A → itself", "text A → text B", "text B → text A", "text B → itself")
    ]
    assert page.rows("#readout")[0][0] == ["[CLS]", "the", "cat", "+s", "[SEP]"][weights_QK[6, :5].argmax()]
    assert sorted(page.readout().values()) == pytest.approx(sorted(weights_QK[6, :5]), abs=0.0008)
    logs_QK = np.log2(weights_QK, out=np.zeros_like(weights_QK), where=weights_QK > 0)
    bits = -(weights_QK * logs_QK).sum(axis=1)[5:].mean()
    label = page.page.locator("#heads button").nth(1).get_attribute("aria-label")
    assert float(label.split()[3]) == pytest.approx(bits, abs=0.02)
    page = open_page(f"{address}#view=neuron&stack=encoder_AB&layer=0&head=1&heads=1&at=2.1")
    page.page.wait_for_selector("text=4. Values")
    rows = page.rows("#view .scroll >> nth=1 >> css=table")
    assert [float(row[4]) for row in rows] == pytest.approx(weights_QK[2].tolist(), abs=6e-5)
    assert Axe().run(page.page).violations_count == 0


@pytest.mark.parametrize("width", [1280, 360])
def test_axe_finds_nothing_to_object_to_in_a_single_block(
    open_page: Callable[..., Any], tmp_path: Path, width: int
) -> None:
    address = written(one_block("cross", "target", "source"), tmp_path / "page.html")
    for view in ("head", "matrix"):
        page = open_page(f"{address}#view={view}", width=width)
        results = Axe().run(page.page)
        assert results.violations_count == 0, results.generate_report()
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width


def test_blocks_may_differ_in_heads_and_projections(
    open_page: Callable[..., Any], report: AttentionReport, tmp_path: Path
) -> None:
    encoder = report.blocks["encoder"]
    narrow = replace(encoder, weights_LHQK=encoder.weights_LHQK[:, :2], projections=None)
    mixed = replace(report, blocks={**report.blocks, "encoder": narrow})
    page = open_page(f"{written(mixed, tmp_path / 'page.html')}#view=neuron")
    options = page.page.locator("#stack option").all_inner_texts()
    assert [option.partition(":")[0] for option in options] == ["encoder", "decoder", "cross"], "no square of all"
    page.page.select_option("#stack", "encoder")
    assert tabs(page) == ["Head view", "Model view", "Matrix"]
    page.page.get_by_role("tab", name="Model view").click()
    assert page.page.locator(".grid button").count() == 2 * 2
    page.page.get_by_role("tab", name="Matrix").click()
    assert page.page.locator("#heads button").count() == 2 + 1
    assert "heads" not in page.hash()
    mean = narrow.weights_LHQK[1, :, 0].mean(dim=0)
    assert sorted(page.readout().values()) == pytest.approx(sorted(mean.tolist()), abs=0.0008)
    page.page.select_option("#stack", "cross")
    assert page.page.locator("#heads button[aria-pressed=true]").count() == 5


def test_controls_that_change_nothing_in_a_view_are_hidden(open_page: Callable[..., Any], address: str) -> None:
    expected = {
        "model": {"stack", "scale", "specials", "words"},
        "head": {"stack", "layer", "combine", "threshold", "specials", "words", "heads"},
        "neuron": {"stack", "layer"},
        "matrix": {"stack", "layer", "combine", "scale", "threshold", "specials", "words", "heads"},
    }
    for view, names in expected.items():
        assert shown_controls(open_page(f"{address}#view={view}")) == names


def test_every_half_precision_weight_is_read(open_page: Callable[..., Any], served: str) -> None:
    halves = np.arange(0x3C01, dtype="<u2").view("<f2")  # from 0 to 1
    block = {
        "queries": "source",
        "keys": "source",
        "shape": [1, 1, 1, len(halves)],
        "entropy": [[0]],
        "has_projections": False,
        "base64_f16": base64.b64encode(halves.tobytes()).decode("ascii"),
    }
    nothing: dict[str, Any] = {"text": "", "language": None, "tokens": []}
    content = {"format": "transduce-attention", "format_version": 2, "source": nothing, "target": nothing}
    found = open_page(served).page.evaluate(
        """async (json) => {
          const { readReport } = await import("./report.js");
          const { x } = readReport(json).stacks;
          return Array.from({ length: json.blocks.x.shape[3] }, (_, key) => x.weight(0, 0, 0, key));
        }""",
        {**content, "blocks": {"x": block}},
    )
    expected = halves.astype(np.float64) / halves.astype(np.float64).sum()  # a row sums to 1
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_version_that_the_page_does_not_know_is_refused(open_page: Callable[..., Any], served: str) -> None:
    page = open_page(served)
    script = """async (json) => {
      const { readReport } = await import("./report.js");
      try { readReport(json); } catch (fault) { return fault.message; }
    }"""
    for content in ({"format": "transduce-attention", "format_version": 3}, {"format": "other", "format_version": 2}):
        assert "This page reads versions 1 and 2 of transduce-attention" in page.page.evaluate(script, content)
