"""The child's code, run in this process: rounds, errors, and one bad item that fails alone."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transduce.machine import resident_bytes
from transduce.networks.network import Network
from transduce.serving import worker
from transduce.serving.frames import read_frame, write_frame
from transduce.translator import Glossary, Translator

SETTINGS = {"threads": 1, "precision": "float32", "memory_limit": None, "glossary": None, "terms": "enforced"}
TASKS = worker.tasks_with(Glossary(()))


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return Translator.load(model, threads=1)


def request_for(*items: object, task: str = "translate", **options: object) -> dict[str, Any]:
    return {"task": task, "items": list(items), "options": options}


def test_a_conversation(model: Path) -> None:
    inlet, outlet = io.BytesIO(), io.BytesIO()
    write_frame(inlet, {"models": {"tiny": str(model)}, "load": ["tiny"], **SETTINGS})
    write_frame(inlet, {"round": 7, "model": "tiny", **request_for("the dog runs.", "a cat", beam=2)})
    inlet.seek(0)
    worker.serve(inlet, outlet)
    outlet.seek(0)
    ready, answer = read_frame(outlet), read_frame(outlet)
    assert ready is not None
    assert answer is not None
    assert ready["ready"]["tiny"]["source"] == "en"
    assert answer["round"] == 7
    alone = Translator.load(model, threads=1).translate(["the dog runs.", "a cat"], beam=2)
    assert [own["value"]["alternatives"][0]["text"] for own in answer["results"]] == [own.text for own in alone]
    assert read_frame(outlet) is None


def test_the_reason_why_a_model_cannot_be_loaded_is_sent(tmp_path: Path) -> None:
    inlet, outlet = io.BytesIO(), io.BytesIO()
    write_frame(inlet, {"models": {"x": str(tmp_path / "none")}, "load": ["x"], **SETTINGS})
    inlet.seek(0)
    worker.serve(inlet, outlet)
    outlet.seek(0)
    answer = read_frame(outlet)
    assert answer is not None
    assert "There is no model at" in answer["refused"]


def test_a_glossary_applies_to_every_translation_and_needs_one_pair_of_languages(
    make_model: Callable[..., Path], tmp_path: Path
) -> None:
    model = make_model(tmp_path / "model", fondness_of_ending=9.0)
    (tmp_path / "terms.tsv").write_text("dog\tKatze\n", encoding="utf-8")
    glossary = Glossary((("dog", "Katze"),))
    alone = Translator.load(model, threads=1)
    assert "Katze" not in alone.translate("the dog").text
    settings = {**SETTINGS, "glossary": str(tmp_path / "terms.tsv")}
    inlet, outlet = io.BytesIO(), io.BytesIO()
    write_frame(inlet, {**settings, "models": {"tiny": str(model)}, "load": ["tiny"]})
    write_frame(inlet, {"round": 1, "model": "tiny", **request_for("the dog", "a cat")})
    write_frame(inlet, {"round": 2, "model": "tiny", **request_for(["the dog", None], task="attention")})
    inlet.seek(0)
    worker.serve(inlet, outlet)
    outlet.seek(0)
    _, answer, shown = read_frame(outlet), read_frame(outlet), read_frame(outlet)
    assert answer is not None
    assert shown is not None
    texts = [own["value"]["alternatives"][0]["text"] for own in answer["results"]]
    assert texts == [own.text for own in alone.translate(["the dog", "a cat"], glossary=glossary)]
    assert "Katze" in texts[0]
    assert shown["results"][0]["value"]["target"]["text"] == texts[0]

    back = make_model(tmp_path / "back", source="de", target="en")
    for models, terms, reason in (
        ({"tiny": model, "back": back}, settings["glossary"], "these models are for de-en and en-de"),
        ({"tiny": model}, str(tmp_path / "none.tsv"), "none.tsv"),
    ):
        inlet, outlet = io.BytesIO(), io.BytesIO()
        named = {name: str(folder) for name, folder in models.items()}
        write_frame(inlet, {**settings, "models": named, "load": list(named), "glossary": terms})
        inlet.seek(0)
        worker.serve(inlet, outlet)
        outlet.seek(0)
        refused = read_frame(outlet)
        assert refused is not None
        assert reason in refused["refused"]


def test_one_bad_item_fails_alone(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    real = translator.tokenizers.source.encode_all

    def encode_all(texts: list[str]) -> list[list[int]]:
        if "poison" in texts:
            raise RuntimeError(f"cannot read {texts}")
        return real(texts)

    monkeypatch.setattr(translator.tokenizers.source, "encode_all", encode_all)
    results = worker.compute_round(translator, request_for("the dog", "poison", "a cat", beam=1), tasks=TASKS)
    assert ["value" in result for result in results] == [True, False, True]
    assert results[1]["is_curable"] is False
    assert results[1]["error"].startswith("RuntimeError at test_worker.py:")
    assert "poison" not in results[1]["error"], "a message could hold the user's text"


def test_an_error_that_the_user_can_fix_is_sent_with_its_message(translator: Translator) -> None:
    results = worker.compute_round(translator, request_for("the dog", beam=1, alternatives=3), tasks=TASKS)
    assert results[0]["is_curable"] is True
    assert "alternatives = 3 is above beam = 1" in results[0]["error"]


def test_likelihood_and_attention_are_the_translator_s_own(translator: Translator) -> None:
    pair: list[Any] = ["the dog runs.", "der Hund läuft."]
    (found,) = worker.likelihood(translator, [pair], {})
    assert found["log_probability"] == pytest.approx(sum(found["log_probabilities"]))
    assert found["log_probability"] == translator.likelihood([(pair[0], pair[1])])[0].log_probability
    (report,) = worker.attention(translator, [pair], {}, glossary=Glossary(()))
    assert report == translator.attention(pair[0], target=pair[1]).to_dictionary()
    (page,) = worker.attention(translator, [pair], {"is_page": True}, glossary=Glossary(()))
    assert page["page"].startswith("<!doctype html>")


def test_a_network_without_attention_is_refused_not_a_fault(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Network, "attention", lambda *_: {})
    head = {"source": [5, 3], "target": [6, 3], "stack": "cross", "layer": 0, "head": 0}
    for request in (request_for(["the dog", None], task="attention"), request_for(head, task="numbers")):
        (result,) = worker.compute_round(translator, request, tasks=TASKS)
        assert result["is_curable"] is True, "the server answers 400"
        assert "has no attention to show" in result["error"]


def test_resident_memory_is_plausible() -> None:
    resident = resident_bytes()
    assert resident is None or 10e6 < resident < 100e9
