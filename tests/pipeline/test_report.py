"""Samples and metrics of a damaged run: lines that are not whole are left out, and the report is written."""

import json
from pathlib import Path

import pytest

from transduce.pipeline.report import SAMPLES_FILE, _samples
from transduce.training.metrics import read_metrics

WHOLE = {"step": 4, "samples": [["a cat", "eine Katze", "ein Katz"]]}


@pytest.mark.parametrize(
    "damaged",
    [
        '{"step": 2, "samqles": []}',
        '{"step": 2, "samples": [["a", "b"]]}',
        '{"step": 2, "samples": 7}',
        '{"step": 1e999, "samples": []}',
        '{"step": 2, "samples": [[1, 2, 3]]}',
        '{"step": 2, "sam',
    ],
)
def test_damaged_lines_are_left_out(tmp_path: Path, damaged: str) -> None:
    (tmp_path / SAMPLES_FILE).write_text(f"{damaged}\n{json.dumps(WHOLE)}\n", encoding="utf-8")
    assert _samples(tmp_path) == [{"source": "a cat", "reference": "eine Katze", "outputs": [[4, "ein Katz"]]}]
    assert WHOLE in list(read_metrics(tmp_path / SAMPLES_FILE))
