from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from passes.graphs import apply, check_numbers_stay, graph, node, ops, random

SHAPE = (2, 6, 9, 8)


def conv(weights: str, output: str, pads: Any = 0, source: str = "x", **attributes: Any) -> Any:
    pads = [pads] * 4 if isinstance(pads, int) else pads
    return node("Conv", f"{source} {weights}", output, pads=pads, **attributes)


def model(*nodes: Any, outputs: str = "y", groups: int = 1, makes: int = 6) -> Any:
    """Convolutions of x, with constants by their names: w and a kernel's sizes."""
    used = {name for one in nodes for name in one.input}
    shapes = {name: (makes, 6 // groups, *map(int, name[1:])) for name in used if name[0] == "w"}
    constants: dict[str, Any] = {name: random(*shape, seed=len(name)) for name, shape in shapes.items()}
    constants |= {name: random(6, 1, 1, seed=3) for name in used & {"scale", "shift"}}
    constants |= {name: np.abs(random(6, seed=4)) for name in used & {"scales", "shifts", "means", "variances"}}
    return graph(list(nodes), {"x": SHAPE}, constants, outputs)


ADD = node("Add", "a b", "y")
NORM = node("BatchNormalization", "x scales shifts means variances", "b0")
ITSELF = NORM, node("Add", "a b0", "y")

FIRES: dict[str, Any] = {
    "3 x 3 and 1 x 1": model(conv("w33", "a", 1), conv("w11", "b"), ADD),
    "1 x 1 first": model(conv("w11", "a"), conv("w33", "b", 1), ADD),
    "strides": model(conv("w33", "a", 1, strides=[2, 2]), conv("w11", "b", strides=[2, 2]), ADD),
    "dilated": model(conv("w33", "a", 2, dilations=[2, 2]), conv("w11", "b"), ADD),
    "2 x 2 in a corner": model(conv("w33", "a", [0, 0, 1, 1]), conv("w22", "b"), ADD),
    "3 x 1": model(conv("w35", "a", [1, 2, 1, 2]), conv("w31", "b", [1, 0, 1, 0]), ADD),
    "not in the middle": model(conv("w33", "a", [2, 0, 0, 2]), conv("w11", "b"), ADD),
    "groups": model(conv("w33", "a", 1, group=3), conv("w11", "b", group=3), ADD, groups=3),
    "each channel, and itself": model(conv("w33", "a", 1, group=6), *ITSELF, groups=6),
    "itself": model(conv("w33", "a", 1), *ITSELF),
    "itself, two groups": model(conv("w33", "a", 1, group=2), *ITSELF, groups=2),
    "a scale": model(conv("w33", "a", 1), node("Mul", "x scale", "b"), ADD),
}

NOISE = node("RandomNormal", "", "b", shape=[2, 6, 9, 8])
NOISE.ClearField("input")
STAYS: dict[str, Any] = {
    "a value without inputs": model(conv("w33", "a", 1), NOISE, ADD),
    "other values": model(node("Neg", "x", "n"), conv("w33", "a", 1), conv("w11", "b", source="n"), ADD),
    "another reader": model(conv("w33", "a", 1), conv("w11", "b"), ADD, node("Neg", "b", "z"), outputs="y z"),
    "an output": model(conv("w33", "a", 1), conv("w11", "b"), ADD, outputs="y b"),
    "neither covers the other": model(conv("w31", "a", [1, 0, 1, 0]), conv("w13", "b", [0, 1, 0, 1]), ADD),
    "other outputs": model(conv("w33", "a", 1), node("Mul", "x scale", "b"), ADD, makes=1),
}


@pytest.mark.parametrize("proto", FIRES.values(), ids=FIRES)
def test_it_fires(proto: Any, backend: str, backend_context: Any) -> None:
    merged, changed = apply("merge_branches", proto)
    assert changed == 2 and ops(merged) == ["Conv"]
    assert len(merged.constants) == 2, "old weights take memory"
    check_numbers_stay(proto, {"x": random(*SHAPE, seed=9)}, backend, backend_context)


@pytest.mark.parametrize("proto", STAYS.values(), ids=STAYS)
def test_it_stays_away(proto: Any) -> None:
    merged, changed = apply("merge_branches", proto)
    assert changed == 0 and "Add" in ops(merged)


def test_many_branches_become_one(backend: str, backend_context: Any) -> None:
    """As MobileOne and RepVGG are trained."""
    sums = [node("Add", "a b", "c"), node("Add", "c d", "e"), node("Add", "e b0", "z"), node("Relu", "z", "y")]
    proto = model(conv("w33", "a", 1), conv("w11", "b"), conv("w55", "d", 2), NORM, *sums)
    assert ops(pf.load(proto)) == ["Conv+Relu"]
    check_numbers_stay(proto, {"x": random(*SHAPE, seed=9)}, backend, backend_context)
