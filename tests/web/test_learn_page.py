"""The learning page in Chromium: its numbers are right, its exercises judge, and everyone can use it."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from sacrebleu.metrics.bleu import BLEU

from transduce.decoding.beam_search import beam_search
from transduce.inspection.page import web_files
from transduce.inspection.search_record import ALPHAS, WIDEST, SearchEntry, searched_with
from transduce.learning.lesson import lesson
from transduce.learning.page import learning_page
from transduce.networks.stepwise import Ids, LogProbabilities
from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.translator import Translator

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]
STEPS = range(1, 7)
Lessons = list[dict[str, Any]]
TEXTS = ("I cannot find my keys.", "He said <b>no</b>.")


@pytest.fixture(scope="module")
def lessons() -> Lessons:
    translator = Translator.load("en-de", precision="float32", threads=1)
    return [lesson(translator, text, reference="Ich finde meine Schlüssel nicht.") for text in TEXTS]


@pytest.fixture(scope="module")
def address(lessons: Lessons, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "learn.html"
    path.write_text(learning_page(lessons), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def modules() -> Iterator[str]:
    """The modules of the page as a server gives them, so that a test can call what they export."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            if self.path != "/":
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b'<!doctype html><link rel="icon" href="data:,"><title>modules</title>')
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(web_files()))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class _Recorded:
    """The model that a record is, for the search in Python."""

    source_padding, tokens = 0, OWN_SPECIAL_TOKENS

    def __init__(self, record: SearchEntry, vocabulary: int) -> None:
        self.record, self.vocabulary = record, vocabulary

    def longest_target(self, source_length: int) -> None: ...

    def start(self, source_BS: Ids) -> list[tuple[int, ...]]:
        return []

    def step(self, state: list[tuple[int, ...]], tokens_BW: Ids) -> LogProbabilities:
        tokens = tokens_BW[0].tolist()
        state[:] = [(*prefix, token) for prefix, token in zip(state, tokens, strict=True)] if state else [()]
        rows = np.full((1, len(state), self.vocabulary), -np.inf)
        for row, prefix in enumerate(state):
            for token, log_probability in self.record.nodes[".".join(map(str, prefix))]:
                rows[0, row, token] = log_probability
        return rows

    def select(self, state: list[tuple[int, ...]], sentences_B: Ids, beams_BW: Ids) -> list[tuple[int, ...]]:
        return [state[beam] for beam in beams_BW[0].tolist()]


def test_the_pages_search_is_beam_search(open_page: Callable[..., Any], modules: str, lessons: Lessons) -> None:
    page = open_page(modules).page
    script = "async ([search, settings]) => (await import('./beam.js')).beamSearch(search, settings)"
    for content in lessons:
        record = SearchEntry.model_validate(content["search"])
        source = np.ones((1, len(content["report"]["source"]["tokens"])), dtype=np.int64)
        for beam in range(1, WIDEST + 1):
            for alpha in ALPHAS[::2]:
                mine = page.evaluate(script, [content["search"], {"beam": beam, "alpha": alpha}])
                best = beam_search(_Recorded(record, 8000), source, searched_with(beam, alpha, record.limit))[0][0]
                assert mine["best"]["tokens"] == list(best.tokens), (beam, alpha)
                assert mine["best"]["score"] == pytest.approx(best.score, abs=1e-9)
                kept = [sum(one["fate"] == "alive" for one in step) for step in mine["steps"]]
                assert max(kept) <= beam


def test_the_pages_bleu_is_that_of_sacrebleu(open_page: Callable[..., Any], modules: str) -> None:
    page = open_page(modules).page
    metric = BLEU(tokenize="13a", smooth_method="none", force=True)
    pairs = [
        ("the cat is on the mat today.", "the cat is on the mat."),
        ("Er zahlte 1,50 € (bar) – am 3.4.2017, nicht 5-mal!", "Er zahlte 1,50 € (bar) - am 3.4.2017, nicht 6-mal!"),
        ("der der der Hund läuft schnell nach Hause", "der Hund läuft langsam nach Hause"),
        ('a "b" & c; d@e.f [g] {h} ~i', 'a "b" &amp; c; d@e.f [g] {h} ~j'),
        ("zu kurz hier heute", "das ist viel zu kurz hier heute Abend"),
    ]
    script = "async (pairs) => (await import('./bleu.js')).bleuOf(pairs)"
    for some in [*([pair] for pair in pairs), pairs]:
        expected = metric.corpus_score([pair[0] for pair in some], [[pair[1] for pair in some]])
        found = page.evaluate(script, [list(pair) for pair in some])
        assert found["score"] == pytest.approx(expected.score, abs=1e-9)
        assert [own["matched"] for own in found["orders"]] == expected.counts
        assert [own["total"] for own in found["orders"]] == expected.totals
        assert found["brevity"] == pytest.approx(expected.bp, abs=1e-9)


def test_the_two_words_have_the_right_numbers(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#step=1").page
    expected = {  # worked out by hand, three decimals
        3: {"Q": [0.8, 1, 1.2, 0.5, 0.7, 0.9], "K": [1, 1.2, 0.5, 0.7, 0.9, 1.1], "scores": [2.6, 2.78, 1.79, 1.97]},
        4: {"scaled": [1.501, 1.605, 1.033, 1.137]},
        5: {"weights": [0.474, 0.526, 0.474, 0.526]},
        6: {"V": [1.2, 0.5, 0.7, 0.9, 1.1, 1.3], "Z": [1.042, 0.816, 1.016] * 2},
    }
    for stage, matrices in expected.items():
        page.locator(".stages button").nth(stage - 1).click()
        for name, numbers in matrices.items():
            shown = page.locator(f"table[data-name={name}] button").all_text_contents()
            assert [float(text) for text in shown] == numbers
    assert "coincidence" in page.locator(".remark").inner_text()
    page.locator("table[data-name=Z] button").first.hover()
    assert page.locator(".picture > .how").inner_text() == "Hello, Z: 0.47 × 1.2 + 0.53 × 0.9 = 1.042"
    page.locator(".stages button").nth(1).click()
    page.get_by_label("W^Q row 1 column 1").fill("0.9")
    assert page.locator("table[data-name=Q] button").first.inner_text() == "1.6"
    page.locator(".stages button").nth(5).click()
    expect(page.locator(".remark")).to_contain_text("different outputs")


def test_terms_of_the_equation_light_and_explain(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#step=1").page
    lit = page.locator(".term[aria-pressed=true]")
    page.locator(".stages button").nth(3).click()
    assert lit.all_inner_texts() == ["√dₖ"]
    page.get_by_role("button", name="softmax").first.click()
    assert lit.all_inner_texts() == ["softmax"]
    assert page.locator(".meaning").inner_text().startswith("softmax: turns a row of scores into weights")


def test_the_real_head_computes_what_the_network_computed(
    open_page: Callable[..., Any], address: str, lessons: Lessons
) -> None:
    page = open_page(f"{address}#step=1").page
    page.get_by_role("combobox", name="attention", exact=True).select_option(index=1)
    page.get_by_role("combobox", name="head", exact=True).select_option(index=3)
    page.get_by_role("combobox", name="the word that looks", exact=True).select_option(index=2)
    rows = page.locator(".strips tbody tr")
    expect(rows).to_have_count(len(lessons[0]["report"]["target"]["tokens"]))
    weights = [float(text) for text in page.locator(".weight-cell .number").all_inner_texts()]
    assert sum(weights[:3]) == pytest.approx(1, abs=2e-3)
    assert weights[3:] == [0.0] * len(weights[3:]), "later words are masked"
    page.locator(".strips tbody button").nth(4).click()
    expect(page.locator(".real .how")).to_contain_text("its score is −∞ and its weight 0")


def test_random_scores_grow_with_the_width_unless_they_are_scaled(open_page: Callable[..., Any], modules: str) -> None:
    page = open_page(modules).page
    script = """async () => {
      const { randomScores, meanSlope } = await import("./step_scale.js");
      const { deviationOf } = await import("./algebra.js");
      return [4, 64, 1024].map((width) => {
        const rows = randomScores(width, 16);
        const scaled = rows.map((row) => row.map((score) => score / Math.sqrt(width)));
        return [width, deviationOf(rows.flat()), meanSlope(rows), meanSlope(scaled)];
      });
    }"""
    found = page.evaluate(script)
    assert [row[1] for row in found] == pytest.approx([row[0] ** 0.5 for row in found], rel=0.1)
    assert min(row[3] for row in found) > 0.1
    assert found[-1][2] < 0.05


def test_hidden_cells_leave_their_weight_to_the_others(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#step=3").page

    def weights() -> list[float]:
        return [float(text) for text in page.locator(".picture .matrix-table .meter .value").all_inner_texts()]

    assert weights() == [0.506, 0.186, 0.307, 0.09, 0.665, 0.245, 0.333, 0.333, 0.333]
    page.get_by_role("button", name="nothing later").click()
    assert weights() == [1, 0, 0, 0.119, 0.881, 0, 0.333, 0.333, 0.333]
    page.get_by_role("button", name="position 3 is padding").click()
    assert weights() == [0.731, 0.269, 0, 0.119, 0.881, 0, 0.5, 0.5, 0]
    for key in (1, 2):
        page.get_by_label(f"query 1, key {key}:").click()
    assert weights()[:3] == [0, 0, 0]
    assert "would divide 0 by 0" in page.locator(".meaning").inner_text()
    hidden = page.locator(".use").nth(1).locator(".hidden-cell")
    count = hidden.count()
    assert count > 0
    assert page.locator(".use").nth(2).locator(".hidden-cell").count() == 0, "the source is not masked"
    page.get_by_label("take the causal mask away").check()
    expect(hidden).to_have_count(0)


def test_a_removed_head_shows_the_networks_probabilities(
    open_page: Callable[..., Any], address: str, lessons: Lessons
) -> None:
    page = open_page(f"{address}#step=4").page
    report = lessons[0]["report"]
    strongest = min(
        sum(head["log_probabilities"]) for kind in report["without"].values() for layer in kind for head in layer
    )
    times = np.exp(sum(token["log_probability"] for token in report["target"]["tokens"]) - strongest)
    said = page.locator(".picture .how").inner_text()
    assert float(said.partition(": it is ")[2].partition(" times less probable")[0]) == pytest.approx(times, abs=0.06)
    page.get_by_role("button", name="cross, layer 1, head 3:").click()
    own = report["without"]["cross"][0][2]
    whole = [token["log_probability"] for token in report["target"]["tokens"]]
    change = sum(own["log_probabilities"]) - sum(whole)
    assert f"{abs(change):.2f}" in page.locator(".picture .how").inner_text()
    shown = page.locator(".probabilities .value").all_inner_texts()
    expected = [np.exp(value) for pair in zip(whole, own["log_probabilities"], strict=True) for value in pair]
    assert [float(text) for text in shown] == pytest.approx(expected, abs=0.0051)
    page.locator(".probabilities button").nth(1).click()
    listed = page.locator("ol.bars").nth(1).locator(".value").all_inner_texts()
    assert [float(text) for text in listed] == pytest.approx(
        [one["probability"] for one in own["candidates"][1]], abs=0.0051
    )


def test_the_tree_grows_and_follows_the_sliders(open_page: Callable[..., Any], address: str, lessons: Lessons) -> None:
    page = open_page(f"{address}#step=5").page
    best = page.locator(".picture table tr.on").first.inner_text()
    assert best
    page.get_by_role("slider", name="beam width").fill("1")
    assert page.locator(".node.alive.best, .node.finished.best").count() == page.locator(".node").count(), (
        "greedy has one path"
    )
    page.get_by_role("slider", name="beam width").fill("3")
    page.get_by_role("slider", name="steps").fill("1")
    assert page.locator(".node").count() == 6, "2 · beam candidates"
    assert page.locator(".node.dropped").count() == 6 - 3 - page.locator(".node.finished").count()
    page.get_by_role("button", name="Let it grow").click()
    expect(page.get_by_text("step 2", exact=True)).to_be_visible()
    page.get_by_role("button", name="Stop").click()


RIGHT = {1: ("2,5", "5.5"), 2: ("8", "64"), 4: ("144", "96"), 5: ("−3.46", "-10.4"), 6: ("0.895", "0.9")}


def go_to(page: Any, step: int) -> None:  # noqa: ANN401
    page.evaluate(f"location.hash = 'step={step}'")
    expect(page.locator(f"#question-{step}")).to_be_visible()


def test_exercises_tell_right_from_wrong(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(address).page
    for step, (right, wrong) in RIGHT.items():
        go_to(page, step)
        form = page.locator(".exercise").first
        for given, verdict in ((wrong, "Not yet. "), ("two", "Not yet. Write a number"), (right, "Right. ")):
            form.locator("input").fill(given)
            form.get_by_role("button", name="Check").click()
            said = form.locator(".verdict").inner_text()
            assert said.startswith(verdict)
            assert "Work it out term by term" not in said, "a known mistake has its own answer"


def test_the_masks_exercise_wants_what_lies_above_the_diagonal(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(f"{address}#step=3").page
    boxes = page.locator(".cells input")
    check = page.locator(".exercise").get_by_role("button", name="Check")
    for row in range(4):
        for column in range(row, 4):
            boxes.nth(4 * row + column).check()
    check.click()
    expect(page.locator(".verdict")).to_contain_text("A position sees itself")
    for row in range(4):
        boxes.nth(5 * row).uncheck()
    check.click()
    expect(page.locator(".verdict")).to_contain_text("Right.")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_axe_finds_nothing_and_nothing_overflows(
    open_page: Callable[..., Any], address: str, scheme: str, width: int
) -> None:
    page = open_page(address, width=width, scheme=scheme).page
    for step in STEPS:
        go_to(page, step)
        for summary in page.locator(".wrong summary").all():
            summary.click()
        results = Axe().run(page)
        assert results.violations_count == 0, results.generate_report()
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_shows_whole_lines_of_code_and_every_score(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(address, width=360).page
    for step in STEPS:
        go_to(page, step)
        assert page.locator(".source pre").evaluate_all("all => all.every(pre => pre.scrollWidth <= pre.clientWidth)")
        if step == 1:
            assert page.locator(".strips").evaluate("box => box.scrollWidth <= box.clientWidth"), "weight and share"
        if step == 5:
            scores = page.locator(".picture th", has_text="score")
            assert scores.count() == 2
            for cell in scores.all():
                box = cell.bounding_box()
                assert box
                assert box["x"] + box["width"] <= 360


def test_every_circulating_misreading_is_named_and_shown_wrong(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(address).page
    claims: dict[str, str] = {}
    for step in STEPS:
        go_to(page, step)
        for idea in page.locator(".wrong details").all():
            claims[idea.locator("summary").inner_text()] = idea.locator(".truth").text_content()
    named = ["[[1.4, 1.58]", "Attention is softmax(", "length of the query", "overflowing", "masked attention over",
             "8 sets", "transductive", "√d_model", "dᵥ that of a target word", "ε_ls", "between 0 and 1."]  # fmt: skip
    for words in named:
        assert sum(words in claim for claim in claims) == 1, words
    size = next(truth for claim, truth in claims.items() if "√d_model" in claim)
    assert " 0.04" in size, "512^-0.5 = 0.044"
    surest = next(truth for claim, truth in claims.items() if "ε_ls" in claim)
    assert 0.8 < float(surest.partition("has the probability ")[2].rstrip(".")) < 0.97, "smoothing 0.1"


def test_the_keyboard_walks_through_the_steps(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(address).page
    for step in STEPS[1:]:
        page.locator("#after").focus()
        page.keyboard.press("Enter")
        expect(page.locator(f"#question-{step}")).to_be_focused()
        assert page.locator("#steps [aria-current=step]").count() == 1
    page.go_back()
    expect(page.locator("#question-5")).to_be_visible()


def test_another_sentence_changes_every_step_and_its_markup_stays_text(
    open_page: Callable[..., Any], address: str
) -> None:
    page = open_page(f"{address}#step=4").page
    page.locator("#sentence").select_option(index=1)
    expect(page.locator("#source")).to_have_text(TEXTS[1])
    assert page.locator("#source b").count() == 0
    for step in STEPS:
        page.evaluate(f"location.hash = 'step={step}&sentence=2'")
        expect(page.locator(f"#question-{step}")).to_be_visible()
