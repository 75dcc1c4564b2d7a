"""Unique names for new values and layers."""

from __future__ import annotations

from collections.abc import Iterable


class Names:
    """The taken names of a model, so that new values and layers get unique names."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    def free(self, like: str) -> str:
        """Take and return a free name: `like`, or `like:1`, `like:2`, ... if `like` is taken."""
        name, count = like, self._counts.get(like, 0)
        while name in self._taken:
            count += 1
            name = f"{like}:{count}"
        self._counts[like] = count
        self._taken.add(name)
        return name

    def release(self, names: Iterable[str]) -> None:
        """Make names free again."""
        self._taken.difference_update(names)
