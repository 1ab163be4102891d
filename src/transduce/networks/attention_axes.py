"""The axes of attention weights, and the kinds of score; without torch, for the reports' JSON and the server."""

from typing import Literal

Axis = Literal["source", "target", "read", "source+read"]
"""What the positions of an axis are.

`source`: the source tokens. `target`: the target tokens, each at the position that predicts it. `read`: the tokens that
the decoder reads at those positions, which are the start token and then every target token but the last. `source+read`:
the axes `source` and `read`, one after the other.
"""

Scores = Literal["scaled", "unscaled", "additive"]
