"""The studies by name: what is measured otherwise than by an ordinary training."""

from collections.abc import Mapping

from transduce.paper.finding import Study
from transduce.paper.heads import ablation, ranked_heads
from transduce.paper.language import language
from transduce.paper.layers import growth
from transduce.paper.probes import probe
from transduce.paper.recall import recall

STUDIES: Mapping[str, Study] = {
    "growth": growth,
    "language": language,
    "recall": recall,
    "heads": ranked_heads,
    "ablation": ablation,
    "probes": probe,
}
