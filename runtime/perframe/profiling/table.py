"""A profile as tables for a person, and as facts for a machine."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from perframe.profiling.bound import bound_of
from perframe.profiling.times import LayerTimes, ProfiledTimes, Quantiles

if TYPE_CHECKING:
    from rich.console import Console

Peaks = Mapping[str, float | None]  # operations a second that a device achieves at best, by the backend's name
MOST_ROWS = 20
WIDTH = 80  # columns of the tables as text
_GAP, _SHORTEST = 2, 6  # columns between two columns; of a shortened name


def show(profile: ProfiledTimes, console: Console, peaks: Peaks | None = None, most: int = MOST_ROWS) -> None:
    """Print the times of frames and schedules, and the layers that took longest."""
    from rich.table import Table
    from rich.text import Text

    times = Table(box=None, pad_edge=False, header_style="dim")
    times.add_column("")
    for column in ("times", "p50", "p95", "p99"):
        times.add_column(column, justify="right")
    rows = _rows_of_times(profile)
    (firsts,) = shortened([[name for name, *_ in rows]], [cells for _, *cells in rows], console.width)
    for name, (_, *cells) in zip(firsts, rows, strict=True):
        times.add_row(Text(name), *cells)
    console.print(times)
    bound = bound_of(profile)
    if bound is not None:
        console.print(Text(str(bound), "bold"))
    layers = sorted(profile.layers, key=lambda layer: -(layer.seconds or 0))
    whole = sum(layer.seconds or 0 for layer in layers)
    shown = layers[:most]
    backends = {layer.backend for layer in layers}
    told = len(backends) == 1 and backends == {worker.backend for worker in profile.workers}  # in the rows above
    titles = ["time", "share", "moved", "GB/s", "GFLOP/s", *(["of peak"] if peaks else [])]
    figures = [titles, *(_figures(layer, whole, peaks) for layer in shown)]
    if not told:
        for row, cell in zip(figures, ["backend", *(str(layer.backend) for layer in shown)], strict=True):
            row.insert(0, cell)
    table = Table("layer", "operator", box=None, pad_edge=False, header_style="dim")
    for title in titles:
        table.add_column(title, justify="left" if title == "backend" else "right", no_wrap=True)
    names = ["layer", *(layer.layer for layer in shown)]
    operators = ["operator", *(layer.operator or "(transfer)" for layer in shown)]
    fitting = shortened([names, operators], figures, console.width)
    for name, operator, row in [*zip(*fitting, figures, strict=True)][1:]:
        table.add_row(Text(name), Text(operator), *row)
    console.print()
    console.print(table)
    if len(layers) > most:
        rest = sum(layer.seconds or 0 for layer in layers[most:])
        console.print(f"{len(layers) - most} more layers take {rest * 1e3:.3f} ms")
    if any(layer.seconds is None for layer in layers):
        console.print("– marks layers that no run timed: kernels were still compiling, or runs were pending")
    for worker in profile.workers:
        for fallback in worker.fallbacks:
            text = f"{fallback.operator} {fallback.layer} runs on the CPU: {fallback.reason}"
            console.print(Text(text, "yellow"))


def as_text(profile: ProfiledTimes) -> str:
    """The tables as plain text."""
    from perframe.safety.console import SafeConsole

    # not a notebook's console: that one would show an empty cell output beside the text
    console = SafeConsole(file=io.StringIO(), width=WIDTH, color_system=None, force_jupyter=False)
    with console.capture() as captured:
        show(profile, console)
    return captured.get()


def facts(profile: ProfiledTimes, peaks: Peaks | None = None) -> dict[str, Any]:
    """All figures, for JSON. Times are in seconds."""
    frames = profile.frames
    bound = bound_of(profile)
    return {
        "bound": None if bound is None else asdict(bound),
        "frames": None if frames is None else asdict(frames),
        "workers": [asdict(worker) for worker in profile.workers],
        "layers": [asdict(layer) | _rates(layer, peaks) for layer in profile.layers],
        "peaks": dict(peaks or {}),
    }


def shortened(names: Sequence[Sequence[str]], others: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Columns of names, shortened in the middle where the table is wider than `width`. `others` are the rows of the
    other columns, which keep all their characters.
    """
    left = width - sum(max(map(len, column)) + _GAP for column in zip(*others, strict=True)) - _GAP * (len(names) - 1)
    lengths = [max(map(len, column), default=0) for column in names]
    while sum(lengths) > left and max(lengths) > _SHORTEST:
        lengths[lengths.index(max(lengths))] -= 1
    return [[_in_middle(name, most) for name in column] for column, most in zip(names, lengths, strict=True)]


def _in_middle(name: str, most: int) -> str:
    end = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - end]}…{name[len(name) - end :]}"


def _rows_of_times(profile: ProfiledTimes) -> list[tuple[str, ...]]:
    rows = [("frame", profile.frames)]
    rows += [(f"schedule of {worker.model} on {worker.backend}", worker.schedules) for worker in profile.workers]
    return [(name, str(times.count), *_milliseconds(times)) for name, times in rows if times is not None]


def _milliseconds(times: Quantiles) -> list[str]:
    return [f"{value * 1e3:.3f} ms" for value in (times.p50, times.p95, times.p99)]


def _rates(layer: LayerTimes, peaks: Peaks | None) -> dict[str, float | None]:
    achieved, peak = layer.operations_a_second, (peaks or {}).get(layer.backend)
    share = achieved / peak if achieved and peak else None
    return {"operations_a_second": achieved, "bytes_a_second": layer.bytes_a_second, "share_of_peak": share}


def _figures(layer: LayerTimes, whole: float, peaks: Peaks | None) -> list[str]:
    rates, seconds = _rates(layer, peaks), layer.seconds
    return [
        "–" if seconds is None else f"{seconds * 1e3:.3f} ms",
        "–" if seconds is None or not whole else f"{seconds / whole:.1%}",
        f"{layer.bytes / 1e6:.2f} MB",
        _scaled(rates["bytes_a_second"], 1e9),
        _scaled(rates["operations_a_second"], 1e9),
        *([_percent(rates["share_of_peak"])] if peaks else []),
    ]


def _scaled(value: float | None, unit: float) -> str:
    return "" if value is None else f"{value / unit:.1f}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"
