"""The native API over HTTP, against the translator itself."""

import base64
from pathlib import Path

import httpx
import numpy as np
import pytest

from transduce.special_tokens import OWN_SPECIAL_TOKENS
from transduce.translator import Translator

EOS = OWN_SPECIAL_TOKENS.end

pytestmark = pytest.mark.slow
HEAD = {"source": [5, EOS], "target": [6, EOS], "stack": "cross", "layer": 0, "head": 0}


def test_consensus_where_it_is_asked_for(client: httpx.Client, translator: Translator) -> None:
    expected = [translator.translate("a cat", beam=3, consensus=consensus).text for consensus in (True, False)]
    assert expected[0] != expected[1], "else nothing is shown"
    for consensus, text in zip((True, None), expected, strict=True):
        asked = {"text": "a cat", "beam": 3, "consensus": consensus}
        assert client.post("/v1/translate", json=asked).json()["translations"][0]["text"] == text


def test_translations_with_scores_and_tokens(client: httpx.Client, translator: Translator) -> None:
    text = "Keep %s and {name}. The dog runs."
    answer = client.post("/v1/translate", json={"text": text, "alternatives": 3, "length_penalty": 0.9}).json()
    own = translator.translate(text, alternatives=3, beam=3, length_penalty=0.9)
    (found,) = answer["translations"]
    assert answer["model"] == "tiny"
    assert found["text"] == own.text
    assert [alternative["text"] for alternative in found["alternatives"]] == [one.text for one in own.alternatives]
    scores = [alternative["score"] for alternative in found["alternatives"]]
    assert scores == pytest.approx([one.score for one in own.alternatives], rel=1e-4)
    assert found["missing"] == list(own.missing)
    assert client.post("/v1/translate", json={"text": []}).json()["translations"] == []


def test_likelihood_of_the_best_output_is_what_search_reports(client: httpx.Client, translator: Translator) -> None:
    pairs = [{"source": "the dog runs.", "target": "der Hund läuft."}, {"source": "a", "target": ""}]
    answer = client.post("/v1/likelihood", json={"pairs": pairs}).json()
    own = translator.likelihood([(pair["source"], pair["target"]) for pair in pairs])
    for found, expected in zip(answer["likelihoods"], own, strict=True):
        assert found["log_probability"] == pytest.approx(expected.log_probability, rel=1e-4)
        assert found["tokens"] == list(expected.tokens)


def test_attention_is_the_report_of_the_command(client: httpx.Client, translator: Translator) -> None:
    body = {"text": "the dog runs.", "target": "der Hund läuft."}
    report = client.post("/v1/attention", json=body).json()
    own = translator.attention(body["text"], target=body["target"]).to_dictionary()
    assert report["blocks"]["cross"]["shape"] == own["blocks"]["cross"]["shape"]
    assert report["source"] == own["source"]
    page = client.post("/v1/attention/page", data=body)
    assert page.headers["content-type"].startswith("text/html")
    assert "sandbox allow-scripts" in page.headers["content-security-policy"]
    assert "der Hund läuft." in page.text


def test_attention_of_a_translation_that_was_made(client: httpx.Client) -> None:
    text = "the dog runs. A cat sleeps here."
    translated = client.post("/v1/translate", json={"text": text, "alternatives": 3}).json()["translations"][0]
    for alternative in translated["alternatives"]:
        sentences = alternative["sentences"]
        assert [text[own["start"] : own["end"]] for own in sentences] == ["the dog runs.", "A cat sleeps here."]
        for own in sentences:
            body = {"text": text[own["start"] : own["end"]], "target_ids": own["tokens"]}
            report = client.post("/v1/attention", json=body).json()
            assert [token["id"] for token in report["target"]["tokens"]] == own["tokens"]
            assert not report["translated"]["is_forced"]


def test_numbers_of_a_head_are_those_behind_the_report(client: httpx.Client, translator: Translator) -> None:
    text = "the dog runs."
    report = client.post("/v1/attention", json={"text": text}).json()
    ids = {side: [token["id"] for token in report[side]["tokens"]] for side in ("source", "target")}
    own = translator.attention(text).blocks["cross"].projections
    assert own is not None
    answer = client.post("/v1/attention/numbers", json={**ids, "stack": "cross", "layer": 0, "head": 7}).json()
    for name, expected in (
        ("query", own.query_LHQE[0, 7]),
        ("key", own.key_LHKE[0, 7]),
        ("value", own.value_LHKG[0, 7]),
    ):
        found = np.frombuffer(base64.b64decode(answer[name]["base64_f32"]), "<f4").reshape(answer[name]["shape"])
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)
    assert answer["scale"] == pytest.approx(2**-0.5)


@pytest.mark.parametrize(
    ("path", "body", "fault"),
    [
        ("translate", {"text": "a", "model": "../../etc"}, "There is no model of that name. The models are: tiny."),
        ("translate", {"text": "a", "target": "xx"}, "No model serves these languages"),
        ("translate", {"text": "a", "beam": 9}, "beam (9) exceeds limit (8)"),
        ("translate", {"text": "a", "alternatives": 9}, "alternatives (9) exceeds limit (8)"),
        ("translate", {"text": "a", "alternatives": 0}, "alternatives: Input should be greater than or equal to 1"),
        ("translate", {"text": 1}, "Invalid request: text"),
        ("translate", {"text": "a", "temperature": 1}, "Invalid request: temperature: Extra inputs"),
        ("translate", {}, "Invalid request: text: Field required"),
        ("likelihood", {"pairs": [{"source": "a", "target": "ab " * 1200}]}, "the limit is 1,024"),
        ("likelihood", {"pairs": [{"source": "a", "target": "b"}] * 33}, "request (66) exceeds text limit (64)"),
        ("attention", {"text": " "}, "the text is empty"),
        ("attention", {"text": "a " * 60}, "the limit is 40"),
        ("attention", {"text": "a", "target": "a " * 60}, "the limit is 40"),
        ("attention", {"text": "the dog runs. A cat."}, "The text has 2 sentences, and a report shows one."),
        ("attention", {"text": "a", "target": "b", "target_ids": [5, EOS]}, "give target or target_ids, not both"),
        ("attention", {"text": "a", "target_ids": [10**6, EOS]}, "target_ids must hold ids of tokens"),
        ("attention", {"text": "a", "target_ids": [5] * 43 + [EOS]}, "target_ids has 44 tokens; the limit is 43"),
        ("attention/numbers", {**HEAD, "layer": 1}, "There is no layer 1, head 0 in the cross attention"),
        ("attention/numbers", {**HEAD, "head": 11}, "it has layers 0 to 0 and heads 0 to 10"),
        ("attention/numbers", {**HEAD, "stack": "middle"}, "There is no middle attention in this network"),
        ("attention/numbers", {**HEAD, "stack": "<b>"}, "stack: String should match pattern"),
        ("attention/numbers", {**HEAD, "source": [5, 9]}, "source must end in 3"),
        ("attention/numbers", {**HEAD, "target": [10**6, EOS]}, "target must hold ids of tokens"),
        ("attention/numbers", {**HEAD, "target": [0, EOS]}, "without padding"),
        ("attention/numbers", {**HEAD, "source": [5] * 40 + [EOS]}, "source has 41 tokens; the limit is 40"),
        ("attention/numbers", {**HEAD, "target": [5] * 43 + [EOS]}, "target has 44 tokens; the limit is 43"),
        ("attention/page", {"target": "a"}, "missing text parameter"),
        ("attention/page", {"text": "a", "x": "y"}, "the fields are api_key, model, target, text"),
    ],
)
def test_refusals_say_what_is_wrong(client: httpx.Client, path: str, body: dict[str, object], fault: str) -> None:
    response = client.post(f"/v1/{path}", json=body)
    assert response.status_code == 400
    assert fault in response.json()["error"]


def test_a_sentence_without_end_is_refused_and_its_neighbour_is_not(client: httpx.Client) -> None:
    answer = client.post("/v1/translate", json={"text": ["word " * 900, "the dog"]}).json()
    assert "cut it into sentences first" in answer["translations"][0]["refusal"]
    assert answer["translations"][1]["refusal"] == ""


def test_half_a_surrogate_pair_harms_nobody(client: httpx.Client) -> None:
    for path, body in (
        ("/v1/translate", '{"text": "a \\ud800 b"}'),
        ("/translate", '{"q": "a \\ud800 b", "source": "en", "target": "de"}'),
        ("/translate", '{"q": "a", "source": "\\ud800", "target": "de"}'),
        ("/v1/likelihood", '{"pairs": [{"source": "\\ud800", "target": "\\udfff"}]}'),
        ("/v1/attention", '{"text": "\\ud800"}'),
        ("/v1/translate", '{"text": "a", "model": "\\ud800"}'),
    ):
        response = client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert response.status_code in (200, 400), response.text
        assert isinstance(response.json(), dict)


def test_models_are_listed_without_their_paths(client: httpx.Client, model: Path) -> None:
    response = client.get("/v1/models")
    assert response.json()[0]["name"] == "tiny"
    assert str(model.parent) not in response.text


def test_every_route_is_described_and_the_description_loads_nothing(client: httpx.Client) -> None:
    described = client.get("/openapi.json").json()
    assert {
        "/translate",
        "/detect",
        "/languages",
        "/v1/translate",
        "/v1/attention",
        "/v1/likelihood",
        "/v1/models",
    } <= set(described["paths"])
    for path in ("/", "/documentation"):
        page = client.get(path)
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "//" not in page.text.replace("<!-- ", ""), "no other address stands on the page"


def test_a_lesson_has_the_report_and_the_searches(client: httpx.Client, translator: Translator) -> None:
    found = client.post("/v1/lesson", json={"text": "the dog runs."}).json()
    assert found["report"]["target"]["text"] == translator.attention("the dog runs.").target_text
    assert set(found["report"]["without"]) == {"encoder", "decoder", "cross"}
    assert found["search"]["nodes"][""]
    refused = client.post("/v1/lesson", json={"text": "the dog runs. A cat."})
    assert (refused.status_code, refused.json()["error"]) == (
        400,
        "The text has 2 sentences, and a lesson is about one. Give one of them.",
    )
    assert 'id="facts">{' in client.get("/learn").text
