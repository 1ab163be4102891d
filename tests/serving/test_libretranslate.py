"""LibreTranslate's API: its own Python client, unmodified, and raw requests."""

import json
from typing import Any
from urllib.error import HTTPError

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI

from transduce.translator import Translator

pytestmark = pytest.mark.slow
GERMAN = "Der Hund läuft über die Straße, und die Katze schläft in der Sonne."
ENGLISH = "the dog runs here and a cat sleeps over there in the sun"


class TestItsOwnClient:
    def test_translates_detects_and_lists(self, server: Any, translator: Translator) -> None:  # noqa: ANN401
        api = LibreTranslateAPI(server.address)
        assert api.translate("the dog runs.", "en", "de") == translator.translate("the dog runs.").text
        assert api.translate("Ünïcödé & = %s +", "en", "de") == translator.translate("Ünïcödé & = %s +").text
        assert api.detect(GERMAN)[0]["language"] == "de"
        assert api.languages() == [
            {"code": "en", "name": "English", "targets": ["de"]},
            {"code": "de", "name": "German", "targets": []},
        ]

    def test_uses_a_key(self, locked_server: Any, key: str) -> None:  # noqa: ANN401
        assert isinstance(LibreTranslateAPI(locked_server.address, key).translate("the dog", "en", "de"), str)
        assert LibreTranslateAPI(locked_server.address, key).languages()
        for wrong, status, message in (
            ("another-key-0123456789", 403, "Invalid API key"),
            (None, 400, "Please contact the server operator to get an API key"),
        ):
            with pytest.raises(HTTPError) as caught:
                LibreTranslateAPI(locked_server.address, wrong).translate("the dog", "en", "de")
            assert caught.value.code == status
            with caught.value as answer:
                assert json.loads(answer.read()) == {"error": message}


def test_a_string_gives_a_string_and_a_list_a_list(client: httpx.Client, translator: Translator) -> None:
    texts = ["the dog runs.", "", "a cat\n\nsleeps here"]
    expected = [own.text for own in translator.translate(texts)]
    body = {"source": "en", "target": "de"}
    assert client.post("/translate", json={"q": texts, **body}).json() == {"translatedText": expected}
    assert client.post("/translate", json={"q": texts[0], **body}).json() == {"translatedText": expected[0]}
    assert client.post("/translate", data={"q": texts[0], **body}).json() == {"translatedText": expected[0]}
    assert client.post("/translate", params={"q": texts[0], **body}).json() == {"translatedText": expected[0]}
    multipart = client.post(
        "/translate", files={name: (None, value) for name, value in {"q": texts[0], **body}.items()}
    )
    assert multipart.json() == {"translatedText": expected[0]}


def test_auto_detects_and_leaves_texts_in_the_target_language(client: httpx.Client) -> None:
    answer = client.post("/translate", json={"q": [ENGLISH, GERMAN], "source": "auto", "target": "de"}).json()
    assert [own["language"] for own in answer["detectedLanguage"]] == ["en", "de"]
    assert all(own["confidence"] > 50 for own in answer["detectedLanguage"])
    assert answer["translatedText"][0] != ENGLISH
    assert answer["translatedText"][1] == GERMAN
    one = client.post("/translate", json={"q": GERMAN, "source": "auto", "target": "de"}).json()
    assert one["detectedLanguage"]["language"] == "de"


def test_alternatives_are_returned_with_the_best_output(client: httpx.Client, translator: Translator) -> None:
    body = {"q": "the dog runs.", "source": "en", "target": "de"}
    answer = client.post("/translate", json={**body, "alternatives": 3}).json()
    own = translator.translate("the dog runs.", beam=4, alternatives=4)
    assert answer["translatedText"] == own.text
    assert answer["alternatives"] == [alternative.text for alternative in own.alternatives[1:]]
    assert "alternatives" not in client.post("/translate", json=body).json()
    assert len(client.post("/translate", data={**body, "alternatives": "2"}).json()["alternatives"]) == 2
    several = client.post("/translate", json={**body, "q": ["a", "b"], "alternatives": 1}).json()
    assert [len(own) for own in several["alternatives"]] == [1, 1]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"source": "en", "target": "de"}, "Invalid request: missing q parameter"),
        ({"q": "a", "target": "de"}, "Invalid request: missing source parameter"),
        ({"q": "a", "source": "en"}, "Invalid request: missing target parameter"),
        ({"q": "a", "source": "xx", "target": "de"}, "xx is not supported"),
        ({"q": "a", "source": "en", "target": "xx"}, "xx is not supported"),
        ({"q": "a", "source": "auto", "target": "xx"}, "xx is not supported"),
        (
            {"q": "a", "source": "de", "target": "en"},
            "English (en) is not available as a target language from German (de)",
        ),
        (
            {"q": "a" * 5001, "source": "en", "target": "de"},
            "Invalid request: request (5001) exceeds text limit (5000)",
        ),
        ({"q": ["a"] * 65, "source": "en", "target": "de"}, "Invalid request: request (65) exceeds text limit (64)"),
        ({"q": "a", "source": "en", "target": "de", "format": "docx"}, "docx format is not supported"),
        (
            {"q": "a", "source": "en", "target": "de", "alternatives": 8},
            "Invalid request: alternatives (8) exceeds limit (7)",
        ),
        (
            {"q": "a", "source": "en", "target": "de", "alternatives": -1},
            "Invalid request: alternatives must be a whole number, 0 or more",
        ),
        ({"q": [1], "source": "en", "target": "de"}, "Invalid request: q must be a text or a list of texts"),
        ({"q": "a", "source": ["en"], "target": "de"}, "Invalid request: source must be a language code"),
    ],
)
def test_errors_are_libretranslate_s(client: httpx.Client, body: dict[str, object], message: str) -> None:
    response = client.post("/translate", json=body)
    assert response.status_code == 400
    assert response.json() == {"error": message}


def test_invalid_json_is_refused(client: httpx.Client) -> None:
    for content in (b"{", b"[]", b"\xff", b"[" * 100_000, b'{"q": ' + b"9" * 9000 + b"}"):
        response = client.post("/translate", content=content, headers={"Content-Type": "application/json"})
        assert response.status_code == 400
        assert "error" in response.json()


def test_settings_and_health(client: httpx.Client) -> None:
    settings = client.get("/frontend/settings").json()
    assert settings["charLimit"] == 5000
    assert settings["keyRequired"] is False
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert client.get("/health").json() == {"status": "ok"}
