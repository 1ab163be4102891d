"""`transduce paper` as a user runs it: rows as JSON, and the page."""

import json
from pathlib import Path

from typer.testing import CliRunner

from transduce.cli.application import app


def test_rows_are_json_with_printed_and_measured_values() -> None:
    found = CliRunner().invoke(app, ["paper", "table3", "--json"])
    assert found.exit_code == 0, found.output
    rows = {row["claim"]: row for row in json.loads(found.stdout)}
    row = rows["base: parameters, millions"]
    assert (row["printed"], row["counted"]) == (65, 63.046)
    assert row["not_measured"]


def test_the_page_holds_every_table_and_loads_nothing(tmp_path: Path) -> None:
    page = tmp_path / "paper.html"
    found = CliRunner().invoke(app, ["paper", "--html", str(page)])
    assert found.exit_code == 0, found.output
    text = page.read_text(encoding="utf-8")
    assert all(f'"title": "{table}"' in text for table in ("table1", "table2", "table3", "table4", "figures"))
    assert "unscaled" in text
    assert "src=" not in text
