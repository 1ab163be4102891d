"""A plain line chart as SVG."""

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 70, 250, 40, 50
COLOURS = ("#0b5fa5", "#c2410c", "#15803d", "#7c3aed", "#a16207", "#0f766e")

Points = Sequence[tuple[float, float]]


def line_chart(lines: Mapping[str, Points], *, title: str, x: str, y: str, logarithmic: bool = False) -> str:
    """Return a chart of named lines; a name's first word chooses its colour, so related lines look alike."""

    def scaled(value: float) -> float:
        return math.log2(value) if logarithmic else value

    all_points = [point for points in lines.values() for point in points]
    xs, ys = [scaled(point[0]) for point in all_points], [scaled(point[1]) for point in all_points]
    x_range, y_range = (min(xs), max(xs)), (min(ys), max(ys))

    def place(point: tuple[float, float]) -> str:
        across = (scaled(point[0]) - x_range[0]) / ((x_range[1] - x_range[0]) or 1)
        up = (scaled(point[1]) - y_range[0]) / ((y_range[1] - y_range[0]) or 1)
        return f"{LEFT + across * (WIDTH - LEFT - RIGHT):.1f},{HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM):.1f}"

    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" role="img"><title>{escape(title)}</title>'
    )
    parts = [
        head,
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
        f'<text x="{LEFT}" y="{HEIGHT - 10}">{escape(x)}</text>',
        f'<text x="14" y="{HEIGHT - BOTTOM}" transform="rotate(-90 14 {HEIGHT - BOTTOM})">{escape(y)}</text>',
    ]
    for point in ((min(p[0] for p in all_points), 0), (max(p[0] for p in all_points), 0)):
        across = place((point[0], all_points[0][1])).split(",")[0]
        parts.append(f'<text x="{across}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{point[0]:,.0f}</text>')
    for value in (min(p[1] for p in all_points), max(p[1] for p in all_points)):
        up = place((all_points[0][0], value)).split(",")[1]
        parts.append(f'<text x="{LEFT - 6}" y="{up}" text-anchor="end">{value:,.3g}</text>')
    kinds = list(dict.fromkeys(name.split()[0] for name in lines))
    for number, (name, points) in enumerate(lines.items()):
        colour = COLOURS[kinds.index(name.split()[0]) % len(COLOURS)]
        parts.append(f'<polyline fill="none" stroke="{colour}" points="{" ".join(map(place, points))}"/>')
        row = TOP + 16 * number
        parts.append(f'<text x="{WIDTH - RIGHT + 16}" y="{row}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
