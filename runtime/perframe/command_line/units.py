"""Sizes and times as text."""

from __future__ import annotations


def bytes_text(size: float) -> str:
    """A number of bytes as text, such as "97.5 MiB"."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def seconds_text(seconds: float | None) -> str:
    """A time as text with three significant digits, such as "12.3 ms"; "–" for None."""
    if seconds is None:
        return "–"
    unit, value = next(
        (unit, seconds * factor)
        for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6))
        if seconds * factor >= 1 or unit == "µs"
    )
    digits = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{digits}f} {unit}"
