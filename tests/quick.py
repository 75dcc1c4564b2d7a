"""`pytest --quick`: a part of the tests, the same every time, that covers each test function and each backend.

Tests marked `slow` are left out. Of a function with many cases, each backend keeps one: the case with the smallest
checksum, so that one more case changes the choice little. `@pytest.mark.quick(cases=n)` keeps n instead. With 0 it
leaves out a function that takes half a second or more, where others cover what it uses.

A software driver takes a tenth of a second and more for each shader. So functions that test no shaders keep the CPU and
one of the two GL backends, and those that run whole networks keep one backend, the CPU where it has a case for it.
"""

from __future__ import annotations

import zlib
from collections import defaultdict

import pytest

CASES = 1  # of a function, on each backend
SHADERS = {"gl", "layers", "textures"}  # rooms whose tests keep both GL backends
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
    """What a case shares with the others of its function of which one is kept."""
    function, backend = item.nodeid.partition("[")[0], _backend(item)
    if _runs_networks(item):
        return function, ""
    return function, "gpu" if backend.startswith("gpu") and _rooms(item).isdisjoint(SHADERS) else backend


def _runs_networks(item: pytest.Item) -> bool:
    return not _rooms(item).isdisjoint(NETWORKS)


def _rooms(item: pytest.Item) -> set[str]:
    return set(item.nodeid.partition("[")[0].split("/"))


def _is_slow_network(item: pytest.Item) -> bool:
    return _runs_networks(item) and _backend(item).startswith("gpu")


def _backend(item: pytest.Item) -> str:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return str(parameters.get("backend", ""))
