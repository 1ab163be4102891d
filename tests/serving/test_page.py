"""The page in a real browser: it translates once typing pauses, gives up older requests, and opens attention."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.importing.bert_folder import write_model as write_bert
from tests.translator.test_generating import write_model

from transduce.translator import Translator

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]
TEXT = "the dog's <b>cat</b> & \"runs\" ' here"


@pytest.fixture
def browser(tool: Callable[[str], str], launch: Callable[[str], Any]) -> Iterator[Any]:
    """The browser that all tests share; the pages that this test opened are closed at its end."""
    shared = launch(tool("chromium"))
    yield shared
    for context in shared.contexts:
        context.close()


def watched(browser: Any, address: str) -> tuple[Any, list[Any], list[str]]:  # noqa: ANN401
    """Open a page and note what it asks for and complains about."""
    page = browser.new_page()
    requests: list[Any] = []
    complaints: list[str] = []
    page.context.on("request", lambda request: requests.append(request))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda fault: complaints.append(str(fault)))
    page.goto(address)
    page.wait_for_selector("#target option", state="attached")
    return page, requests, complaints


def test_typing_translates_and_attention_opens(server: Any, browser: Any, translator: Translator) -> None:  # noqa: ANN401
    page, requests, complaints = watched(browser, server.address)
    page.locator("#text").press_sequentially(TEXT, delay=5)
    page.wait_for_selector("#copy:not([disabled])")
    best = translator.translate(TEXT, beam=3, alternatives=3)
    assert page.locator("#best").text_content() == best.text
    asked = [own for own in requests if own.url.endswith("/v1/translate")]
    # On a busy machine a key may come so late that the page takes it for a pause.
    assert 1 <= len(asked) <= len(TEXT) // 3, "a request after a pause, not one for each key"
    shown = page.locator("#alternatives li bdi").all_text_contents()
    assert shown == [own.text for own in best.alternatives]
    scores = [float(score) for score in page.locator("#alternatives .score").all_text_contents()]
    assert scores == pytest.approx([own.score for own in best.alternatives], abs=2e-3)

    words = shlex.split(page.locator("#curl").text_content().replace("\\\n", " "))
    assert words[:2] == ["curl", f"{server.address}/v1/translate"]
    assert json.loads(words[words.index("-d") + 1]) == asked[0].post_data_json, "the command asks for the same"

    with page.context.expect_page() as opening:
        page.get_by_role("link", name="Look at attention").click()
    attention = opening.value
    attention.wait_for_selector("#view canvas")
    assert attention.title() == f"Attention: {TEXT}"
    assert "the dog" in attention.locator("body").inner_text()
    assert complaints == []
    assert {own.url.split("/")[2] for own in requests if own.url.startswith("http")} == {server.address.split("/")[2]}


def test_attention_is_of_the_translation_that_was_made(server: Any, browser: Any, translator: Translator) -> None:  # noqa: ANN401
    sync_api = pytest.importorskip("playwright.sync_api")
    text = "the dog runs 🐕. A cat sleeps here."
    page, requests, complaints = watched(browser, server.address)
    page.locator("#text").fill(text)
    page.wait_for_selector("#copy:not([disabled])")
    best = translator.translate(text, beam=3, alternatives=3).alternatives[0]
    page.goto(page.locator("#look").evaluate("link => link.href"))
    page.wait_for_selector("#view canvas")  # the server imports torch first
    for number, own in enumerate(best.sentences, start=1):
        sentence = text[own.start : own.end]
        page.select_option("#sentence", str(number - 1))
        sync_api.expect(page).to_have_title(f"Attention: {sentence}")
        (asked,) = [r.post_data_json for r in requests if r.url.endswith("/v1/attention")][number - 1 :]
        assert (asked["text"], asked["target_ids"]) == (sentence, list(own.tokens))
        assert page.locator("#target-name").inner_text() == "translation", "the search found it: it is not forced"
    page.go_back()
    sync_api.expect(page).to_have_title(re.compile("Attention: the dog"))
    assert complaints == []


def test_a_text_without_token_ids_is_translated_first(server: Any, browser: Any, translator: Translator) -> None:  # noqa: ANN401
    page = browser.new_page()
    page.goto(f"{server.address}/attention#text=the+dog+runs.+A+cat.&sentence=2")
    page.wait_for_selector(".queries li")
    assert page.title() == "Attention: A cat."
    assert page.locator("#target").inner_text() == translator.attention("A cat.").target.text


def test_a_sentence_that_is_chosen_shows_that_it_is_loading(server: Any, browser: Any) -> None:  # noqa: ANN401
    sync_api = pytest.importorskip("playwright.sync_api")
    page = browser.new_page()
    page.goto(f"{server.address}/attention#text=the+dog+runs.+A+cat.")
    page.wait_for_selector(".queries li")
    sync_api.expect(page.locator("main")).to_have_attribute("aria-busy", "false")
    held: list[Any] = []
    for ends in ("continue_", "abort"):
        page.route("**/v1/attention", lambda route: held.append(route))
        page.select_option("#sentence", "1" if ends == "continue_" else "0")
        sync_api.expect(page.locator(".loading")).to_have_text("Loading …")
        sync_api.expect(page.locator("main")).to_have_attribute("aria-busy", "true")
        assert page.locator(".columns").evaluate("columns => getComputedStyle(columns).opacity") == "0.4"
        getattr(held.pop(), ends)()
        page.unroute("**/v1/attention")
        sync_api.expect(page.locator(".loading")).to_be_empty()
        sync_api.expect(page.locator("main")).to_have_attribute("aria-busy", "false")
    sync_api.expect(page.locator("main")).to_contain_text("The server does not answer.")


def test_an_error_shows_its_message_and_nothing_else(server: Any, browser: Any) -> None:  # noqa: ANN401
    page = browser.new_page()
    for text, fault in (("", "There is no text to show"), ("a " * 60, "the limit is 40")):
        page.goto("about:blank")
        page.goto(f"{server.address}/attention#text={text}&sentences=0.{len(text)}.5.3")
        page.wait_for_selector(f"text={fault}")
        shown = page.locator("main *:visible, footer:visible, dl:visible").evaluate_all(
            "all => all.map(e => e.tagName)"
        )
        assert shown == ["P"]


def test_an_older_request_is_given_up(server: Any, browser: Any) -> None:  # noqa: ANN401
    page, requests, _ = watched(browser, server.address)
    held: list[Any] = []
    page.route("**/v1/translate", lambda route: held.append(route) if not held else route.continue_())
    failed: list[Any] = []
    page.on("requestfailed", lambda request: failed.append(request))
    page.locator("#text").fill("the dog")
    while not held:
        page.wait_for_timeout(20)
    page.locator("#text").fill("a cat")
    page.wait_for_selector("#copy:not([disabled])")
    assert [own.post_data_json["text"] for own in failed] == ["the dog"]
    assert [own.post_data_json["text"] for own in requests if own.url.endswith("/v1/translate")] == ["the dog", "a cat"]


def test_a_text_that_is_too_long_marks_the_old_translation(server: Any, browser: Any) -> None:  # noqa: ANN401
    page, _, complaints = watched(browser, server.address)
    page.locator("#text").fill("the dog")
    page.wait_for_selector("#copy:not([disabled])")
    best = page.locator("#best").text_content()
    assert not page.locator("#stale").is_visible()
    page.locator("#text").fill("a " * 3000)
    page.wait_for_selector("text=The text is too long: 6,000 characters of at most 5,000.")
    assert page.locator("#best").text_content() == best
    assert page.locator("#stale").is_visible()
    assert complaints == []


def test_a_busy_server_is_asked_again(server: Any, browser: Any) -> None:  # noqa: ANN401
    page, requests, _ = watched(browser, server.address)
    page.locator("#text").fill("the dog")
    page.wait_for_selector("#copy:not([disabled])")
    before = page.locator("#best").text_content()
    busy = [True]
    page.route(
        "**/v1/translate",
        lambda route: (
            route.fulfill(status=429, headers={"Retry-After": "1"}, json={"error": "Slowdown"})
            if busy.pop(0)
            else route.continue_()
        ),
    )
    busy.append(False)
    page.locator("#text").fill("a cat")
    page.wait_for_selector("text=The server is busy. Trying again in 1 s.")
    assert (page.locator("#best").text_content(), page.locator("#stale").is_visible()) == (before, True)
    page.wait_for_selector("#stale", state="hidden")
    asked = [own.post_data_json["text"] for own in requests if own.url.endswith("/v1/translate")]
    assert asked == ["the dog", "a cat", "a cat"]


def test_a_file_is_translated_on_the_page(server: Any, browser: Any, tmp_path: Path) -> None:  # noqa: ANN401
    page, _, complaints = watched(browser, server.address)
    table = tmp_path / "table.tsv"
    table.write_text("the dog\tder Hund\n", encoding="utf-8")
    page.set_input_files("#file", table)
    page.get_by_role("button", name="Translate the file").click()
    page.wait_for_selector("text=table.tsv: translated: 0; translated before: 1; left untranslated: 0.")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download the translated file").click()
    assert Path(saved.value.path()).read_text(encoding="utf-8") == "the dog\tder Hund\n"
    assert complaints == []
    page.set_input_files("#file", {"name": "a.exe", "mimeType": "x/y", "buffer": b"MZ"})
    page.get_by_role("button", name="Translate the file").click()
    page.wait_for_selector("#file-status.fault")
    assert not page.locator("#file-link").is_visible()


def test_the_languages_are_swapped_where_a_model_translates_back(
    server: Any,  # noqa: ANN401
    browser: Any,  # noqa: ANN401
    make_model: Callable[..., Path],
    run_server: Callable[..., Any],
    tmp_path: Path,
) -> None:
    page, _, _ = watched(browser, server.address)
    assert page.locator("#swap").is_disabled(), "this server has one direction"
    models = [make_model(tmp_path / "ende"), make_model(tmp_path / "deen", seed=4, source="de", target="en")]
    with run_server(tmp_path / "log", *models) as running:
        page, requests, complaints = watched(browser, running.address)
        page.locator("#text").fill("the dog")
        page.wait_for_selector("#copy:not([disabled])")
        best = page.locator("#best").text_content()
        with page.expect_response("**/v1/translate"):
            page.get_by_role("button", name="Swap the languages").click()
        assert [page.locator(f"#{side}").input_value() for side in ("source", "target", "text")] == ["de", "en", best]
        asked = [own.post_data_json for own in requests if own.url.endswith("/v1/translate")][-1]
        assert (asked["source"], asked["target"], asked["text"]) == ("de", "en", best)
        page.locator("#source").select_option("auto")
        assert page.locator("#swap").is_disabled()
        assert complaints == []


def test_a_key_is_asked_for_and_used(locked_server: Any, browser: Any, key: str) -> None:  # noqa: ANN401
    page, _, _ = watched(browser, locked_server.address)
    page.locator("#text").fill("the dog")
    page.wait_for_selector("#status.fault")
    assert "needs a key" in page.locator("#status").text_content()
    page.locator("#key").fill(key)
    page.wait_for_selector("#copy:not([disabled])")
    assert key not in page.locator("#curl").text_content(), "a key is nothing to paste into a terminal's history"
    with page.context.expect_page() as opening:
        page.get_by_role("link", name="Look at attention").click()
    opening.value.wait_for_selector("#view canvas")
    assert opening.value.title() == "Attention: the dog", "the key went along"


def test_attention_asks_for_the_key_that_it_lacks(locked_server: Any, browser: Any, key: str) -> None:  # noqa: ANN401
    page = browser.new_page()
    page.goto(f"{locked_server.address}/attention#text=the+dog&view=head")
    page.wait_for_selector("text=needs a key")
    page.get_by_label("key").fill(key)
    page.get_by_role("button", name="Show").click()
    page.wait_for_selector(".queries li")
    assert page.title() == "Attention: the dog"


def test_neuron_view_gets_its_numbers_from_the_server(server: Any, browser: Any, translator: Translator) -> None:  # noqa: ANN401
    page = browser.new_page()
    asked: list[Any] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda fault: complaints.append(str(fault)))
    sync_api = pytest.importorskip("playwright.sync_api")
    page.goto(f"{server.address}/attention#text=the+dog+runs.&view=neuron&stack=decoder&head=3&heads=3&at=2.1")
    page.wait_for_selector("text=4. Values, weighted and added")
    block = translator.attention("the dog runs.").blocks["decoder"]
    assert block.projections is not None
    cells = page.locator("#view .scroll >> nth=1 >> css=tbody tr").evaluate_all(
        "rows => rows.map(row => Number(row.cells[4].textContent))"
    )
    assert cells == pytest.approx(block.weights_LHQK[0, 3, 2].tolist(), abs=6e-5)
    shown = page.locator("#view .equation").inner_text()
    product = float(block.projections.query_LHQE[0, 3, 2] @ block.projections.key_LHKE[0, 3, 1])
    assert f"q · k = {product:.4f}" in shown

    page.select_option("#neuron-key", "0")
    sync_api.expect(page).to_have_url(re.compile("at=2.0"))
    numbers = [one for one in asked if one.url.endswith("/v1/attention/numbers")]
    assert len(numbers) == 1, "another pair of the same head needs nothing new"
    assert "text=the+dog+runs." in page.url, "the address still names the sentence"
    page.route("**/v1/attention/numbers", lambda route: route.fulfill(status=429, json={"error": "Slowdown"}))
    page.select_option("#neuron-head", "4")
    page.wait_for_selector("text=The server did not give q, k and v: Slowdown")
    page.unroute("**/v1/attention/numbers")
    page.select_option("#neuron-key", "1")
    page.wait_for_selector("text=4. Values, weighted and added")
    page.evaluate("location.hash = 'text=a+cat&view=head'")
    sync_api.expect(page).to_have_title("Attention: a cat")
    assert [own for own in complaints if "429" not in own] == []
    assert all(one.url.startswith((server.address, "blob:", "data:")) for one in asked)


def objections(axe: Any, page: Any) -> list[str]:  # noqa: ANN401
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in axe.run(page).response["violations"]]


def test_axe_objects_to_nothing_that_is_served(server: Any, browser: Any) -> None:  # noqa: ANN401
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = browser.new_page(viewport={"width": 360, "height": 700})
    page.goto(f"{server.address}/attention")
    page.wait_for_selector("text=There is no text to show")
    assert objections(axe, page) == []
    page.goto(f"{server.address}/attention#text=the+dog&view=matrix")
    page.wait_for_selector(".matrix")
    assert objections(axe, page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.goto(server.address)
    page.locator("#text").fill("the dog")
    page.wait_for_selector("#copy:not([disabled])")
    assert objections(axe, page) == []


def test_attention_of_models_that_do_not_translate(
    browser: Any,  # noqa: ANN401
    run_server: Callable[..., Any],
    tmp_path: Path,
) -> None:
    write_model(tmp_path / "writer")
    with run_server(tmp_path / "log", tmp_path / "writer", write_bert(tmp_path).rename(tmp_path / "reader")) as running:
        page = browser.new_page()
        page.goto(f"{running.address}/attention#text=to+be.+Or&model=writer&view=neuron&head=1&heads=1&at=3.1")
        page.wait_for_selector("text=4. Values")
        assert page.locator("#neuron-key option").first.inner_text() == "1. <start>"
        page = browser.new_page()
        page.goto(f"{running.address}/attention#text=the+cat&target=a+mat.&model=reader&stack=encoder_BA&view=head")
        page.wait_for_selector(".queries li")
        assert page.locator(".queries li").all_inner_texts() == ["a", "mat", ".", "[SEP]"]
        assert page.locator(".keys li").all_inner_texts() == ["[CLS]", "the", "cat", "[SEP]"]
        page = browser.new_page()
        page.goto(running.address)
        page.wait_for_selector("text=No model of this server translates")


def test_documentation_lists_every_operation(server: Any, browser: Any) -> None:  # noqa: ANN401
    page, _, complaints = watched(browser, server.address)
    page.goto(f"{server.address}/documentation")
    page.wait_for_selector("details")
    with server.client() as client:
        described = client.get("/openapi.json").json()["paths"]
    assert page.locator("details").count() == sum(map(len, described.values()))
    assert complaints == []


def test_examples_of_the_documentation_can_be_run(server: Any, browser: Any, tmp_path: Path) -> None:  # noqa: ANN401
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    page, _, _ = watched(browser, server.address)
    page.goto(f"{server.address}/documentation")
    page.wait_for_selector("details")
    (tmp_path / "document.po").write_text('msgid ""\nmsgstr ""\n', encoding="utf-8")
    examples = [text.replace("\\\n", " ") for text in page.locator("details pre").all_text_contents()]
    assert len(examples) == page.locator("details").count()
    for example in examples:
        if "%7Bname%7D" in example or "{name}" in example:
            continue  # the secret name of a finished file
        command = [*shlex.split(example), "--silent", "--output", "answer", "--write-out", "%{http_code}"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
        status = "400" if "/v1/generate" in example else "200"  # this server has no language model
        assert done.stdout == status, (example, (tmp_path / "answer").read_text(encoding="utf-8")[:300])
