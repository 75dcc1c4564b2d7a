"""Parts of messages: numbers with nouns or units, names that were perhaps meant, expressions that arrange an array."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def counted(number: int, noun: str) -> str:
    """A number and its noun, such as "1 layer" or "2,000 layers"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def bytes_text(size: float) -> str:
    """A number of bytes as text, such as "97.5 MiB"."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def did_you_mean(name: str, known: Iterable[str], compared: Callable[[str], str] = str) -> str:
    """The known names that resemble `name`, such as "did you mean painter? "; empty if none does.

    `compared` returns the part of a name that counts.
    """
    from difflib import get_close_matches  # imported late: only errors need it

    plain: dict[str, list[str]] = {}
    for one in known:
        plain.setdefault(compared(one).lower(), []).append(one)
    found = get_close_matches(compared(name)[:200].lower(), plain, 3, 0.75)
    close = [one for each in found for one in plain[each]][:3]
    return f"did you mean {' or '.join(close)}? " if close else ""


def arranged_picture(array: Any) -> tuple[Any, str]:
    """An array's view as height x width x channels, and the expression for it: `array.transpose(1, 2, 0)` for channels
    first, `array[0]` for a batch of one. Other arrays are returned unchanged, as `array`.
    """
    said = "array"
    if array.ndim == 4 and len(array) == 1:
        array, said = array[0], "array[0]"
    if array.ndim == 3 and 1 <= array.shape[0] <= 4 < min(array.shape[1:]):  # a side of 4 could be channels, too
        array, said = array.transpose(1, 2, 0), f"{said}.transpose(1, 2, 0)"
    return array, said
