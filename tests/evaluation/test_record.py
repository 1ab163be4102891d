"""Records: complete, traceable, and the same after they were written and read."""

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from transduce.errors import DataError
from transduce.evaluation.protocols import detokenised
from transduce.evaluation.record import (
    EvaluationRecord,
    Overlap,
    Speed,
    evaluations_folder,
    hash_of_lines,
    read_evaluations,
    write_evaluation,
)
from transduce.evaluation.scores import score
from transduce.evaluation.significance import paired_bootstrap


def make_record(hypotheses: list[str], references: list[str], *, hour: int = 14) -> EvaluationRecord:
    scores = score(hypotheses, [references], protocol=detokenised())
    return EvaluationRecord(
        date=datetime(2026, 11, 20, hour, 22, 33, tzinfo=UTC),
        system="runs/en-de",
        model_sha256="ab" * 32,
        test="data/test.en,data/test.de",
        data={"sources": hash_of_lines(references), "reference 1": hash_of_lines(references)},
        sentences=len(hypotheses),
        target_language="de",
        beam=4,
        length_penalty=0.6,
        precision="float32",
        averaging="the last 5 checkpoints",
        protocol="detokenised",
        scores=scores,
        perplexity_per_piece=4.92,
        perplexity_per_byte=1.4,
        speed=Speed(seconds=2, sentences_per_second=24, tokens_per_second=300, threads=2, processor="a processor"),
        overlap=Overlap(sentences=3, scores_without=scores),
        compared_with="runs/other",
        differences=paired_bootstrap(hypotheses, references, [references], protocol=detokenised(), samples=10),
    )


def test_what_is_written_is_read_again(tmp_path: Path, hypotheses: list[str], references: list[str]) -> None:
    model = tmp_path / "run" / "model"
    model.mkdir(parents=True)
    record = make_record(hypotheses, references)
    folder = write_evaluation(model, record, hypotheses=hypotheses, references=[references, hypotheses])
    assert folder == tmp_path / "run" / "model-evaluations" / "2026-11-20T142233Z-test.de"
    (found,) = read_evaluations(model)
    assert found.record == record
    assert found.hypotheses == hypotheses
    assert found.references == [references, hypotheses]


def test_the_record_names_everything_that_a_number_depends_on(
    tmp_path: Path, hypotheses: list[str], references: list[str]
) -> None:
    folder = write_evaluation(
        tmp_path / "model", make_record(hypotheses, references), hypotheses=hypotheses, references=[references]
    )
    content = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    assert content["date"] == "2026-11-20T14:22:33Z"
    wanted = "transduce data beam length_penalty precision averaging protocol scores speed overlap model_sha256"
    assert set(wanted.split()) <= {key for key, value in content.items() if value is not None}
    assert all(entry["signature"] for entry in content["scores"])


def test_a_second_evaluation_within_the_same_second_does_not_replace_the_first(
    tmp_path: Path, hypotheses: list[str], references: list[str]
) -> None:
    for record in (make_record(hypotheses, references), make_record(references, references)):
        write_evaluation(tmp_path / "model", record, hypotheses=hypotheses, references=[references])
    write_evaluation(
        tmp_path / "model",
        make_record(hypotheses, references, hour=9),
        hypotheses=hypotheses,
        references=[references],
    )
    found = read_evaluations(tmp_path / "model")
    assert [evaluation.folder.name[11:] for evaluation in found] == [
        "092233Z-test.de",
        "142233Z-test.de",
        "142233Z-test.de-2",
    ], "oldest first"


def test_lines_stay_lines_whatever_they_hold(tmp_path: Path, references: list[str]) -> None:
    hostile = ["two\nlines", "carriage\rreturn", "lone \ud800 surrogate", "line\u2028separator"]
    record = make_record(references[:4], references[:4])
    write_evaluation(tmp_path / "model", record, hypotheses=hostile, references=[references[:4]])
    (found,) = read_evaluations(tmp_path / "model")
    assert found.hypotheses == ["two lines", "carriage return", "lone ? surrogate", "line\u2028separator"]


def test_a_hash_is_that_of_the_plain_text_file(tmp_path: Path, references: list[str]) -> None:
    path = tmp_path / "test.de"
    path.write_text("".join(f"{line}\n" for line in references), encoding="utf-8", newline="\n")
    assert hash_of_lines(references) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert hash_of_lines(["ab", "c"]) != hash_of_lines(["a", "bc"])


def test_a_damaged_evaluation_is_named(tmp_path: Path, hypotheses: list[str], references: list[str]) -> None:
    folder = write_evaluation(
        tmp_path / "model", make_record(hypotheses, references), hypotheses=hypotheses, references=[references]
    )
    (folder / "record.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"2026-11-20T142233Z-test\.de is damaged.*evaluate again"):
        read_evaluations(tmp_path / "model")


def test_a_model_never_evaluated_has_no_evaluations(tmp_path: Path) -> None:
    assert read_evaluations(tmp_path / "model") == []
    assert evaluations_folder(Path("model")).is_absolute(), "a relative name such as . would have no folder beside it"
