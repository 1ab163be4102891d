"""One server with several models: a language between where no model serves a pair, and a limit of memory."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from transduce.translator import Translator

pytestmark = pytest.mark.slow
PAIRS = ("de-en", "en-fr", "nl-en")
TEXTS = {"de-en": "der Hund läuft.", "en-fr": "the dog runs.", "nl-en": "een kat"}


@pytest.fixture(scope="module")
def models(make_model: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models large enough for the limit of memory to tell them from the process around them."""
    folder = tmp_path_factory.mktemp("models")
    return {
        pair: make_model(
            folder / pair, seed=seed, source=pair[:2], target=pair[3:], fondness_of_ending=9, d_ff=60_000, layers=4
        )
        for seed, pair in enumerate(PAIRS)
    }


def loaded(client: httpx.Client) -> dict[str, bool]:
    return {model["name"]: model["is_loaded"] for model in client.get("/v1/models").json()}


def memory(client: httpx.Client) -> float:
    lines = client.get("/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith("transduce_child_resident_bytes ")).split()[1])


@pytest.fixture(scope="module")
def sizes(
    models: dict[str, Path], run_server: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[int, float]:
    """The memory of the model process with one of the models and with three."""
    found = {}
    for count in (1, 3):
        log = tmp_path_factory.mktemp("sizes") / "log"
        with run_server(log, *list(models.values())[:count]) as server, server.client() as client:
            found[count] = memory(client)
            assert all(loaded(client).values()), "without a limit all stay"
    assert found[3] - found[1] > 30e6, "else the limits of these tests mean nothing"
    return found


def translated(client: httpx.Client, pair: str, **options: object) -> httpx.Response:
    return client.post("/v1/translate", json={"text": TEXTS[pair], "model": pair, **options})


def test_a_language_between(models: dict[str, Path], run_server: Callable[..., Any], tmp_path: Path) -> None:
    text = "der Hund läuft. Eine Katze schläft hier %s"
    with run_server(tmp_path / "log", *models.values()) as server, server.client() as client:
        between = Translator.load(models["de-en"], threads=1).translate(text, keep_placeholders="report")
        end = Translator.load(models["en-fr"], threads=1).translate(
            between.text, alternatives=2, keep_placeholders="report"
        )
        asked = {"text": text, "source": "de", "target": "fr", "alternatives": 2, "keep_placeholders": "report"}
        found = client.post("/v1/translate", json=asked)
        assert found.json()["model"] == "de-en+en-fr"
        (own,) = found.json()["translations"]
        assert own["pivot"] == {"language": "en", "text": between.text}
        assert [one["text"] for one in own["alternatives"]] == [one.text for one in end.alternatives]
        assert {*own["missing"]} == {*between.missing, *end.missing} == {"%s"}
        direct = client.post("/v1/translate", json={"text": text, "source": "de", "target": "en"}).json()
        assert direct["translations"][0]["pivot"] is None

        fields = {"source": "de", "target": "fr"}
        plain = client.post("/translate", json={"q": ["der Hund", "a cat"], **fields}).json()
        english = Translator.load(models["de-en"], threads=1).translate("der Hund").text
        assert plain["translatedText"][0] == Translator.load(models["en-fr"], threads=1).translate(english).text
        assert plain["pivot"] == ["en", "en"]
        assert "pivot" not in client.post("/translate", json={"q": text, "source": "de", "target": "en"}).json()
        page = client.post("/translate", json={"q": "<p>der Hund läuft.</p>", "format": "html", **fields}).json()
        assert page["pivot"] == "en"
        file = {"file": ("a.txt.md", b"der Hund\n", "text/markdown")}
        assert client.post("/translate_file", data=fields, files=file).json()["pivot"] == "en"

        listed = {own["name"]: own["pivot"] for own in client.get("/v1/models").json()}
        assert listed == {**dict.fromkeys(PAIRS), "de-en+en-fr": "en", "nl-en+en-fr": "en"}
        targets = {own["code"]: own["targets"] for own in client.get("/languages").json()}
        assert targets["nl"] == ["en", "fr"]
        for path, body in (("attention", {"text": "der Hund"}), ("likelihood", {"pairs": []})):
            refused = client.post(f"/v1/{path}", json={**body, "model": "de-en+en-fr"})
            assert refused.status_code == 400
            assert "is two models, one after the other" in refused.json()["error"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory a process has now")
def test_models_are_loaded_on_demand_within_the_limit(
    models: dict[str, Path], sizes: dict[int, float], run_server: Callable[..., Any], tmp_path: Path
) -> None:
    limit = int((sizes[1] + 1.5 * (sizes[3] - sizes[1]) / 2) / 1e6)  # two of the three fit
    expected = {pair: Translator.load(path, threads=1).translate(TEXTS[pair]).text for pair, path in models.items()}
    with (
        run_server(tmp_path / "log", *models.values(), "--memory-limit", str(limit)) as server,
        server.client() as client,
    ):
        assert loaded(client)["de-en"], "the first model stays"
        for pair in (*PAIRS, *PAIRS, "de-en", "de-en", "nl-en", "en-fr"):
            before = loaded(client)
            answer = translated(client, pair)
            assert answer.json()["translations"][0]["text"] == expected[pair]
            assert memory(client) < limit * 1e6
            after = loaded(client)
            assert after[pair], "the model that was used last stays"
            if before[pair]:
                assert after == before, "nothing is dropped without need"
        assert {pair for pair in PAIRS if after[pair]} == {"nl-en", "en-fr"}, "the least recently used went"
        found = client.post("/v1/translate", json={"text": TEXTS["de-en"], "source": "de", "target": "fr"}).json()
        assert found["model"] == "de-en+en-fr"
        assert client.get("/health/ready").status_code == 200
        assert {pair for pair in PAIRS if loaded(client)[pair]} == {"de-en", "en-fr"}, "a probe loads no model"

        os.kill(server.child(), signal.SIGKILL)
        server.wait_for("child ready", count=2)
        assert {pair for pair in PAIRS if loaded(client)[pair]} == {"de-en", "en-fr"}
        config = models["nl-en"] / "config.json"
        kept = config.read_bytes()
        config.write_bytes(b"{}")
        refused = translated(client, "nl-en")
        assert refused.status_code == 503
        assert refused.headers["Retry-After"]
        assert str(tmp_path) not in refused.text
        assert translated(client, "de-en").status_code == 200
        config.write_bytes(kept)
        assert translated(client, "nl-en").status_code == 200, "it is tried again"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory a process has now")
def test_requests_for_many_models_at_once_are_all_answered(
    models: dict[str, Path],
    sizes: dict[int, float],
    run_server: Callable[..., Any],
    in_threads: Callable[..., list[Any]],
    tmp_path: Path,
) -> None:
    """Room for one model: each request makes another one leave, and none is lost."""
    limit = int((sizes[1] + 0.2 * (sizes[3] - sizes[1])) / 1e6)
    with (
        run_server(tmp_path / "log", *models.values(), "--memory-limit", str(limit)) as server,
        server.client() as client,
    ):
        found = in_threads(9, lambda number: translated(client, PAIRS[number % 3]))
        assert [answer.status_code for answer in found] == [200] * 9
        assert len({answer.json()["translations"][0]["text"] for answer in found}) == 3
