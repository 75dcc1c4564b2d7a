"""Parts of messages: numbers with their nouns, and names that were perhaps meant."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, noun: str) -> str:
    """A number and its noun, such as "1 layer" or "2,000 layers"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known names that resemble `name`, such as "did you mean painter? "; empty if none does."""
    from difflib import get_close_matches  # imported late: only errors need it

    plain = {one.lower(): one for one in known}
    close = [plain[one] for one in get_close_matches(name[:200].lower(), plain, 3, 0.75)]
    return f"did you mean {' or '.join(close)}? " if close else ""
