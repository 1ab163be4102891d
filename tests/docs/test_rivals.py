"""The page about the other networks: one section, one figure and one file for each."""

import importlib.util
import re
from pathlib import Path

from transduce.torch_networks import NETWORKS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "rivals.md").read_text(encoding="utf-8")

RIVALS = set(NETWORKS) - {"transformer", "language-model"}


def test_every_network_has_a_section_with_a_figure_that_the_script_draws() -> None:
    spec = importlib.util.spec_from_file_location("make_rival_figures", DOCS / "figures/make_rival_figures.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for figure in script.FIGURES:
        drawn = (DOCS / f"figures/rival_{figure.name}.svg").read_text(encoding="utf-8")
        assert drawn == figure.svg(), "run docs/figures/make_rival_figures.py"
    shown = re.findall(r"\(figures/rival_(\w+)\.svg\)", PAGE)
    assert sorted(shown) == sorted(figure.name for figure in script.FIGURES)
    assert len(shown) == len(re.findall(r"^## ", PAGE, re.M)) == PAGE.count("Results: ") == len(RIVALS)
    assert set(re.findall(r"^\| `([\w-]+)` \|", PAGE, re.M)) == RIVALS | {"small"}
