"""A model with several target languages: a tag before every sentence, as in training, and each language served."""

import io
import json
from functools import partial
from pathlib import Path

import pytest
from tests.faults import small_run
from typer.testing import CliRunner, Result

from transduce.cli.application import app
from transduce.data.token_store import TokenStore
from transduce.errors import ConfigError
from transduce.model_directory import read_description
from transduce.serving.config import by_target
from transduce.serving.frames import read_frame, write_frame
from transduce.serving.languages import ServedLanguages
from transduce.serving.loaded_models import LoadedModels
from transduce.serving.worker import serve
from transduce.translator import Translator
from transduce.translator.several_targets import toward


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that learned two targets: the pairs' own, tagged >>de<<, and the source backwards, tagged >>fr<<."""
    folder = tmp_path_factory.mktemp("targets")
    lines = [line.split("\t") for line in small_run.write_text(folder).read_text(encoding="utf-8").splitlines()]
    for name, rows in (("de", lines), ("fr", [[source, source[::-1]] for source, _ in lines])):
        (folder / f"{name}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    corpora: list[dict[str, object]] = [
        {"files": [str(folder / f"{name}.tsv")], "tag": f">>{name}<<"} for name in ("de", "fr")
    ]
    corpora.append({"files": [str(folder / "de.tsv")], "tag": ">>es<<", "synthetic": True})
    settings = [*small_run.overrides(), "data.held_out_valid=0", "data.held_out_test=0", 'data.source_language="en"']
    from transduce.pipeline.command import request_of, train

    request = request_of(preset="tiny", overrides=settings, data={"corpora": corpora}, training={"threads": 1})
    train(request, folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def translator(run: Path) -> Translator:
    return Translator.load(run, threads=1)


def test_a_model_names_the_languages_of_tags_that_people_wrote_for(run: Path) -> None:
    assert read_description(run / "model").targets == {"de": ">>de<<", "fr": ">>fr<<"}
    content = json.loads((run / "model" / "config.json").read_text())
    assert content["format_version"] == 2  # earlier versions would translate without the tag
    assert "targets" not in json.loads(read_description(Path(small_run.SOURCE, "transduce/models/en-de")).to_json())


def test_sources_are_encoded_as_in_training(run: Path, translator: Translator) -> None:
    store = TokenStore.open(run / "data" / "train")
    for number in (0, len(store) // 2):
        tagged, _ = store.text(number)
        target, source = tagged[2:4], tagged[len(">>de<< ") :]
        pair = toward(translator, target).tokenizers
        assert (
            pair.encode_source(source) == store.source(number).tolist() == translator.tokenizers.encode_source(tagged)
        )


def test_each_sentence_gets_the_tag(translator: Translator) -> None:
    french = toward(translator, "fr")
    texts = ["It rains. The dog sleeps.", "{name} sings."]
    tagged = [[f">>fr<< {sentence}" for sentence in french.sentences_of(text)] for text in texts]
    ids = [[list(part.encoded.ids) for part in own.parts if part.encoded] for own in french._cutter.cut(texts)]
    assert ids[0] == [translator.tokenizers.encode_source(sentence) for sentence in tagged[0]]
    assert len(ids[0]) == 2
    assert french.fingerprint != translator.fingerprint != toward(translator, "de").fingerprint
    assert french.stepper is translator.stepper
    assert (french.languages.target, translator.languages.target) == ("fr", None)


def test_a_language_must_be_one_of_the_models(translator: Translator) -> None:
    with pytest.raises(ConfigError, match=r"translates to de, fr, not to it\. Choose one of its languages with --to"):
        toward(translator, "it")
    with pytest.raises(ConfigError, match=r"translates to de, fr\. Choose"):
        toward(translator, None)
    one = Translator.load("en-de", threads=1)
    assert toward(one, "de") is toward(one, None) is toward(one, "fr", is_strict=False) is one
    with pytest.raises(ConfigError, match="translates to de, not to fr"):
        toward(one, "fr")


def test_translate_needs_the_language_for_lines_and_for_parts(
    run: Path, translator: Translator, tmp_path: Path
) -> None:
    (tmp_path / "a.en").write_text("It rains. The dog sleeps.\n", encoding="utf-8")
    expected = toward(translator, "fr").translate("It rains. The dog sleeps.").text

    def translated(*options: str) -> Result:
        return CliRunner().invoke(app, ["translate", str(run), str(tmp_path / "a.en"), "--threads", "1", *options])

    for options in ((), ("--shard", "1/1", "--output", str(tmp_path / "parts"))):
        assert "translates to de, fr. Choose one" in str(translated(*options).exception)
        assert "not to it. Choose one" in str(translated(*options, "--to", "it").exception)
    assert translated("--to", "fr").stdout == f"{expected}\n"
    assert translated("--to", "fr", "--shard", "1/1", "--output", str(tmp_path / "parts")).exit_code == 0
    assert next((tmp_path / "parts").glob("*.txt")).read_text(encoding="utf-8") == f"{expected}\n"


def test_it_is_served_as_several_targets_that_share_the_weights(run: Path, translator: Translator) -> None:
    models, targets = by_target({"multi": str(run), "one": "en-de", "none": str(run / "nothing")})
    assert list(models) == ["multi-de", "multi-fr", "one", "none"]
    assert targets == {"multi-de": "de", "multi-fr": "fr"}
    inlet, outlet = io.BytesIO(), io.BytesIO()
    settings = {"threads": 1, "precision": "auto", "memory_limit": None, "glossary": None, "terms": "enforced"}
    write_frame(inlet, {"models": models, "targets": targets, "load": ["multi-fr", "multi-de"], **settings})
    for number, name in enumerate(("multi-fr", "multi-de")):
        request = {"task": "translate", "items": ["It rains. The dog sleeps."], "options": {}}
        write_frame(inlet, {"round": number, "model": name, **request})
    inlet.seek(0)
    serve(inlet, outlet)
    outlet.seek(0)
    ready, *answers = [read_frame(outlet) for _ in range(3)]
    assert ready is not None
    assert ServedLanguages(ready["ready"]).targets("en") == ["fr", "de"]
    for answer, target in zip(answers, ("fr", "de"), strict=True):
        assert answer is not None
        expected = toward(translator, target).translate("It rains. The dog sleeps.").text
        assert answer["results"][0]["value"]["alternatives"][0]["text"] == expected
    loaded = LoadedModels(models, partial(Translator.load, threads=1), megabytes=None, targets=targets)
    assert loaded["multi-de"].stepper is loaded["multi-fr"].stepper
    assert loaded["multi-de"].languages.target == "de"
