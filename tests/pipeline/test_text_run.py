"""A run of a language model from files to a model that writes, interrupted and continued, and fine-tuned."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import transduce
from transduce.tensor_file import read_tensors

LINES = [f"the {colour} {animal} sees {number} birds" for colour in ("red", "blue", "old") for animal in ("dog", "cat")
         for number in ("two", "five", "nine")] * 3  # fmt: skip
SETTINGS = {
    "data.pieces": "characters", "data.max_length": 16, "model.layers": 1, "model.heads": 2, "model.d_model": 16,
    "model.learned_positions": 16, "model.vocabulary_size": 400, "training.batch_tokens": 128, "training.threads": 1,
    "training.validate_every": 10, "training.checkpoint_every": 10,
}  # fmt: skip


def write_text(folder: Path) -> list[Path]:
    plain, packed = folder / "one.txt", folder / "two.txt.gz"
    plain.write_text("\n".join(LINES[:30]) + "\n", encoding="utf-8")
    packed.write_bytes(gzip.compress(("\n".join(LINES[30:]) + "\n").encode()))
    return [plain, packed]


def weights(run: Path) -> dict[str, np.ndarray]:
    return dict(read_tensors(run / "model" / "weights.safetensors"))


@pytest.mark.slow
def test_a_run_continues_bit_for_bit_and_its_model_is_fine_tuned(tmp_path: Path) -> None:
    files = write_text(tmp_path)
    whole = transduce.train(text_file=files, output=tmp_path / "whole", preset="gpt-tiny", settings=SETTINGS, steps=20)
    asked = [0]

    def is_enough() -> bool:
        asked[0] += 1
        return asked[0] > 7

    begun = {"output": tmp_path / "begun", "preset": "gpt-tiny", "settings": SETTINGS, "steps": 20}
    stopped = transduce.train(text_file=files, stop_requested=is_enough, **begun)  # type: ignore[arg-type]
    assert stopped.step < 20
    transduce.train(output=tmp_path / "begun")
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "begun")
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)

    lines = (tmp_path / "whole" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    measured = [row for row in map(json.loads, lines) if row["kind"] == "valid"]
    assert measured[-1]["step"] == 20
    assert measured[-1]["loss"] < measured[0]["loss"]
    assert whole.validation is not None
    assert {"bits_per_character", "bits_per_byte"} <= measured[-1].keys()
    report = (tmp_path / "whole" / "report.html").read_text(encoding="utf-8")
    assert "character" in report

    assert len(transduce.load(tmp_path / "whole", threads=1).generate("the red", tokens=20)) > 0
    tuned = transduce.train(
        text_file=files[:1],
        output=tmp_path / "tuned",
        start_from=tmp_path / "whole",
        steps=10,
        settings={"training.batch_tokens": 128, "training.threads": 1},
    )
    assert tuned.validation is not None
    assert tuned.validation.loss < measured[-1]["loss"]
