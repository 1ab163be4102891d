"""The paper's tables beside our counts: exact sizes, and the growth that Table 1 states."""

import json
from pathlib import Path

import pytest

from transduce.paper import TABLES, Row, paper_page, rows_of
from transduce.paper.experiments import Measured, claims, finding_of, folder_name, joined, settings_of


def value(rows: list[Row], claim: str) -> Row:
    (found,) = (row for row in rows if row.claim.startswith(claim))
    return found


@pytest.mark.parametrize(
    ("row", "parameters"),
    [
        ("base", 63_045_632),
        ("B1 (d_k 16)", 55_967_744),
        ("C1 (N 2)", 33_644_544),
        ("C4 (d_model 256)", 26_816_512),
        ("C7 (d_ff 4096)", 88_236_032),
        ("big", 214_171_648),
    ],
)
def test_counted_parameters_follow_the_formula_at_37_000_pieces(row: str, parameters: int) -> None:
    counted = value(rows_of("table3"), f"{row}: parameters").counted
    assert counted == round(parameters / 1e6, 3)


def test_table_1_grows_as_printed() -> None:
    rows = rows_of("table1")
    grown = {"self-attention": "n^2.00·d^1.00", "recurrent": "n^1.00·d^2.00", "convolutional": "n^1.00·d^2.00"}
    for kind, expected in grown.items():
        assert str(value(rows, f"{kind}: operations").counted).startswith(expected)
    assert value(rows, "self-attention: path length").counted == "1 at n = 32 · 1 at n = 64 · 1 at n = 128"
    assert value(rows, "recurrent: path length").counted == "32 at n = 32 · 64 at n = 64 · 128 at n = 128"
    assert value(rows, "convolutional: path length").counted == "31 at n = 32 · 63 at n = 64 · 127 at n = 128"
    assert value(rows, "convolutional, dilated: path length").counted == "4 at n = 32 · 5 at n = 64 · 6 at n = 128"
    # A neighbourhood of 16 reaches 8 positions to either side.
    restricted = value(rows, "self-attention (restricted): path length").counted
    assert restricted == "4 at n = 32 · 8 at n = 64 · 16 at n = 128"


@pytest.mark.parametrize("table", TABLES)
def test_every_row_has_a_measurement_or_the_reason_why_not(table: str) -> None:
    rows = [row.as_json() for row in rows_of(table)]
    assert rows
    for row in rows:
        assert row["claim"]
        assert "printed" in row
        assert ("measured" in row) != ("not_measured" in row)


def test_runs_that_claims_share_have_one_folder() -> None:
    runs = [(claim, run) for claim in claims() if claim.study is None and not claim.presets for run in claim.runs]
    names = [folder_name(settings_of(claim, run), seed=1) for claim, run in runs]
    assert names.count("base-seed_1") == sum(run == "base" and not claim.settings for claim, run in runs)
    assert len(set(names)) == len({tuple(settings_of(claim, run)) for claim, run in runs})


def test_a_measurement_is_the_mean_and_the_range_over_seeds(tmp_path: Path) -> None:
    runs = []
    for seed, perplexity in ((1, 8.0), (2, 9.0)):
        runs.append(tmp_path / str(seed))
        runs[-1].mkdir()
        lines = [
            {"kind": "valid", "step": 10, "perplexity": 100.0, "bleu": 1.0},
            {"kind": "valid", "step": 20, "perplexity": perplexity, "bleu": 10.0},
            {"kind": "final", "step": 20, "perplexity": perplexity - 1, "bleu": 12.0},
        ]
        (runs[-1] / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = joined({seed: finding_of(run) for seed, run in zip((1, 2), runs, strict=True)})
    assert (found.number, found.range, found.seeds) == (8.5, [8.0, 9.0], [1, 2])
    assert found.also["perplexity of the averaged checkpoints"] == 7.5


def test_measurements_stand_beside_the_printed_values() -> None:
    found = Measured(number=8.5, seeds=[1], range=[8.5, 8.5])
    rows = rows_of("claims", {"depth/N 1": found})
    assert "8.5 (8.5 to 8.5, 1 seed;" in paper_page({"depth/N 1": found})
    assert value(rows, "Row C: a deeper network is better: N 1").measured == found
    assert value(rows, "Row C: a deeper network is better: base").not_measured
