"""`pytest --quick`: a part of the tests, the same every time, that covers each test function on each backend.

Tests marked `slow` are left out. Of a function with many cases, each backend keeps one: the case with the smallest
checksum, so that one more case changes the choice little. `@pytest.mark.quick(cases=n)` keeps n instead. With 0 it
leaves out a function that takes half a second or more, where others cover what it uses. A function that runs whole
networks keeps one backend, the CPU where it has a case for it: a software driver compiles the shaders of a network for
many seconds.
"""

from __future__ import annotations

import zlib
from collections import defaultdict

import pytest

CASES = 1  # of a function, on each backend
NETWORKS = {"demos", "functional", "models", "processing", "text", "vision"}  # rooms whose tests run whole networks


def chosen(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The quick tests and the others, each in the order of `items`."""
    groups: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is None:
            groups[function_and_backend(item)].append(item)
    kept = set()
    for cases in groups.values():
        cases.sort(key=lambda item: (_is_slow_network(item), zlib.crc32(item.nodeid.encode())))
        marker = cases[0].get_closest_marker("quick")
        kept.update(cases[: marker.kwargs["cases"] if marker else CASES])
    return [item for item in items if item in kept], [item for item in items if item not in kept]


def function_and_backend(item: pytest.Item) -> tuple[str, str]:
    """What a case shares with the other cases of its function on its backend; on any, if it runs whole networks."""
    return item.nodeid.partition("[")[0], "" if _runs_networks(item) else _backend(item)


def _runs_networks(item: pytest.Item) -> bool:
    return not NETWORKS.isdisjoint(item.nodeid.partition("[")[0].split("/"))


def _is_slow_network(item: pytest.Item) -> bool:
    return _runs_networks(item) and _backend(item).startswith("gpu")


def _backend(item: pytest.Item) -> str:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return str(parameters.get("backend", ""))
