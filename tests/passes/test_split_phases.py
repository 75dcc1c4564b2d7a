from __future__ import annotations

from typing import Any

import pytest

from passes.graphs import apply, check_against_peer, graph, node, ops, prepared, random

SHAPE = (2, 8, 5, 4)
# (outputs, kernel, attributes)
SPLIT: dict[str, tuple[int, tuple[int, int], dict[str, Any]]] = {
    "whole blocks": (8, (2, 2), {"strides": [2, 2]}),
    "one channel": (1, (2, 2), {"strides": [2, 2]}),
    "three channels": (3, (4, 4), {"strides": [4, 4]}),
    "an odd stride": (5, (3, 3), {"strides": [3, 3]}),
    "overlapping windows": (8, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "phases with fewer taps": (8, (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "uneven borders": (4, (5, 4), {"strides": [2, 2], "pads": [2, 3, 0, 1], "output_padding": [1, 0]}),
    "no stride": (4, (3, 3), {"pads": [1, 1, 1, 1]}),
    "a given size": (4, (4, 4), {"strides": [2, 2], "output_shape": [11, 7]}),
    "a larger size": (4, (2, 2), {"strides": [2, 2], "output_shape": [11, 8]}),
    "the size times the stride": (4, (3, 3), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}),
}
KEPT: dict[str, tuple[int, tuple[int, int], dict[str, Any]]] = {
    "groups": (4, (2, 2), {"strides": [2, 2], "group": 2}),
    "dilations": (4, (2, 2), {"strides": [2, 2], "dilations": [2, 2]}),
    "two strides": (4, (2, 2), {"strides": [1, 2]}),
    "mostly gaps": (4, (1, 1), {"strides": [2, 2]}),
    "more padding than taps": (4, (2, 2), {"strides": [2, 2], "pads": [2, 2, 2, 2]}),
}


def model(case: tuple[int, tuple[int, int], dict[str, Any]], dims: tuple[Any, ...] = SHAPE) -> Any:
    outputs, kernel, attributes = case
    constants = {"w": random(8, outputs // attributes.get("group", 1), *kernel), "b": random(outputs, seed=1)}
    nodes = [node("ConvTranspose", "x w b", "a", **attributes), node("Sigmoid", "a", "y")]
    return graph(nodes, {"x": [*dims]}, constants)


@pytest.mark.parametrize("name", [*SPLIT, *KEPT])
def test_the_numbers_stay(name: str, backend: str, backend_context: Any) -> None:
    check_against_peer(model({**SPLIT, **KEPT}[name]), {"x": random(*SHAPE, seed=2)}, backend, backend_context)


@pytest.mark.parametrize("name", SPLIT)
def test_it_fires(name: str) -> None:
    made, changed = apply("split_phases", model(SPLIT[name]))
    assert changed == 1 and "Conv" in ops(made) and "ConvTranspose" not in ops(made)


@pytest.mark.parametrize("name", KEPT)
def test_others_stay(name: str) -> None:
    made, changed = apply("split_phases", model(KEPT[name]))
    assert changed == 0 and "ConvTranspose" in ops(made)


def test_sizes_that_are_not_known() -> None:
    open_dims = ("n", 8, "h", "w")
    assert apply("split_phases", model(SPLIT["overlapping windows"], open_dims))[1] == 1
    assert apply("split_phases", model(SPLIT["a given size"], open_dims))[1] == 0


@pytest.mark.parametrize("name, after", [("whole blocks", ["FromBlocks"]), ("three channels", [])])
def test_channels_in_blocks_are_spread(name: str, after: list[str]) -> None:
    found = ops(prepared(model(SPLIT[name]), "gpu_compute"))
    assert found == ["ToBlocks", "BlockConv+Sigmoid", "BlocksToSpace", *after]


@pytest.mark.parametrize("kernel", [3, 4])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_borders_of_sizes_that_are_not_known(kernel: int, stride: int, backend: str, backend_context: Any) -> None:
    """Pads may cut away more than one pixel leaves."""
    for pads in ([kernel, kernel, 0, 0], [kernel, 1, kernel - 1, 2], [0, kernel - 1, kernel, 0]):
        case = (4, (kernel, kernel), {"strides": [stride, stride], "pads": pads})
        fed = {"x": random(1, 8, 6, 7, seed=2)}
        check_against_peer(model(case, ("n", 8, "h", "w")), fed, backend, backend_context)
