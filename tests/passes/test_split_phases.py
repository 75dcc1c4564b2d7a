from __future__ import annotations

from typing import Any

import pytest

from passes.graphs import apply, check_against_peer, graph, node, ops, prepared, random

SHAPE = (2, 8, 5, 4)
Case = tuple[int, tuple[int, ...], dict[str, Any]]  # outputs, kernel, attributes
SPLIT: dict[str, Case] = {
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
    "a line": (8, (16,), {"strides": [8], "pads": [4, 4]}),
    "a line with uneven borders": (3, (7,), {"strides": [3], "pads": [1, 2], "output_padding": [1]}),
    "a line of a given size": (4, (4,), {"strides": [2], "output_shape": [11]}),
    "a line without a stride": (5, (3,), {"pads": [1, 1]}),
}
KEPT: dict[str, Case] = {
    "groups": (4, (2, 2), {"strides": [2, 2], "group": 2}),
    "dilations": (4, (2, 2), {"strides": [2, 2], "dilations": [2, 2]}),
    "two strides": (4, (2, 2), {"strides": [1, 2]}),
    "mostly gaps": (4, (1, 1), {"strides": [2, 2]}),
    "more padding than taps": (4, (2, 2), {"strides": [2, 2], "pads": [2, 2, 2, 2]}),
    "gaps in a line": (4, (1,), {"strides": [4]}),
    "a line with dilations": (4, (3,), {"strides": [2], "dilations": [3], "pads": [1, 0]}),
    "a line in groups": (4, (6,), {"strides": [4], "dilations": [2], "group": 2}),
}


def model(case: Case, dims: tuple[Any, ...] = SHAPE) -> Any:
    outputs, kernel, attributes = case
    dims = dims[: 2 + len(kernel)]
    constants = {"w": random(8, outputs // attributes.get("group", 1), *kernel), "b": random(outputs, seed=1)}
    nodes = [node("ConvTranspose", "x w b", "a", **attributes), node("Sigmoid", "a", "y")]
    return graph(nodes, {"x": [*dims]}, constants)


@pytest.mark.parametrize("name", [*SPLIT, *KEPT])
def test_the_numbers_stay(name: str, backend: str, backend_context: Any) -> None:
    case = {**SPLIT, **KEPT}[name]
    fed = {"x": random(*SHAPE[: 2 + len(case[1])], seed=2)}
    check_against_peer(model(case), fed, backend, backend_context)


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
    assert apply("split_phases", model(SPLIT["a line"], open_dims))[1] == 1


@pytest.mark.parametrize("name, after", [("whole blocks", ["FromBlocks"]), ("three channels", [])])
def test_channels_in_blocks_are_spread(name: str, after: list[str]) -> None:
    found = ops(prepared(model(SPLIT[name]), "gpu_compute"))
    assert found == ["ToBlocks", "BlockConv+Sigmoid", "BlocksToSpace", *after]


@pytest.mark.parametrize("shape", [(1, 8, 6), (3, 8, 1), (0, 8, 5)])
def test_lines_of_sizes_that_are_not_known(shape: tuple[int, ...], backend: str, backend_context: Any) -> None:
    check_against_peer(model(SPLIT["a line"], ("n", 8, "t")), {"x": random(*shape, seed=2)}, backend, backend_context)


@pytest.mark.parametrize("kernel", [3, 4])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_borders_of_sizes_that_are_not_known(kernel: int, stride: int, backend: str, backend_context: Any) -> None:
    """Pads may cut away more than one pixel leaves."""
    for pads in ([kernel, kernel, 0, 0], [kernel, 1, kernel - 1, 2], [0, kernel - 1, kernel, 0]):
        case = (4, (kernel, kernel), {"strides": [stride, stride], "pads": pads})
        fed = {"x": random(1, 8, 6, 7, seed=2)}
        check_against_peer(model(case, ("n", 8, "h", "w")), fed, backend, backend_context)
