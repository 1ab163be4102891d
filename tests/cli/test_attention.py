"""`transduce attention`: a page, or JSON, of what search gave or the user forces."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import SOURCES, TARGETS
from typer.testing import Result

from transduce.errors import ConfigError, DataError, ModelError
from transduce.networks.network import Network
from transduce.translator import Translator


def test_writes_a_page_with_the_translation(
    transduce: Callable[..., Result], small_model: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    result = transduce("attention", small_model, "a red dog runs", "--output", page, "--threads", "1")
    translation = Translator.load(small_model, threads=1).translate("a red dog runs").text
    assert result.stdout.splitlines()[0] == translation
    assert translation in page.read_text(encoding="utf-8")
    assert "differ" not in result.stdout
    coarse = transduce("attention", small_model, "it rains", "--output", page, "--precision", "bf16", "--threads", "1")
    assert "bf16 and float32 differ by at most" in coarse.stdout


def test_two_models_side_by_side(
    transduce: Callable[..., Result], small_model: Path, other_model: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    asked = ("attention", small_model, "it rains", "--beside", other_model)
    result = transduce(*asked, "--output", page, "--threads", "1")
    texts = [
        Translator.load(model, threads=1).attention("it rains").target_text for model in (small_model, other_model)
    ]
    assert result.stdout.splitlines()[:2] == texts
    assert page.read_text(encoding="utf-8").count("<iframe") == 2
    assert isinstance(transduce(*asked, "--json").exception, ConfigError)


def test_a_corpus_ranks_heads_by_role(transduce: Callable[..., Result], small_model: Path, tmp_path: Path) -> None:
    corpus, page = tmp_path / "pairs.tsv", tmp_path / "page.html"
    corpus.write_text("".join(f"{a}\t{b}\n" for a, b in zip(SOURCES, TARGETS, strict=True)), encoding="utf-8")
    result = transduce("attention", small_model, "--corpus", corpus, "--output", page, "--threads", "1")
    assert "encoder: the token before" in result.stdout
    assert "cross: the token that goes with it" in result.stdout
    assert '"address": "#sentence=1&view=head' in page.read_text(encoding="utf-8")
    ranked = json.loads(transduce("attention", small_model, "--corpus", corpus, "--json", "--threads", "1").stdout)
    assert all(0 <= one["weight"] <= 1 for one in ranked)
    both = transduce("attention", small_model, "it rains", "--corpus", corpus)
    assert isinstance(both.exception, ConfigError)
    assert isinstance(transduce("attention", small_model).exception, ConfigError)
    idle = transduce("attention", small_model, "--corpus", corpus, "--numbers")
    assert "--numbers has no effect with --corpus" in str(idle.exception)


def test_ablation_comes_on_request(transduce: Callable[..., Result], small_model: Path) -> None:
    plain, asked = (
        json.loads(transduce("attention", small_model, "it rains", "--json", "--threads", "1", *more).stdout)
        for more in ((), ("--ablation",))
    )
    assert plain["without"] is None
    shapes = {name: block["shape"][:2] for name, block in asked["blocks"].items()}
    assert {name: [len(found), len(found[0])] for name, found in asked["without"].items()} == shapes


def test_a_glossary_is_kept_to_as_in_translate(
    transduce: Callable[..., Result], small_model: Path, tmp_path: Path
) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_text("dog\tKatze\n", encoding="utf-8")
    options = ("--glossary", terms, "--threads", "1")
    plain = transduce("attention", small_model, "a red dog runs", "--json", "--threads", "1")
    shown = transduce("attention", small_model, "a red dog runs", "--json", *options)
    wanted = transduce("translate", small_model, "--text", "a red dog runs", "--precision", "float32", *options)
    assert "Katze" not in json.loads(plain.stdout)["target"]["text"]
    assert json.loads(shown.stdout)["target"]["text"] == wanted.stdout.strip()
    assert "Katze" in wanted.stdout
    refused = transduce("attention", small_model, "a dog", "--target", "ein Hund", *options)
    assert isinstance(refused.exception, ConfigError)


def test_json_is_of_the_forced_translation_and_carries_numbers_on_request(
    transduce: Callable[..., Result], small_model: Path
) -> None:
    arguments = ("attention", small_model, "it rains", "--target", "es singt", "--json", "--threads", "1")
    content = json.loads(transduce(*arguments).stdout)
    assert content["target"]["text"] == "es singt"
    assert content["translated"]["is_forced"]
    assert content["blocks"]["cross"]["numbers"] is None
    full = json.loads(transduce(*arguments, "--numbers").stdout)
    assert full["blocks"]["cross"]["numbers"]["scores"] == "scaled"


def test_a_network_without_attention_says_so_and_writes_nothing(
    transduce: Callable[..., Result], small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Network, "attention", lambda *_: {})
    page = tmp_path / "page.html"
    result = transduce("attention", small_model, "it rains", "--output", page, "--threads", "1")
    assert isinstance(result.exception, ModelError)
    assert "has no attention to show" in str(result.exception)
    assert not page.exists()


def test_every_sentence_is_shown_or_one_is_chosen(
    transduce: Callable[..., Result], small_model: Path, tmp_path: Path
) -> None:
    page, text = tmp_path / "page.html", "A red dog runs. It rains."
    first, second, wrote = transduce("attention", small_model, text, "--output", page, "--threads", "1").stdout.split(
        "\n", 2
    )
    assert "choose one of its 2 sentences" in wrote
    lines = transduce("attention", small_model, text, "--json", "--threads", "1").stdout.splitlines()
    reports = [json.loads(line) for line in lines]
    assert [report["source"]["text"] for report in reports] == ["A red dog runs.", "It rains."]
    assert [report["target"]["text"] for report in reports] == [first, second]
    chosen = transduce("attention", small_model, text, "--json", "--sentence", "2", "--threads", "1")
    assert json.loads(chosen.stdout) == reports[1]
    refused = transduce("attention", small_model, text, "--sentence", "3", "--threads", "1")
    assert "There is no sentence 3" in str(refused.exception)
    refused = transduce("attention", small_model, text, "--sentence", "1", "--target", "x", "--threads", "1")
    assert "--sentence has no effect" in str(refused.exception)


def test_a_text_that_is_empty_or_too_long_is_refused(
    transduce: Callable[..., Result], small_model: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    for text, fault in (("", "the text is empty"), ("It rains. " * 40, "40 sentences; at most 32")):
        result = transduce("attention", small_model, text, "--output", page, "--threads", "1")
        assert isinstance(result.exception, DataError)
        assert fault in str(result.exception)
        assert not page.exists()
