"""Text from a language model over HTTP, against the model itself; and the attention of models that do not translate."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.importing.bert_folder import write_model as write_bert
from tests.translator.test_generating import write_model

import transduce
from transduce.errors import ConfigError
from transduce.loaded_encoder import LoadedEncoder
from transduce.serving.open_texts import OpenTexts
from transduce.translator import Translator

pytestmark = pytest.mark.slow
LONG = {"prompt": "to be", "tokens": 1024, "seed": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_model(folder / "writer")
    write_bert(folder).rename(folder / "reader")
    return folder


@pytest.fixture(scope="module")
def writer(folder: Path) -> Translator:
    return transduce.load(folder / "writer", threads=1)


@pytest.fixture(scope="module")
def server(
    folder: Path, model: Path, run_server: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    log = tmp_path_factory.mktemp("server") / "log"
    with run_server(log, model, folder / "writer", folder / "reader", "--token-limit", "100000") as running:
        yield running


def events(response: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    name = "message"
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))
            name = "message"


def test_the_text_is_that_of_the_model(client: httpx.Client, writer: Translator) -> None:
    for options in ({"seed": 3, "temperature": 0.9, "top_k": 20, "top_p": 0.9}, {"beam": 2}, {"stop": ["e"]}):
        answer = client.post("/v1/generate", json={"prompt": "to be", "tokens": 30, **options}).json()
        assert answer == {"model": "writer", "text": writer.generate("to be", tokens=30, **options)}


def test_a_stream_has_the_same_text_in_parts(client: httpx.Client, writer: Translator) -> None:
    with client.stream("POST", "/v1/generate", json={**LONG, "stream": True}) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        *parts, last = events(response)
    assert last == ("end", {"model": "writer"})
    assert {name for name, _ in parts} == {"message"}
    assert "".join(content["text"] for _, content in parts) == writer.generate("to be", tokens=1024, seed=5)


def test_what_cannot_be_written_is_refused(client: httpx.Client) -> None:
    for asked, message in (
        ({"tokens": 100_001}, "tokens (100001) exceeds limit (100000)"),
        ({"prompt": "a" * 5001}, "text limit"),
        ({"model": "tiny"}, "tiny is of the kind translation, and this request needs language-model."),
        ({"beam": 2, "seed": 1}, "A beam draws nothing"),
        ({"beam": 9}, "beam (9) exceeds limit (8)"),
        ({"temprature": 1}, "temprature"),
    ):
        for stream in (False, True):
            answer = client.post("/v1/generate", json={"prompt": "a", **asked, "stream": stream})
            assert answer.status_code == 400
            assert message in answer.json()["error"]
    answer = client.post("/v1/translate", json={"text": "a", "model": "writer"})
    assert "writer is of the kind language-model" in answer.json()["error"]
    assert client.post("/v1/translate", json={"text": "the dog"}).json()["model"] == "tiny"


def test_a_server_without_a_language_model_or_a_request_without_a_key_is_refused(
    locked_server: Any,  # noqa: ANN401
    key: str,
) -> None:
    with locked_server.client() as client:
        assert client.post("/v1/generate", json={"prompt": "a"}).status_code == 401
        answer = client.post("/v1/generate", json={"prompt": "a", "api_key": key})
        assert answer.json()["error"] == "This server has no model of the kind language-model."


def test_a_server_that_does_not_translate_says_so(folder: Path, run_server: Callable[..., Any], tmp_path: Path) -> None:
    with run_server(tmp_path / "log", folder / "writer") as running, running.client() as client:
        assert client.get("/frontend/settings").json()["language"]["source"]["code"] == "und"
        assert client.get("/languages").json() == client.post("/detect", data={"q": "a"}).json() == []
        for path, asked in (
            ("/translate", {"q": "a", "source": "auto", "target": "de"}),
            ("/v1/translate", {"text": "a"}),
            ("/v1/likelihood", {"pairs": [{"source": "a", "target": "b"}]}),
        ):
            assert client.post(path, json=asked).status_code == 400


def test_no_more_is_written_when_the_client_leaves(client: httpx.Client) -> None:
    def rounds() -> float:
        lines = client.get("/metrics").text.splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("transduce_rounds_total ")))

    with client.stream("POST", "/v1/generate", json={**LONG, "tokens": 100_000, "stream": True}) as response:
        assert next(events(response))[0] == "message"
    for _ in range(60):  # 100,000 tokens take minutes
        before = rounds()
        time.sleep(0.5)
        if rounds() == before:
            return
    raise AssertionError("the text is still being written")


def test_a_crash_in_the_middle_of_a_text_is_not_seen(
    client: httpx.Client,
    server: Any,  # noqa: ANN401
    writer: Translator,
) -> None:
    with client.stream("POST", "/v1/generate", json={**LONG, "stream": True}) as response:
        found = events(response)
        text = next(found)[1]["text"]
        os.kill(server.child(), signal.SIGKILL)
        text += "".join(content.get("text", "") for _, content in found)
    assert text == writer.generate("to be", tokens=1024, seed=5)


@pytest.fixture
def short_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.serving.open_texts._SECONDS_OF_PORTION", -1.0)


@pytest.mark.usefixtures("short_portions")
def test_a_text_goes_on_where_the_client_is(writer: Translator) -> None:
    whole = writer.generate("to be", tokens=40, seed=2)
    item = {"id": "a", "prompt": "to be", "options": {"tokens": 40, "seed": 2}}
    for written in (0, 1, 7, len(whole)):  # another process may have written so much
        found, texts, is_finished = "", OpenTexts(), False
        while not is_finished:
            asked = {**item, "written": written + len(found)}
            [lost], [portion] = (texts.portions(writer, [asked], {}) for _ in range(2))
            assert portion == lost, "a portion that did not arrive is computed again"
            found, is_finished = found + portion["text"], portion["is_finished"]
        assert found == whole[written:]


@pytest.mark.usefixtures("short_portions")
def test_many_texts_at_once_are_each_themselves(writer: Translator) -> None:
    texts, found, left = OpenTexts(), [""] * 20, set(range(20))
    while left:
        chosen = sorted(left)
        asked = [
            {"id": str(n), "prompt": "to", "options": {"tokens": 12, "seed": n}, "written": len(found[n])}
            for n in chosen
        ]
        for number, portion in zip(chosen, texts.portions(writer, asked, {}), strict=True):
            found[number] += portion["text"]
            left -= {number} if portion["is_finished"] else set()
    assert found == [writer.generate("to", tokens=12, seed=number) for number in range(20)]
    assert texts.portions(writer, [{"id": "3", "written": None}], {})[0]["is_finished"]
    with pytest.raises(ConfigError, match="draws nothing"):
        texts.portions(writer, [{"id": "b", "prompt": "", "options": {"beam": 2, "seed": 2}, "written": 0}], {})


def test_attention_of_models_that_do_not_translate(client: httpx.Client, folder: Path, writer: Translator) -> None:
    kinds = {own["name"]: own["kind"] for own in client.get("/v1/models").json()}
    assert kinds == {"tiny": "translation", "writer": "language-model", "reader": "text-encoder"}
    assert client.get("/health/ready").status_code == 200
    encoder = LoadedEncoder.load(folder / "reader", threads=1)
    for asked, report in (
        ({"text": "To be. Or not", "model": "writer"}, writer.attention("To be. Or not")),
        ({"text": "the cat", "target": "a mat", "model": "reader"}, encoder.attention("the cat", second="a mat")),
    ):
        answer = client.post("/v1/attention", json=asked).json()
        assert answer["blocks"] == report.to_dictionary()["blocks"]
        assert answer.get("second") == report.second
        ids = {side: [token["id"] for token in answer[side]["tokens"]] for side in ("source", "target")}
        (stack,) = answer["blocks"]
        head = {"stack": stack, "layer": 0, "head": 1, "model": asked["model"], **ids}
        numbers = client.post("/v1/attention/numbers", json=head)
        assert numbers.json()["query"]["shape"][0] == answer["blocks"][stack]["shape"][2], numbers.text
    answer = client.post("/v1/attention/numbers", json={**head, "target": [3]})
    assert "has source tokens alone" in answer.json()["error"]
