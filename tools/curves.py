"""Draws the figures of `tests.benchmarks.scale`: `python tools/curves.py FIGURES.json PICTURE.svg`.

One panel for each curve: milliseconds of a run over its size, both in powers. Solid lines are perframe's, dashed ones
onnxruntime's; a thin line is for one thread.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

PANEL, AREA, COLUMNS = (330, 250), (58, 34, 248, 166), 2  # of a panel: its size, and where its curves lie
SIDES = {"perframe": ("#0f766e", ""), "onnxruntime": ("#b45309", ' stroke-dasharray="5 4"')}
TEXT, LINE = "#27272a", "#d4d4d8"


class Axis:
    """Places of numbers, by their logarithms."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        self.low, self.high = math.log(min(values)), math.log(max(values))
        self.begin, self.end = begin, end

    def __call__(self, value: float) -> float:
        share = (math.log(value) - self.low) / max(self.high - self.low, 1e-9)
        return self.begin + share * (self.end - self.begin)

    def powers(self) -> list[float]:
        """The powers of ten on the axis."""
        first, last = math.ceil(self.low / math.log(10)), math.floor(self.high / math.log(10))
        return [10.0**exponent for exponent in range(first, last + 1)]


def text(x: float, y: float, words: object, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{TEXT}"{more}>{escape(str(words))}</text>'


def panel(name: str, curve: dict[str, Any]) -> Iterator[str]:
    """The elements of one curve's panel, from its own corner."""
    left, top, wide, high = AREA
    points = curve["points"]
    across = Axis([point["size"] for point in points], left, left + wide)
    up = Axis([point[side] for point in points for side in SIDES], top + high, top)
    yield text(left, 18, name, "start", ' font-weight="600"')
    for value in up.powers():
        y = up(value)
        yield f'<path d="M{left} {y:.1f}h{wide}" stroke="{LINE}"/>'
        yield text(left - 6, y + 4, f"{value:g} ms" if value < 1000 else f"{value / 1000:g} s", "end")
    for size in sorted({point["size"] for point in points}):
        yield text(across(size), top + high + 18, size)
    yield text(left + wide / 2, top + high + 36, curve["along"])
    for threads, some in groupby(points, lambda point: point["threads"]):
        group = list(some)
        for side, (color, dashes) in SIDES.items():
            places = " ".join(f"{across(point['size']):.1f},{up(point[side]):.1f}" for point in group)
            width = 1 if threads == 1 else 2
            yield f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="{width}"{dashes}/>'


def picture(curves: dict[str, Any]) -> str:
    """The whole picture: panels, and a legend above them."""
    rows = -(-len(curves) // COLUMNS)
    width, height, lines = PANEL[0] * COLUMNS, PANEL[1] * rows + 28, list[str]()
    for at, (side, (color, dashes)) in enumerate(SIDES.items()):
        x = 54 + 150 * at
        lines.append(f'<path d="M{x} 16h30" stroke="{color}" stroke-width="2"{dashes}/>')
        lines.append(text(x + 38, 20, side, "start"))
    lines.append(text(54 + 320, 20, "thin: one thread", "start"))
    for at, (name, curve) in enumerate(curves.items()):
        x, y = at % COLUMNS * PANEL[0], at // COLUMNS * PANEL[1] + 28
        lines += [f'<g transform="translate({x} {y})">', *panel(name, curve), "</g>"]
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">'
    sheet = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, sheet, *lines, "</svg>", ""])


if __name__ == "__main__":
    figures, drawing = sys.argv[1:]
    Path(drawing).write_text(picture(json.loads(Path(figures).read_text(encoding="utf-8"))), encoding="utf-8")
