"""Draw the figures of `docs/equations_by_hand.md` from the code they explain: plain Python writing SVG.

    python docs/figures/make_figures.py

What is drawn is computed by transduce itself; a test holds the files to what this script writes. Every figure has a
white ground of its own, so that it reads the same on a light and on a dark page.
"""

from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from xml.sax.saxutils import escape

import torch
from torch import Tensor

from transduce.model.attention import softmax
from transduce.model.masks import as_keys, visible_to_the_left, visible_tokens
from transduce.model.positional_encoding import sinusoidal_positions
from transduce.training.optimization import paper_rate

INK, FAINT, GRID = "#1b1f24", "#5c6670", "#d7dce1"
BLUE, ORANGE, GREEN = "#2f6db3", "#d9791c", "#3b8a4c"

Point = tuple[float, float]


class Drawing:
    """An SVG of a fixed size, grown element by element."""

    def __init__(self, width: int, height: int, *, title: str) -> None:
        size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        fonts = "Helvetica, Arial, 'Liberation Sans', sans-serif"
        self.elements = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{fonts}" role="img">',
            f"<title>{escape(title)}</title>",
        ]
        self.box((0, 0), (width, height), fill="#ffffff", corner=8)

    def box(self, place: Point, size: Point, *, fill: str, line: str = "none", corner: int = 0) -> None:
        """Draw a rectangle from its upper left corner."""
        self.elements.append(
            f'<rect x="{number(place[0])}" y="{number(place[1])}" width="{number(size[0])}" '
            f'height="{number(size[1])}" rx="{corner}" fill="{fill}" stroke="{line}"/>'
        )

    def text(
        self, place: Point, content: str, *, size: float = 13, anchor: str = "middle", fill: str = INK, style: str = ""
    ) -> None:
        """Write a line of text on its base line."""
        self.elements.append(
            f'<text x="{number(place[0])}" y="{number(place[1])}" font-size="{number(size)}" text-anchor="{anchor}" '
            f'fill="{fill}"{" " + style if style else ""}>{escape(content)}</text>'
        )

    def path(self, commands: str, *, line: str = INK, width: float = 1.5, fill: str = "none") -> None:
        """Draw what SVG's path commands say."""
        self.elements.append(f'<path d="{commands}" stroke="{line}" stroke-width="{number(width)}" fill="{fill}"/>')

    def curve(self, points: Sequence[Point], *, line: str, width: float = 2.5) -> None:
        """Draw a line through points."""
        self.path("M" + " ".join(f"{number(x)} {number(y)}" for x, y in points), line=line, width=width)

    def arrow(self, *points: Point, line: str = FAINT) -> None:
        """Draw a line with a head at its last point; the last stretch is horizontal or vertical."""
        (x0, y0), (x, y) = points[-2:]
        self.curve(points, line=line, width=1.6)
        back_x, back_y = (6 if x > x0 else -6 if x < x0 else 0), (6 if y > y0 else -6 if y < y0 else 0)
        wing_x, wing_y = (4 if back_y else 0), (4 if back_x else 0)
        left, right = (x - back_x - wing_x, y - back_y - wing_y), (x - back_x + wing_x, y - back_y + wing_y)
        self.path(
            f"M{number(x)} {number(y)} {number(left[0])} {number(left[1])} {number(right[0])} {number(right[1])}z",
            line="none",
            fill=line,
        )

    def svg(self) -> str:
        """Return the whole drawing."""
        return "\n".join([*self.elements, "</svg>", ""])


def number(value: float) -> str:
    """Return a coordinate to a tenth of a pixel, in as few characters as it takes."""
    written = f"{value:.1f}".removesuffix(".0")
    return "0" if written == "-0" else written


def shade(value: float) -> str:
    """Return a colour between blue for -1, white for 0 and orange for 1."""
    end = (217, 121, 28) if value > 0 else (47, 109, 179)
    return "#" + "".join(f"{round(255 + abs(value) * (part - 255)):02x}" for part in end)


def axes(drawing: Drawing, corner: Point, size: Point, *, xs: dict[float, str], ys: dict[float, str]) -> None:
    """Draw two axes with ticks given as {fraction along the axis: label}."""
    (x, y), (width, height) = corner, size
    for fraction, label in ys.items():
        level = y + height * (1 - fraction)
        drawing.path(f"M{number(x)} {number(level)}h{number(width)}", line=GRID, width=1)
        drawing.text((x - 8, level + 4), label, size=12, anchor="end", fill=FAINT)
    for fraction, label in xs.items():
        place = x + width * fraction
        drawing.path(f"M{number(place)} {number(y + height)}v5", line=FAINT, width=1)
        drawing.text((place, y + height + 20), label, size=12, fill=FAINT)
    drawing.path(f"M{number(x)} {number(y + height)}h{number(width)}", line=FAINT, width=1)


def draw_positions() -> Drawing:
    """Section 3.5: the sines and cosines themselves, and what two positions' product depends on."""
    length, d_model, cell = 48, 64, 7
    table_TD = sinusoidal_positions(length, d_model)
    drawing = Drawing(860, 440, title="Sinusoidal positions of width 64, and the product of two of them by distance")
    drawing.text((50, 30), "PE(pos, dimension), d_model = 64", size=15, anchor="start")
    cells: dict[str, list[str]] = {}
    for position in range(length):
        for dimension in range(d_model):
            colour = shade(round(table_TD[position, dimension].item() * 8) / 8)
            cells.setdefault(colour, []).append(
                f"M{50 + dimension * cell} {48 + position * cell}h{cell}v{cell}h-{cell}z"
            )
    drawing.elements.append('<g shape-rendering="crispEdges">')
    for colour in sorted(cells):
        drawing.path("".join(cells[colour]), line="none", fill=colour)
    drawing.elements.append("</g>")
    drawing.box((50, 48), (d_model * cell, length * cell), fill="none", line=GRID)
    for position in (0, 16, 32, 47):
        drawing.text((42, 48 + position * cell + 8), str(position), size=12, anchor="end", fill=FAINT)
    for dimension in (0, 16, 32, 48, 63):
        drawing.text((54 + dimension * cell, 402), str(dimension), size=12, fill=FAINT)
    drawing.text((274, 422), "dimension: pairs of sine and cosine, ever slower", size=12, fill=FAINT)
    drawing.text((18, 216), "position", size=12, fill=FAINT, style='transform="rotate(-90 18 216)"')
    for step in range(9):
        drawing.box((516, 60 + step * 14), (12, 14), fill=shade(1 - step / 4))
    for step, label in ((0, "1"), (4, "0"), (8, "-1")):
        drawing.text((534, 71 + step * 14), label, size=12, anchor="start", fill=FAINT)
    drawing.text((715, 30), "PE(pos) · PE(pos + k)", size=15)
    axes(
        drawing,
        (600, 60),
        (230, 324),
        xs={0: "0", 1 / 3: "16", 2 / 3: "32", 1: "48"},
        ys={0: "0", 1 / 4: "8", 1 / 2: "16", 3 / 4: "24", 1: "32"},
    )
    products = sinusoidal_positions(49, d_model) @ sinusoidal_positions(1, d_model)[0]
    points = [(600 + 230 * k / 48, 60 + 324 * (1 - products[k].item() / 32)) for k in range(49)]
    drawing.curve(points, line=BLUE)
    drawing.text((715, 422), "distance k; pos itself does not matter", size=12, fill=FAINT)
    return drawing


def draw_masks() -> Drawing:
    """Section 3.2.3: who sees whom in the three uses of attention."""
    source, target = ["Guten", "Tag", ".", "</s>", "<pad>"], ["<s>", "Good", "day", "."]
    source_BS, target_BT = torch.tensor([[7, 8, 9, 3, 0]]), torch.tensor([[2, 5, 6, 9]])
    source_keys = as_keys(visible_tokens(source_BS))[0, 0]
    drawing = Drawing(860, 330, title="Which positions are visible in the three uses of attention")
    left = draw_mask(drawing, 90, source, source, source_keys.expand(5, 5), "encoder self-attention")
    left = draw_mask(
        drawing, left + 110, target, target, visible_to_the_left(target_BT.size(1))[0, 0], "decoder self-attention"
    )
    draw_mask(drawing, left + 110, target, source, source_keys.expand(4, 5), "attention over the encoder's output")
    drawing.text((90, 305), "Rows are queries, columns keys.", size=13, anchor="start", fill=FAINT)
    drawing.box((390, 292), (16, 16), fill=BLUE, corner=3)
    drawing.text((414, 305), "visible", size=13, anchor="start")
    drawing.box((500, 292), (16, 16), fill="#f1f3f5", line=GRID, corner=3)
    drawing.text((524, 305), "hidden: its score becomes -∞", size=13, anchor="start")
    return drawing


def draw_mask(drawing: Drawing, x: float, queries: list[str], keys: list[str], visible_QK: Tensor, title: str) -> float:
    """Draw one square of queries and keys and return its right edge."""
    cell, top = 32, 110
    drawing.text((x + cell * len(keys) / 2, 40), title, size=15)
    for k, key in enumerate(keys):
        place = f'transform="rotate(-45 {x + k * cell + 14} {top - 8})"'
        drawing.text((x + k * cell + 14, top - 8), key, size=12, anchor="start", style=place)
    for q, query in enumerate(queries):
        drawing.text((x - 8, top + q * cell + 20), query, size=12, anchor="end")
        for k in range(len(keys)):
            is_visible = bool(visible_QK[q, k])
            drawing.box(
                (x + k * cell + 1, top + q * cell + 1),
                (cell - 3, cell - 3),
                corner=4,
                fill=BLUE if is_visible else "#f1f3f5",
                line="none" if is_visible else GRID,
            )
    return x + cell * len(keys)


def draw_schedule() -> Drawing:
    """Section 5.3: the learning rate over the base model's 100,000 steps."""
    x, y, width, height, last, highest = 90, 50, 730, 250, 100_000, 8e-4
    drawing = Drawing(860, 370, title="The learning rate of equation 3 for two widths and two warm-ups")
    drawing.text((x, 30), "learning rate, equation 3", size=15, anchor="start")
    axes(
        drawing,
        (x, y),
        (width, height),
        xs={k / 5: f"{k * 20_000:,}" for k in range(6)},
        ys={k / 4: f"{k * 2e-4:.0e}".replace("e-0", "e-") if k else "0" for k in range(5)},
    )
    drawing.text((x + width / 2, 350), "step", size=13, fill=FAINT)
    lines = ((512, 4000, BLUE), (512, 8000, GREEN), (1024, 4000, ORANGE))
    steps = [1, *range(250, 12_001, 250), *range(13_000, last + 1, 1000)]
    for d_model, warmup, colour in lines:
        rates = [(step, paper_rate(step, d_model=d_model, warmup_steps=warmup)) for step in steps]
        drawing.curve([(x + width * s / last, y + height * (1 - r / highest)) for s, r in rates], line=colour)
    for row, ((d_model, warmup, colour), use) in enumerate(zip(lines, (", base", "", ", big"), strict=True)):
        drawing.path(f"M560 {71 + row * 24}h26", line=colour, width=3)
        drawing.text((596, 76 + row * 24), f"d_model {d_model}, warm-up {warmup:,}{use}", anchor="start")
    peak = paper_rate(4000, d_model=512, warmup_steps=4000)
    peak_x, peak_y = x + width * 0.04, y + height * (1 - peak / highest)
    drawing.text((peak_x + 14, peak_y + 2), f"{peak:.3e} at step 4,000".replace("e-0", "e-"), anchor="start", fill=BLUE)
    return drawing


def draw_saturation() -> Drawing:
    """Section 3.2.1: what the softmax does when products grow with d_k, and to its gradient."""
    widths = [1, 4, 16, 64, 256]
    z_K = torch.tensor([NormalDist().inv_cdf((k + 0.5) / 10) for k in range(10)], dtype=torch.float64)
    drawing = Drawing(860, 400, title="The softmax saturates as d_k grows unless scores are divided by its root")
    drawing.text((60, 30), "softmax of ten typical products q · k, not scaled", size=15, anchor="start")
    for column, d_k in enumerate(widths):
        x = 60 + column * 92
        weights = softmax(d_k**0.5 * z_K).tolist()
        for bar, weight in enumerate(weights):
            drawing.box((x + bar * 8, 330 - 260 * weight), (6.5, 260 * weight), fill=ORANGE if d_k > 1 else BLUE)
        drawing.path(f"M{x} 330h78", line=FAINT, width=1)
        drawing.text((x + 39, 350), f"d_k = {d_k}", size=12)
        drawing.text((x + 79, 322 - 260 * max(weights)), f"{max(weights):.2f}", size=12, anchor="end", fill=FAINT)
    drawing.text(
        (60, 384),
        "Divided by √d_k, all five become the first, blue one.",
        size=12,
        anchor="start",
        fill=FAINT,
    )
    drawing.text((705, 30), "size of the gradient", size=15)
    axes(
        drawing,
        (590, 70),
        (230, 260),
        xs={k / 8: f"{2**k}" for k in (0, 2, 4, 6, 8)},
        ys={0: "0", 0.5: "0.25", 1: "0.5"},
    )
    for is_scaled, colour in ((False, ORANGE), (True, BLUE)):
        points = []
        for step in range(33):
            y_K = softmax((1.0 if is_scaled else 2 ** (step / 8)) * z_K)
            size = (torch.diag(y_K) - y_K[:, None] * y_K).norm().item()  # of the matrix ∂y_i / ∂x_j
            points.append((590 + 230 * step / 32, 330 - 260 * size / 0.5))
        drawing.curve(points, line=colour)
    drawing.text((820, 160), "scaled", anchor="end", fill=BLUE)
    drawing.text((820, 318), "not scaled", anchor="end", fill=ORANGE)
    drawing.text((705, 384), "d_k", size=12, fill=FAINT)
    return drawing


BOX_WIDTH, BOX_HEIGHT, STEP = 240, 42, 60
ATTENTION, NORM, FEED_FORWARD, EMBEDDING, POSITIONS, OUTPUT = (
    "#fbe3c8",
    "#eef2c4",
    "#cfe4f6",
    "#f6d5de",
    "#e4dcf3",
    "#d3ecd8",
)


def part(drawing: Drawing, place: Point, title: str, file: str, fill: str) -> None:
    """Draw a box that names its file and leads to it."""
    x, y = place
    drawing.elements.append(
        f'<a href="../../src/transduce/{"networks" if file == "log_probabilities.py" else "model"}/{file}">'
    )
    drawing.box((x, y), (BOX_WIDTH, BOX_HEIGHT), fill=fill, line="#8a949e", corner=7)
    drawing.text((x + BOX_WIDTH / 2, y + 18), title, size=14)
    drawing.text((x + BOX_WIDTH / 2, y + 34), file, size=11, fill=FAINT, style='font-family="monospace"')
    drawing.elements.append("</a>")


def stack(drawing: Drawing, x: float, bottom: float, parts: Sequence[tuple[str, str, str]]) -> None:
    """Draw boxes one above the other, each leading to the next."""
    for level, (title, file, fill) in enumerate(parts):
        y = bottom - level * STEP
        part(drawing, (x, y), title, file, fill)
        drawing.arrow((x + BOX_WIDTH / 2, y + STEP), (x + BOX_WIDTH / 2, y + BOX_HEIGHT))


def residuals(drawing: Drawing, x: float, bottom: float, levels: Sequence[int]) -> None:
    """Draw the connections that pass each sub-layer by; `levels` are those of the sub-layers."""
    for level in levels:
        y = bottom - level * STEP
        fork, norm = y + BOX_HEIGHT + 9, y - STEP + BOX_HEIGHT / 2
        drawing.arrow((x + BOX_WIDTH / 2, fork), (x - 18, fork), (x - 18, norm), (x, norm))


def draw_architecture() -> Drawing:
    """Section 3: the two stacks, each box with the file that holds it."""
    drawing = Drawing(860, 760, title="The Transformer, each box with its file under src/transduce/model")
    left, right, bottom = 90, 500, 652
    embed, add = ("Embedding × √d_model", "embedding.py", EMBEDDING), ("Add, then layer norm", "layers.py", NORM)
    positions = ("+ positional encoding", "positional_encoding.py", POSITIONS)
    attend = ("Multi-head self-attention", "attention.py", ATTENTION)
    forward = ("Feed-forward, each position", "feed_forward.py", FEED_FORWARD)
    drawing.box(
        (left - 40, bottom - 5 * STEP - 10), (BOX_WIDTH + 60, 4 * STEP + 6), fill="#f8f9fa", line=GRID, corner=10
    )
    drawing.box(
        (right - 40, bottom - 7 * STEP - 10), (BOX_WIDTH + 60, 6 * STEP + 6), fill="#f8f9fa", line=GRID, corner=10
    )
    stack(drawing, left, bottom, [embed, positions, attend, add, forward, add])
    masked = ("Masked multi-head self-attention", "attention.py", ATTENTION)
    cross = ("Attention over the memory", "attention.py", ATTENTION)
    output = [
        ("Linear: the embedding matrix again", "embedding.py", OUTPUT),
        ("Log of the softmax", "log_probabilities.py", OUTPUT),
    ]
    stack(drawing, right, bottom, [embed, positions, masked, add, cross, add, forward, add, *output])
    residuals(drawing, left, bottom, [2, 4])
    residuals(drawing, right, bottom, [2, 4, 6])
    drawing.text((left + BOX_WIDTH + 34, bottom - 3.1 * STEP), "N ×", size=16, anchor="start")
    drawing.text((right + BOX_WIDTH + 34, bottom - 4.1 * STEP), "N ×", size=16, anchor="start")
    memory, into = bottom - 5.55 * STEP, bottom - 4 * STEP + BOX_HEIGHT / 2
    drawing.arrow(
        (left + BOX_WIDTH / 2, bottom - 5 * STEP),
        (left + BOX_WIDTH / 2, memory),
        (425, memory),
        (425, into),
        (right, into),
        line=ORANGE,
    )
    drawing.text((left + BOX_WIDTH / 2 + 8, memory - 8), "memory z, one vector per source token", size=12, fill=ORANGE)
    drawing.text((left + BOX_WIDTH / 2, bottom + STEP + 16), "source tokens x_1 … x_n", size=13)
    drawing.text((right + BOX_WIDTH / 2, bottom + STEP + 16), "start token, then y_1 … y_(m-1)", size=13)
    drawing.arrow((right + BOX_WIDTH / 2, bottom - 9 * STEP), (right + BOX_WIDTH / 2, bottom - 10 * STEP + 34))
    drawing.text((right + BOX_WIDTH / 2, bottom - 10 * STEP + 24), "log p of y_1 … y_m", size=13)
    for row, (title, file) in enumerate(
        (
            ("Both stacks, offset by one", "transformer.py"),
            ("Who sees whom", "masks.py"),
            ("Every size and option", "config.py"),
        )
    ):
        part(drawing, (left, 60 + row * 54), title, file, "#eceff2")
    drawing.text((left, 40), "Section 3 of the paper", size=15, anchor="start")
    return drawing


FIGURES = {
    "architecture.svg": draw_architecture,
    "positions.svg": draw_positions,
    "masks.svg": draw_masks,
    "schedule.svg": draw_schedule,
    "saturation.svg": draw_saturation,
}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        (Path(__file__).parent / name).write_text(draw().svg(), encoding="utf-8", newline="\n")
