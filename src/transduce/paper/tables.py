"""Tables 1 to 4, the figures and the claims as rows: what is printed, what is counted here, what was measured here.

The printed values are in `printed.toml`. Counted values are exact: Table 1's are counted while the layers run, and
parameters and operations of whole networks follow from the sizes in the presets. `benchmarks/paper_results.py` writes
the measured values into `measured.json`.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files as package_files
from typing import Any

from transduce.experiment import resolve_experiment
from transduce.networks.config import NetworkConfig
from transduce.networks.cost import parameter_count
from transduce.paper.experiments import Measured, claims

TABLES = ("table1", "table2", "table3", "table4", "figures", "claims")
_LENGTH = 25  # tokens in a sentence for which operations are counted
_SIZES, _WIDTHS = (32, 64, 128), (32, 64)  # lengths and widths at which a layer of Table 1 is counted
_NO_WMT = "the training text of WMT and eight GPUs are not at hand; `transduce paper claims` has the small experiments"
_NO_WSJ = (
    "the Penn Treebank needs a licence; recipes/paper/wsj.parsing.toml trains on it, and GUM stands in for it here"
)
_NO_TIME = "not run for this release, for want of processor time; --run measures it here"


@dataclass(frozen=True)
class Row:
    """One value of a table or one claim."""

    claim: str
    printed: float | str | None
    counted: float | str | None = None
    """What is counted while the network runs, or what its sizes imply."""
    expected: str | None = None
    """What we expected of the experiment before its first run."""
    measured: Measured | None = None
    not_measured: str | None = None
    """Why there is no measurement."""

    def as_json(self) -> dict[str, Any]:
        """Return the row without the fields that are empty."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def rows_of(table: str, measured: Mapping[str, Measured] | None = None) -> list[Row]:
    """Return the rows of a table, with these measurements or, unless given, those that come with the package."""
    found = shipped_measurements() if measured is None else measured
    rows = list(_claim_rows(found, table))
    if table in ("claims", "figures"):
        return rows
    printed = tomllib.loads(_read("printed.toml"))[table]
    if table == "table1":
        return [*(row for entry in printed for row in _layer_rows(entry)), *rows]
    own = {name.removeprefix(f"{table}/"): value for name, value in found.items() if name.startswith(f"{table}/")}
    rows += [Row(f"here: {name}", "not in the paper", measured=value) for name, value in own.items()]
    return [*(row for entry in printed["rows"] for row in _printed_rows(table, entry, printed["columns"])), *rows]


def shipped_measurements() -> dict[str, Measured]:
    """Return the measurements that come with the package, by claim and run."""
    return {name: Measured(**entry) for name, entry in json.loads(_read("measured.json")).items()}


def _read(name: str) -> str:
    return (package_files("transduce") / "paper" / name).read_text(encoding="utf-8")


def _layer_rows(entry: dict[str, str]) -> Iterator[Row]:
    """Yield Table 1's three columns for a kind of layer, counted while it runs."""
    from transduce.paper.layers import count, slope

    kind = entry["row"]
    by_length = [count(kind, n, _WIDTHS[0]) for n in _SIZES]
    by_width = [count(kind, _SIZES[0], d).operations for d in _WIDTHS]
    of_n = slope(_SIZES, [found.operations for found in by_length])
    counted = {
        "operations": f"n^{of_n:.2f}·d^{slope(_WIDTHS, by_width):.2f}, {by_length[-1].operations:,} at n = "
        f"{_SIZES[-1]}, d = {_WIDTHS[0]}",
        "sequential": " · ".join(f"{found.sequential} at n = {n}" for n, found in zip(_SIZES, by_length, strict=True)),
        "path": " · ".join(f"{found.path} at n = {n}" for n, found in zip(_SIZES, by_length, strict=True)),
    }
    names = {"operations": "operations", "sequential": "sequential operations", "path": "path length"}
    for column, words in names.items():
        yield Row(f"{kind}: {words}", entry[column], counted[column], not_measured="counted exactly")


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


def _claim_rows(measured: Mapping[str, Measured], table: str) -> Iterator[Row]:
    for claim in claims():
        for run in claim.runs if table in ("claims", claim.table) else ():
            found = measured.get(f"{claim.name}/{run}")
            why = None if found else claim.not_measured or _NO_TIME
            yield Row(f"{claim.text}: {run}", claim.printed, expected=claim.expected, measured=found, not_measured=why)
