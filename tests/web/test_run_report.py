"""The page of a run in a real Chromium: whole on a phone and on a desk, in light and dark, and deaf to markup."""

import json
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.web.conftest import Open

from transduce.experiment import resolve_experiment
from transduce.pipeline.report import append_samples, write_report
from transduce.training.metrics import Sample

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

HOSTILE = '</script><img src=x onerror=alert(1)><b>bold</b> & "quoted" \u2028 ובכן'


@pytest.fixture
def report(tmp_path: Path) -> Path:
    lines = [
        {
            "kind": "train",
            "step": s,
            "nll": 9 / s,
            "perplexity": 99 / s,
            "learning_rate": s * 1e-5,
            "gradient_norm": 1.0,
        }
        for s in range(1, 900)
    ]
    lines += [
        {"kind": "valid", "step": s, "loss": 8 / s, "perplexity": 80 / s, "bleu": s / 30} for s in (100, 500, 899)
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for step in (100, 500, 899):
        append_samples(tmp_path, step, [Sample(HOSTILE, "reference", f"{HOSTILE} {step}"), Sample("a", "b", "")])
    experiment = resolve_experiment(preset="tiny", overrides=["data.source_language=en"])
    facts = [("step", "899"), ("validation perplexity", "1.23")]
    data = {"train pairs": 1_234_567, "files": [{"name": "x" * 80, "sha256": "0" * 64}]}
    return write_report(tmp_path, experiment, status="finished", facts=facts, data=data)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_and_says_what_it_should(open_page: Open, report: Path, width: int, scheme: str) -> None:
    watched = open_page(report.as_uri(), width=width, scheme=scheme)
    page = watched.page
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#curves svg").count() == 5
    assert HOSTILE in [text.rsplit(" ", 1)[0] for text in page.locator(".sample dd").all_text_contents()]
    assert page.locator(".sample img").count() == 0
    assert "1,234,567" in watched.text("#tables")
    violations = Axe().run(page).response["violations"]
    assert violations == [], json.dumps(violations, indent=1)[:2000]


def test_axes_are_logarithmic_where_it_helps_and_can_be_read(open_page: Open, report: Path) -> None:
    page = open_page(report.as_uri(), width=360).page
    perplexity = page.locator("#curves figure").nth(1)
    labels = perplexity.locator("svg text[text-anchor=end]").all_text_contents()
    assert {"0.1", "1", "10"} <= set(labels), "powers of ten are equally spaced"
    sizes = page.locator("svg text").evaluate_all("all => all.map(t => t.getBoundingClientRect().height)")
    assert min(sizes) >= 12, "the text keeps its size on a phone"
    assert not page.locator("#log-steps").is_checked()
    before = perplexity.locator("path").first.get_attribute("d")
    page.locator("#log-steps").check()
    assert perplexity.locator("path").first.get_attribute("d") != before


def test_a_run_without_metrics_says_so(open_page: Open, tmp_path: Path) -> None:
    path = write_report(tmp_path, resolve_experiment(preset="tiny"), status="stopped", facts=[], data={})
    assert "has not written metrics" in open_page(path.as_uri()).text("#curves-section")


def test_curves_answer_pointer_and_keyboard(open_page: Open, report: Path) -> None:
    page = open_page(report.as_uri()).page
    chart = page.locator("#curves figure").first
    chart.locator("svg").hover(position={"x": 60, "y": 60})
    assert chart.locator("output").inner_text().startswith("step ")
    pointed = chart.locator("output").inner_text()
    chart.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    assert chart.locator("output").inner_text() != pointed
