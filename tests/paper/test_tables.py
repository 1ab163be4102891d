"""The paper's tables beside our counts: exact sizes, and the growth that Table 1 states."""

import json
from pathlib import Path

import pytest

from transduce.paper import TABLES, Row, rows_of
from transduce.paper.experiments import Measured, claims, folder_name, measure


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
    def growth(layer: str) -> float:
        return float(str(value(rows_of("table1"), f"{layer}: operations").counted).split()[0].removeprefix("n^"))

    assert growth("recurrent") == 1
    assert growth("convolutional") == pytest.approx(1, abs=0.02)
    assert growth("self-attention (restricted)") == pytest.approx(1, abs=0.02)
    assert 1.2 < growth("self-attention") < 2  # the projections and the feed-forward network grow as n


def test_table_1_has_the_path_of_a_recurrent_network_grow_with_n_and_that_of_attention_not() -> None:
    rows = rows_of("table1")
    assert value(rows, "self-attention: path length").counted == "1 at n = 256, 1 at 1,024"
    assert value(rows, "recurrent: path length").counted == "256 at n = 256, 1,024 at 1,024"
    # A neighbourhood of 16 reaches 8 positions to either side.
    assert value(rows, "self-attention (restricted): path length").counted == "32 at n = 256, 128 at 1,024"


@pytest.mark.parametrize("table", TABLES)
def test_every_row_has_a_measurement_or_the_reason_why_not(table: str) -> None:
    rows = [row.as_json() for row in rows_of(table)]
    assert rows
    for row in rows:
        assert row["claim"]
        assert "printed" in row
        assert ("measured" in row) != ("not_measured" in row)


def test_runs_that_claims_share_have_one_folder() -> None:
    names = [folder_name(settings, seed=1) for claim in claims() for settings in claim.runs.values()]
    assert names.count("base-seed_1") == sum("base" in claim.runs for claim in claims())
    assert len(set(names)) == len({tuple(settings) for claim in claims() for settings in claim.runs.values()})


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
    found = measure([1, 2], runs)
    assert (found.number, found.range, found.seeds) == (8.5, [8.0, 9.0], [1, 2])
    assert found.also["perplexity of the averaged checkpoints"] == 7.5


def test_measurements_stand_beside_the_printed_values() -> None:
    found = Measured(number=8.5, seeds=[1], range=[8.5, 8.5])
    rows = rows_of("claims", {"depth/N 1": found})
    assert value(rows, "Row C: a deeper network is better: N 1").measured == found
    assert value(rows, "Row C: a deeper network is better: base").not_measured
