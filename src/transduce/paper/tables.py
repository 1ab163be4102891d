"""Tables 1 to 4 as rows: the printed value, the value counted from our own networks, the value measured here.

The printed values are in `printed.toml`. Counted values are exact: parameters and operations follow from the sizes in
the presets. Measured values come from `measured.json`, which `benchmarks/paper_results.py` writes from finished runs.
"""

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files as package_files
from typing import Any

from transduce.experiment import resolve_experiment
from transduce.networks.config import NetworkConfig
from transduce.networks.cost import parameter_count
from transduce.paper.experiments import Measured, claims

TABLES = ("table1", "table2", "table3", "table4", "claims")
_LENGTH = 25  # tokens in a sentence for which operations are counted
_SHORT, _LONG = 256, 1024  # lengths between which the growth of a layer's operations is measured
_NO_WMT = "the training text of WMT and eight GPUs are not at hand; `transduce paper claims` has the small experiments"
_NO_WSJ = (
    "the Penn Treebank needs a licence; recipes/paper/wsj.parsing.toml trains on it, and GUM stands in for it here"
)


@dataclass(frozen=True)
class Row:
    """One value of a table or one claim."""

    claim: str
    printed: float | str | None
    counted: float | str | None = None
    """What the sizes of the network imply, computed here."""
    measured: Measured | None = None
    not_measured: str | None = None
    """Why there is no measurement."""

    def as_json(self) -> dict[str, Any]:
        """Return the row without the fields that are empty."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def rows_of(table: str, measured: Mapping[str, Measured] | None = None) -> list[Row]:
    """Return the rows of a table, with these measurements or, unless given, those that come with the package."""
    found = shipped_measurements() if measured is None else measured
    if table == "claims":
        return list(_claim_rows(found))
    printed = tomllib.loads(_read("printed.toml"))[table]
    if table == "table1":
        return [row for entry in printed for row in _layer_rows(entry)]
    rows = [row for entry in printed["rows"] for row in _printed_rows(table, entry, printed["columns"])]
    rows += [row for row in _claim_rows(found) if table == "table3" and row.claim.startswith("Row")]
    own = {name.removeprefix(f"{table}/"): value for name, value in found.items() if name.startswith(f"{table}/")}
    return rows + [Row(f"here: {name}", "not in the paper", measured=value) for name, value in own.items()]


def shipped_measurements() -> dict[str, Measured]:
    """Return the measurements that come with the package, by claim and run."""
    return {name: Measured(**entry) for name, entry in json.loads(_read("measured.json")).items()}


def _read(name: str) -> str:
    return (package_files("transduce") / "paper" / name).read_text(encoding="utf-8")


def _layer_rows(entry: dict[str, Any]) -> Iterator[Row]:
    """Yield Table 1's three columns for a kind of layer, counted from the encoder of a network that has it."""
    network = resolve_experiment(preset=entry["preset"], overrides=entry.get("overrides", ())).model
    short, long = (network.cost(n, n) for n in (_SHORT, _LONG))
    growth = math.log(long.operations["encoder"] / short.operations["encoder"], _LONG / _SHORT)
    counted = {
        "operations": f"n^{growth:.2f} from n = {_SHORT} to {_LONG:,}, whole encoder of {entry['preset']}",
        "sequential": f"{short.sequential_steps:,} steps at n = {_SHORT}, {long.sequential_steps:,} at {_LONG:,}",
        "path": f"{short.path_length:,} at n = {_SHORT}, {long.path_length:,} at {_LONG:,}",
    }
    names = {"operations": "operations", "sequential": "sequential operations", "path": "path length"}
    for column, words in names.items():
        why = "counted, not timed: see `transduce describe` for the operations of a whole network"
        yield Row(f"{entry['row']}: {words}", entry[column], counted[column], not_measured=why)


def _printed_rows(table: str, entry: dict[str, Any], columns: list[str]) -> Iterator[Row]:
    change = f" ({entry['change']})" if "change" in entry else ""
    preset = entry.get("preset") or (f"table3-{entry['row']}" if table == "table3" else None)
    network = None if preset is None else resolve_experiment(preset=preset).model
    for column, value in zip(columns, entry["printed"], strict=True):
        counted = None if network is None else _counted(column, network)
        why = _NO_WSJ if table == "table4" else _NO_WMT
        yield Row(f"{entry['row']}{change}: {column}", value, counted, not_measured=why)


def _counted(column: str, network: NetworkConfig) -> float | str | None:
    if column.startswith("parameters"):
        return round(parameter_count(network) / 1e6, 3)
    if column.startswith("training FLOPs"):
        per_token = network.cost(_LENGTH, _LENGTH).training // _LENGTH
        return f"{per_token / 1e6:,.0f} million a token pair ({parameter_count(network) / 1e6:,.0f} M parameters)"
    return None


def _claim_rows(measured: Mapping[str, Measured]) -> Iterator[Row]:
    for claim in claims():
        for run in claim.runs:
            found = measured.get(f"{claim.name}/{run}")
            why = None if found else "not run yet: transduce paper claims --run"
            yield Row(f"{claim.text}: {run}", f"expected here: {claim.expected}", measured=found, not_measured=why)
