"""`transduce evaluate` as a user meets it."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from transduce.data.config import DataConfig
from transduce.data.preparation import prepare
from transduce.errors import ConfigError, DataError, ModelError, TransduceError
from transduce.evaluation.protocols import detokenised, paper
from transduce.evaluation.record import hash_of_lines
from transduce.evaluation.scores import score

Command = Callable[..., Result]


def lines_of(path: str | Path) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()


def as_json(result: Result) -> dict[str, Any]:
    assert result.exception is None, result.output
    loaded: dict[str, Any] = json.loads(result.stdout)
    return loaded


def fault(result: Result) -> TransduceError:
    assert isinstance(result.exception, TransduceError), result.output
    return result.exception


def test_given_output_is_scored_without_a_model(transduce: Command, test_files: str) -> None:
    source, reference = test_files.split(",")
    found = as_json(transduce("evaluate", test_files, "--hypotheses", source, "--json"))
    expected = score(lines_of(source), [lines_of(reference)], protocol=detokenised())
    assert found["scores"] == [one.model_dump() for one in expected]
    assert (found["folder"], found["speed"], found["overlap"], found["beam"]) == (None, None, None, None)
    assert found["data"]["sources"] == hash_of_lines(lines_of(source))


def test_a_model_is_translated_with_scored_and_recorded_beside_itself(
    transduce: Command, small_model: Path, test_files: str
) -> None:
    found = as_json(transduce("evaluate", small_model, test_files, "--json", "--threads", "1"))
    folder = Path(found.pop("folder"))
    assert folder.parent == small_model.parent / "small-evaluations"
    assert json.loads((folder / "record.json").read_text(encoding="utf-8")) == found
    hypotheses, references = lines_of(folder / "hypotheses.txt"), lines_of(folder / "reference-1.txt")
    assert references == lines_of(test_files.split(",")[1])
    expected = score(hypotheses, [references], protocol=detokenised("de"))
    assert found["scores"] == [one.model_dump() for one in expected]
    assert (found["beam"], found["length_penalty"], found["precision"]) == (3, 0.6, "float32"), "the model's own"
    assert found["averaging"] == "mean of steps 1,000, 2,000"
    assert found["overlap"]["sentences"] == 2
    assert found["scores"][0]["value"] > 50, "it knows these sentences by heart"
    assert found["perplexity_per_piece"] > found["perplexity_per_byte"] > 1
    assert found["speed"]["threads"] == 1
    assert found["speed"]["sentences_per_second"] > 0


def test_options_of_the_search_are_obeyed_and_recorded(transduce: Command, small_model: Path, test_files: str) -> None:
    options = ("--beam", "1", "--length-penalty", "0", "--protocol", "paper", "--precision", "bf16", "--threads", "1")
    found = as_json(transduce("evaluate", small_model, test_files, *options, "--consensus", "--json"))
    assert (found["beam"], found["length_penalty"], found["precision"]) == (1, 0, "bf16")
    assert found["consensus"]
    assert (found["protocol"], found["target_language"]) == ("paper", "de"), "the model knows its language"
    assert [one["name"] for one in found["scores"]] == ["BLEU (paper)"]


def test_further_references_count(transduce: Command, test_files: str, tmp_path: Path) -> None:
    source = test_files.split(",")[0]
    alone = as_json(transduce("evaluate", test_files, "--hypotheses", source, "--json"))
    both = as_json(transduce("evaluate", test_files, "--hypotheses", source, "--reference", source, "--json"))
    assert alone["scores"][0]["value"] < 100
    assert both["scores"][0]["value"] == pytest.approx(100)
    assert "nrefs:2" in both["scores"][0]["signature"]


def test_a_difference_is_tested_against_a_file_and_against_a_model(
    transduce: Command, small_model: Path, other_model: Path, test_files: str
) -> None:
    source, reference = test_files.split(",")
    against_file = transduce("evaluate", test_files, "--hypotheses", reference, "--compare", source, "--json")
    bleu = as_json(against_file)["differences"][0]
    assert (bleu["system"], bleu["p_value"] < 0.05) == (pytest.approx(100), True)
    options = ("--compare", other_model, "--protocol", "paper", "--threads", "1", "--json")
    against_model = as_json(transduce("evaluate", small_model, test_files, *options))
    other = as_json(transduce("evaluate", other_model, test_files, "--protocol", "paper", "--threads", "1", "--json"))
    assert against_model["compared_with"] == str(other_model)
    assert against_model["differences"][0]["baseline"] == other["scores"][0]["value"]
    assert against_model["differences"][0]["system"] == against_model["scores"][0]["value"]


def test_the_table_fits_in_80_columns_and_shows_every_signature(
    transduce: Command, small_model: Path, test_files: str
) -> None:
    source = test_files.split(",")[0]
    result = transduce("evaluate", small_model, test_files, "--compare", source, "--threads", "1")
    assert result.exception is None, result.output
    lines = result.stdout.splitlines()
    paths = (str(small_model.parent), str(Path(source).parent))
    assert all(len(line) <= 80 for line in lines if not any(path in line for path in paths))
    for name in ("BLEU", "chrF2", "TER"):
        place = next(number for number, line in enumerate(lines) if re.match(rf"{name} +\d+\.\d\d", line))
        assert lines[place + 1].startswith("  nrefs:1|case:")
        assert lines[place + 1].endswith("|version:" + lines[place + 1].rpartition(":")[2])
    text = result.stdout
    assert "perplexity" in text
    assert "per byte" in text
    assert "beam 3, length penalty 0.6, float32, 1 thread" in text
    assert "2 of these sentences were in the training text. Without them: BLEU" in text
    assert re.search(r"BLEU .* better", text)
    assert "record: " in text


def test_output_of_another_system_is_not_recorded_as_the_models_own(
    transduce: Command, other_model: Path, test_files: str
) -> None:
    before = sorted(other_model.parent.rglob("record.json"))
    reference = test_files.split(",")[1]
    found = as_json(transduce("evaluate", other_model, test_files, "--hypotheses", reference, "--json"))
    assert (found["system"], found["folder"]) == (reference, None)
    assert found["overlap"]["sentences"] == 2, "what the model was trained on is still of interest"
    assert sorted(other_model.parent.rglob("record.json")) == before


def test_tokenised_output_is_warned_of(transduce: Command, tmp_path: Path, test_files: str) -> None:
    tokenised = tmp_path / "tokenised.de"
    tokenised.write_text("ein Hund .\n" * 6, encoding="utf-8", newline="\n")
    result = transduce("evaluate", test_files, "--hypotheses", tokenised, "--json")
    assert "tokenised.de end in a space and a full stop" in result.stderr
    result = transduce("evaluate", test_files, "--hypotheses", tokenised, "--json", "--protocol", "paper", "--to", "de")
    assert "full stop" not in result.stderr


def test_what_is_missing_is_asked_for(transduce: Command, test_files: str, tmp_path: Path) -> None:
    alone = fault(transduce("evaluate", test_files))
    assert isinstance(alone, ConfigError)
    assert "Name a model and a test set" in str(alone)
    three = fault(transduce("evaluate", "model", *test_files.split(",")))
    assert f"one name with a comma: {test_files}" in str(three)
    no_language = fault(
        transduce("evaluate", test_files, "--hypotheses", test_files.split(",")[1], "--protocol", "paper")
    )
    assert "for example --to de" in str(no_language)


def test_a_run_alone_is_scored_on_what_it_kept_aside(
    transduce: Command, small_model: Path, tmp_path: Path, test_files: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(small_model, run / "model")
    assert "has no test pairs of its own" in str(fault(transduce("evaluate", run)))
    data = DataConfig(train=(test_files,), held_out_valid=1, held_out_test=2)
    prepared = prepare(data, run / "data", vocabulary_size=300)
    assert prepared.test is not None
    found = as_json(transduce("evaluate", run, "--json", "--threads", "1"))
    kept = [prepared.test.original(number) for number in range(len(prepared.test))]
    assert found["data"]["sources"] == hash_of_lines([source for source, _ in kept])
    assert found["data"]["reference 1"] == hash_of_lines([target for _, target in kept])
    assert (found["sentences"], found["test"]) == (len(kept), str(run / "data" / "test"))
    assert "--reference needs a test set" in str(fault(transduce("evaluate", run, "--reference", "x")))


def test_what_does_not_exist_is_named(transduce: Command, test_files: str, tmp_path: Path) -> None:
    reference = test_files.split(",")[1]
    assert "out.txt does not exist" in str(
        fault(transduce("evaluate", test_files, "--hypotheses", tmp_path / "out.txt"))
    )
    missing_model = fault(transduce("evaluate", tmp_path / "model", test_files))
    assert isinstance(missing_model, ModelError)
    assert "There is no model at" in str(missing_model)
    missing_test = fault(transduce("evaluate", "none.en,none.de", "--hypotheses", reference))
    assert isinstance(missing_test, DataError)
    assert "none.en does not exist" in str(missing_test)
    other = fault(transduce("evaluate", test_files, "--hypotheses", reference, "--compare", tmp_path / "nothing"))
    assert "There is no model at" in str(other)
    assert "no protocol 'bleu'" in str(
        fault(transduce("evaluate", test_files, "--hypotheses", reference, "--protocol", "bleu"))
    )


def test_an_unknown_precision_and_an_impossible_beam_are_refused(
    transduce: Command, small_model: Path, test_files: str
) -> None:
    for option, value, reason in (("--precision", "int4", "'int4'"), ("--beam", "0", "greater than or equal to 1")):
        result = transduce("evaluate", small_model, test_files, option, value)
        assert result.exit_code == 2
        assert f"Invalid value for '{option}'" in result.output
        assert reason in result.output


def test_the_papers_protocol_is_the_librarys(transduce: Command, test_files: str) -> None:
    source, reference = test_files.split(",")
    found = as_json(
        transduce("evaluate", test_files, "--hypotheses", source, "--protocol", "paper", "--to", "de", "--json")
    )
    expected = score(lines_of(source), [lines_of(reference)], protocol=paper("de"))
    assert found["scores"] == [one.model_dump() for one in expected]
