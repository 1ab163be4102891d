"""Draw what flows where in each network of `docs/rivals.md`: `python docs/figures/make_rival_figures.py`.

A figure is a grid of boxes and arrows between them. Blue is the source's side, brown the target's; a thick arrow is all
that passes from source to target.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
COLUMN, ROW, WIDTH, HEIGHT = 74, 52, 58, 26
FONT = 'font-family="sans-serif" font-size="11" role="img"'
TIP = 'viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" markerUnits="userSpaceOnUse" orient="auto"'
COLOURS = {"source": ("#dbe9f6", "#1f4e79"), "target": ("#f6e7d8", "#7a4a12"), "plain": ("#eeeeee", "#555555")}


class Figure:
    """Boxes on a grid, named by their place, and arrows between them."""

    def __init__(self, name: str, title: str) -> None:
        self.name, self.title = name, title
        self.boxes: dict[str, tuple[float, float, str, str]] = {}
        self.arrows: list[tuple[str, str, str]] = []

    def box(self, name: str, column: float, row: float, text: str, kind: str = "plain") -> str:
        """Add a box; rows count from the bottom."""
        self.boxes[name] = (column, row, text, kind)
        return name

    def row(self, name: str, first: float, row: float, texts: Iterable[str], kind: str) -> list[str]:
        """Add boxes side by side and return their names."""
        return [self.box(f"{name}{place}", first + place, row, text, kind) for place, text in enumerate(texts)]

    def arrow(self, start: str, end: str, style: str = "thin") -> None:
        """Add an arrow, `thin`, `thick` or `dashed`."""
        self.arrows.append((start, end, style))

    def chain(self, names: list[str], style: str = "thin") -> None:
        """Add an arrow from each box to the next."""
        for pair in pairwise(names):
            self.arrow(*pair, style)

    def up(self, lower: list[str], upper: list[str], reach: Callable[[int, int], bool] = lambda a, b: a == b) -> None:
        """Add an arrow from each lower box to each upper one that it reaches."""
        for a, start in enumerate(lower):
            for b, end in enumerate(upper):
                if reach(a, b):
                    self.arrow(start, end)

    def svg(self) -> str:
        """Return the figure."""
        columns, rows = (max(box[axis] for box in self.boxes.values()) for axis in (0, 1))
        width, height = (columns + 1) * COLUMN + 12, (rows + 1) * ROW + 12

        def middle(name: str) -> tuple[float, float]:
            column, row, _, _ = self.boxes[name]
            return column * COLUMN + COLUMN / 2 + 6, height - (row * ROW + ROW / 2 + 6)

        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" {FONT}>',
            f"<title>{escape(self.title)}</title>",
            f'<defs><marker id="tip" {TIP}><path d="M0 0 6 3 0 6z" fill="#444"/></marker></defs>',
            f'<rect width="{width:g}" height="{height:g}" fill="white"/>',
        ]
        for start, end, style in self.arrows:
            (x1, y1), (x2, y2) = middle(start), middle(end)
            (x1, y1), (x2, y2) = _edge(x1, y1, x2, y2), _edge(x2, y2, x1, y1)
            look = {"thin": 'stroke-width="1"', "thick": 'stroke-width="3"', "dashed": 'stroke-dasharray="4 3"'}[style]
            parts.append(
                f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#444" {look} '
                'marker-end="url(#tip)"/>'
            )
        for name, (_, _, text, kind) in self.boxes.items():
            (x, y), (fill, line) = middle(name), COLOURS[kind]
            parts.append(
                f'<rect x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}" rx="5" '
                f'fill="{fill}" stroke="{line}"/>'
            )
            parts.append(f'<text x="{x:g}" y="{y + 4:g}" text-anchor="middle" fill="#222">{escape(text)}</text>')
        return "\n".join([*parts, "</svg>", ""])


def _edge(x: float, y: float, towards_x: float, towards_y: float) -> tuple[float, float]:
    """Return where the line from a box's middle leaves the box."""
    dx, dy = towards_x - x, towards_y - y
    share = min(
        WIDTH / 2 / abs(dx) if dx else float("inf"),
        HEIGHT / 2 / abs(dy) if dy else float("inf"),
    )
    return x + dx * share, y + dy * share


def lstm() -> Figure:
    """Draw two stacks, between which the last states pass."""
    figure = Figure("lstm", "An LSTM reads the source backwards; its last states start the LSTM that writes")
    tokens = figure.row("x", 0, 0, ["x₃", "x₂", "x₁"], "source") + figure.row(
        "y", 3, 0, ["start", "y₁", "y₂"], "target"
    )
    below = tokens
    for layer in (1, 2):
        read = figure.row(f"r{layer}", 0, layer, ["LSTM"] * 3, "source")
        write = figure.row(f"w{layer}", 3, layer, ["LSTM"] * 3, "target")
        figure.chain(read)
        figure.arrow(read[-1], write[0], "thick")
        figure.chain(write)
        figure.up(below, read + write)
        below = read + write
    figure.up(below[3:], figure.row("o", 3, 3, ["y₁", "y₂", "y₃"], "target"))
    return figure


def attention(name: str, title: str, *, fed: bool) -> Figure:
    """Draw a recurrent encoder, and attention of the state before, or of the present one with feeding."""
    figure = Figure(name, title)
    x = figure.row("x", 0, 0, ["x₁", "x₂", "x₃"], "source")
    top = x
    for row, label in [(1, "LSTM" if fed else "GRU →")] + ([] if fed else [(2, "GRU ←")]):
        units = figure.row(f"r{row}", 0, row, [label] * 3, "source")
        figure.chain(units if row == 1 and not fed else units[::-1])
        figure.up(top, units)
        top = units
    y, state = figure.row("y", 3.4, 0, ["start", "y₁"], "target"), figure.row("s", 3.4, 1, ["s₁", "s₂"], "target")
    mixed = figure.row("c", 3.4, 3, ["c₁", "c₂"], "plain")
    figure.up(y, state)
    figure.chain(state)
    for unit in top:
        for context in mixed:
            figure.arrow(unit, context, "thick" if unit == top[1] else "thin")
    if fed:
        out = figure.row("h", 3.4, 4, ["h̃₁", "h̃₂"], "target")
        figure.up(mixed, out)
        figure.up(state, mixed)
        figure.arrow(out[0], state[1], "dashed")
    else:
        figure.up(mixed, state)
        figure.arrow(state[0], mixed[1], "dashed")
    return figure


def gnmt() -> Figure:
    """Draw residual layers, of which the lowest asks."""
    figure = Figure("gnmt", "Deep residual LSTMs; the bottom layer of the decoder asks, all layers read the context")
    for layer, label in enumerate(["x", "→ and ←", "LSTM 2", "LSTM 3", "LSTM 4"]):
        figure.box(f"e{layer}", 0, layer, label, "source")
    for layer, label in enumerate(["y", "LSTM 1", "LSTM 2", "LSTM 3", "LSTM 4"]):
        figure.box(f"d{layer}", 3, layer, label, "target")
    figure.chain([f"e{layer}" for layer in range(5)])
    figure.chain([f"d{layer}" for layer in range(5)])
    for side, column in (("e", 0.95), ("d", 3.95)):
        before = f"{side}2"
        for layer in (3, 4):
            plus = figure.box(f"{side}+{layer}", column, layer, "sum", "plain")
            figure.arrow(f"{side}{layer}", plus)
            figure.arrow(before, plus, "dashed")
            before = plus
    context = figure.box("c", 1.95, 2, "context", "plain")
    figure.arrow("e+4", context, "thick")
    figure.arrow("d1", context, "dashed")
    for layer in (1, 2, 3, 4):
        figure.arrow(context, f"d{layer}")
    return figure


def convs2s() -> Figure:
    """Draw windows of neighbours, and attention in every decoder layer."""
    figure = Figure("convs2s", "Convolutions, and attention in every decoder layer")
    x = figure.row("x", 0, 0, ["x₁", "x₂", "x₃", "x₄"], "source")
    y = figure.row("y", 5.8, 0, ["start", "y₁", "y₂", "y₃"], "target")
    for layer in (1, 2):
        x, below = figure.row(f"e{layer}", 0, layer, ["conv"] * 4, "source"), x
        figure.up(below, x, lambda a, b: abs(a - b) < 2)
        y, below = figure.row(f"d{layer}", 5.8, layer, ["conv"] * 4, "target"), y
        figure.up(below, y, lambda a, b: b - a in (0, 1))
        figure.box(f"a{layer}", 4.4, layer, "attention", "plain")
        figure.arrow(f"a{layer}", f"d{layer}0", "thick")
    figure.arrow("e23", "a2", "thick")
    figure.arrow("e23", "a1", "thick")
    return figure


def bytenet() -> Figure:
    """Draw the decoder on top of the encoder's columns."""
    figure = Figure("bytenet", "Dilated convolutions; the decoder stands on the encoder's columns and reads one a step")
    row = figure.row("x", 0, 0, ["x₁", "x₂", "x₃", "x₄", "0"], "source")
    for layer, dilation in ((1, 1), (2, 2)):
        row, below = figure.row(f"e{layer}", 0, layer, ["conv"] * 5, "source"), row
        figure.up(below, row, lambda a, b, s=dilation: abs(a - b) in (0, s))  # type: ignore[misc]
    row, below = figure.row("y", 0, 3, ["+ start", "+ y₁", "+ y₂", "+ y₃", "+ y₄"], "target"), row
    for pair in zip(below, row, strict=True):
        figure.arrow(*pair, "thick")
    for layer, dilation in ((4, 1), (5, 2)):
        row, below = figure.row(f"d{layer}", 0, layer, ["conv"] * 5, "target"), row
        figure.up(below, row, lambda a, b, s=dilation: b - a in (0, s))  # type: ignore[misc]
    return figure


def neural_gpu() -> Figure:
    """Draw the whole state at every step."""
    figure = Figure("neural_gpu", "Every step is a gated convolution over the whole state")
    rows = [figure.row("s0", 0, 0, ["x₁", "x₂", "x₃", "0"], "source")]
    for step in (1, 2):
        rows.append(figure.row(f"s{step}", 0, step, ["CGRU"] * 4, "source"))
        figure.up(rows[-2], rows[-1], lambda a, b: abs(a - b) < 2)
    for step in (3, 4):
        rows.append(figure.row(f"s{step}", 0, step, ["CGRU"] * 4, "target"))
        figure.up(rows[-2], rows[-1], lambda a, b: abs(a - b) < 2)
        tape = figure.box(f"p{step}", 4.2, step - 0.5, "no tape" if step == 3 else "tape y₁", "plain")
        figure.arrow(tape, rows[-1][3])
    rows[3][0], rows[4][1] = figure.box("s30", 0, 3, "→ y₁", "target"), figure.box("s41", 1, 4, "→ y₂", "target")
    return figure


def memory_network() -> Figure:
    """Draw a query and its hops over single tokens."""
    figure = Figure("memory_network", "A query reads single tokens in several hops")
    items = figure.row("m", 0, 0, ["x₁", "x₂", "x₃"], "source") + figure.row("r", 3, 0, ["start", "y₁"], "target")
    hops = [figure.box("u1", 5.6, 0, "u = B y₁", "target")]
    for hop in (1, 2, 3):
        read = figure.box(f"h{hop}", 2.5, hop, f"hop {hop}", "plain")
        hops.append(figure.box(f"u{hop + 1}", 5.6, hop, "H u + o", "target"))
        for item in items:
            figure.arrow(item, read, "thin")
        figure.arrow(hops[-2], read, "dashed")
        figure.arrow(read, hops[-1], "thick")
    figure.chain(hops)
    return figure


FIGURES = [
    lstm(),
    attention("rnnsearch", "Additive attention: the state before asks, the context is read", fed=False),
    attention("luong", "Multiplicative attention of the present state; its result is fed to the next", fed=True),
    gnmt(),
    convs2s(),
    bytenet(),
    neural_gpu(),
    memory_network(),
]

if __name__ == "__main__":
    for figure in FIGURES:
        (HERE / f"rival_{figure.name}.svg").write_text(figure.svg(), encoding="utf-8")
