"""A profile as tables for a person, and as facts for a machine."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from perframe.profiling.bound import bound_of
from perframe.profiling.times import LayerTimes, ProfiledTimes, Quantiles

if TYPE_CHECKING:
    from rich.console import Console

Peaks = Mapping[str, float | None]  # operations a second that a device achieves at best, by the backend's name
MOST_ROWS = 20


def show(profile: ProfiledTimes, console: Console, peaks: Peaks | None = None, most: int = MOST_ROWS) -> None:
    """Print the times of frames and schedules, and the layers that took longest."""
    from rich.table import Table
    from rich.text import Text

    times = Table(box=None, pad_edge=False, header_style="dim")
    times.add_column("")
    for column in ("times", "p50", "p95", "p99"):
        times.add_column(column, justify="right")
    for name, quantiles in _rows_of_times(profile):
        figures = (f"{value * 1e3:.3f} ms" for value in (quantiles.p50, quantiles.p95, quantiles.p99))
        times.add_row(Text(name), str(quantiles.count), *figures)
    console.print(times)
    bound = bound_of(profile)
    if bound is not None:
        console.print(Text(str(bound), "bold"))
    layers = sorted(profile.layers, key=lambda layer: -(layer.seconds or 0))
    whole = sum(layer.seconds or 0 for layer in layers)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("layer", "operator", "backend"):
        table.add_column(column, overflow="fold", no_wrap=column == "backend")
    for column in ("time", "share", "moved", "GB/s", "GFLOP/s", *(["of peak"] if peaks else [])):
        table.add_column(column, justify="right", no_wrap=True)
    for layer in layers[:most]:
        row = _figures(layer, whole, peaks)
        table.add_row(Text(layer.layer), Text(layer.operator or "(transfer)"), str(layer.backend), *row)
    console.print()
    console.print(table)
    if len(layers) > most:
        rest = sum(layer.seconds or 0 for layer in layers[most:])
        console.print(f"{len(layers) - most} more layers take {rest * 1e3:.3f} ms")
    for worker in profile.workers:
        for fallback in worker.fallbacks:
            text = f"{fallback.operator} {fallback.layer} runs on the CPU: {fallback.reason}"
            console.print(Text(text, "yellow"))


def as_text(profile: ProfiledTimes) -> str:
    """The tables as plain text."""
    from perframe.safety.console import SafeConsole

    # not a notebook's console: that one would show an empty cell output beside the text
    console = SafeConsole(file=io.StringIO(), width=120, color_system=None, force_jupyter=False)
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


def _rows_of_times(profile: ProfiledTimes) -> list[tuple[str, Quantiles]]:
    rows = [("frame", profile.frames)]
    rows += [(f"schedule of {worker.model} on {worker.backend}", worker.schedules) for worker in profile.workers]
    return [(name, quantiles) for name, quantiles in rows if quantiles is not None]


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
