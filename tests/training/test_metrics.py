import json
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.errors import RunError
from transduce.training.config import TrainingConfig
from transduce.training.metrics import JsonLines, Sample, TensorBoardEvents, read_metrics
from transduce.training.reports import Reports, means
from transduce.training.state import TrainingProgress
from transduce.training.step import StepCounts, StepReport
from transduce.training.validation import Validation


def test_reports_are_one_object_a_line(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path, resumed_step=0)
    lines.write("train", 50, {"loss": 2.5})
    lines.write("valid", 50, {"perplexity": 9})
    lines.close()
    text = (tmp_path / "metrics.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in text.splitlines()] == [
        {"kind": "train", "step": 50, "loss": 2.5},
        {"kind": "valid", "step": 50, "perplexity": 9},
    ]


def test_a_resume_cuts_what_it_will_write_again(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path, resumed_step=0)
    for step in (10, 20, 30):
        lines.write("train", step, {"loss": 1.0})
    lines.close()
    with (tmp_path / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"kind": "train", "step": 4')  # torn by a kill
    resumed = JsonLines(tmp_path, resumed_step=20)
    resumed.write("train", 30, {"loss": 2.0})
    resumed.close()
    reports = list(read_metrics(tmp_path / "metrics.jsonl"))
    assert [(report["step"], report["loss"]) for report in reports] == [(10, 1.0), (20, 1.0), (30, 2.0)]


def test_what_json_cannot_say_is_never_written(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path, resumed_step=0)
    with pytest.raises(ValueError, match="JSON"):
        lines.write("train", 1, {"loss": float("nan")})
    lines.close()
    assert (tmp_path / "metrics.jsonl").read_bytes() == b""


def test_tensorboard_reads_the_events_back(tmp_path: Path) -> None:
    from tensorboardX.proto.event_pb2 import Event, SessionLog
    from tensorboardX.record_writer import masked_crc32c

    writer = TensorBoardEvents(tmp_path, resumed_step=20)
    writer.write("train", 30, {"loss": 2.5, "samples": ["no number"]})
    writer.write_samples(40, [Sample("a dog", "ein Hund", "eine\n\nHund")])
    writer.close()
    (file,) = (tmp_path / "tensorboard").iterdir()
    content, events = file.read_bytes(), []
    while content:  # TFRecord: length, its checksum, data, its checksum
        length = int.from_bytes(content[:8], "little")
        data = content[12 : 12 + length]
        assert content[12 + length : 16 + length] == masked_crc32c(data).to_bytes(4, "little")
        events.append(Event.FromString(data))
        content = content[16 + length :]
    assert events[1].session_log.status == SessionLog.START
    assert events[1].step == 21
    (value,) = events[2].summary.value
    assert (events[2].step, value.tag, value.simple_value) == (30, "train/loss", 2.5)
    (text,) = events[3].summary.value
    assert (events[3].step, text.metadata.plugin_data.plugin_name) == (40, "text")
    assert text.tensor.string_val == ["    a dog\n    → eine\n    \n    Hund\n    (ein Hund)".encode()]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_says_what_to_do(tmp_path: Path, make_config: Callable[..., TrainingConfig]) -> None:
    with Reports(tmp_path, make_config(), resumed_step=0, is_main=True) as reports:
        (lines,) = reports.writers
        assert isinstance(lines, JsonLines)
        lines._file.close()
        lines._file = Path("/dev/full").open("a", encoding="utf-8", newline="")  # noqa: SIM115
        with pytest.raises(RunError, match=r"step 7 could not be written .*No space left.* run the same command again"):
            reports.add_validation(TrainingProgress(step=7), Validation(loss=1.0))


def test_means_weigh_tokens_not_steps() -> None:
    reports = [
        StepReport(StepCounts(tokens=10, objective=20, nll=10, correct=5, positions=20), 1.0, 0.1, seconds=1.0),
        StepReport(StepCounts(tokens=30, objective=30, nll=10, correct=15, positions=30), 3.0, 0.2, seconds=3.0),
    ]
    measures = means(reports)
    assert measures["loss"] == 50 / 40
    assert measures["nll"] == 0.5
    assert measures["accuracy"] == 0.5
    assert measures["tokens_per_second"] == 10.0
    assert measures["padding"] == pytest.approx(0.2)
    assert measures["learning_rate"] == 0.2
    assert measures["gradient_norm"] == 2.0
