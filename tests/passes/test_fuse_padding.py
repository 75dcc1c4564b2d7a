from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passes.graphs import apply, check_numbers_stay, graph, node, ops, random

WEIGHTS = random(4, 3, 3, 3)
LOWEST = np.float32(-np.inf)


def padded(reader: Any, pads: list[int], value: Any = None, axes: Any = None, **pad_attributes: Any) -> Any:
    """x, padded, and what `reader` makes of it."""
    constants: dict[str, Any] = {"pads": np.array(pads, np.int64), "w": WEIGHTS}
    names = "x pads"
    if value is not None or axes is not None:
        constants["value"] = np.float32(value or 0)
        names += " value"
    if axes is not None:
        constants["axes"] = np.array(axes, np.int64)
        names += " axes"
    used = {name: constants[name] for name in [*names.split(" ")[1:], *(["w"] if "w" in reader.input else [])]}
    made = [node("Pad", names, "p", **pad_attributes), reader]
    return graph(made, {"x": (2, 3, 11, 7)}, used, " ".join(reader.output))


def conv(**attributes: Any) -> Any:
    return node("Conv", "p w", "y", **attributes)


def pool(op: str, **attributes: Any) -> Any:
    return node(op, "p", "y", **{"kernel_shape": [3, 3], **attributes})


SPATIAL = [0, 0, 1, 2, 0, 0, 0, 1]

FIRES = {
    "conv": padded(conv(), SPATIAL),
    "conv and its own": padded(conv(pads=[1, 0, 2, 1], strides=[2, 1], dilations=[2, 1]), SPATIAL, 0.0),
    "more than a kernel": padded(conv(), [0, 0, 5, 0, 0, 0, 0, 9]),
    "axes": padded(conv(), [1, 2, 0, 1], axes=[3, -2]),
    "valid": padded(conv(auto_pad="VALID"), SPATIAL),
    "average": padded(pool("AveragePool"), SPATIAL),
    "average that counts": padded(
        pool("AveragePool", pads=[0, 0, 1, 1], count_include_pad=1), [0, 0, 1, 1, 0, 0, 1, 0]
    ),
    "largest": padded(pool("MaxPool", strides=[2, 2]), SPATIAL, LOWEST),
    "largest and its own": padded(pool("MaxPool", pads=[1, 0, 0, 1]), [0, 0, 0, 1, 0, 0, 1, 1], LOWEST),
}

STAYS = {
    "another value": padded(conv(), SPATIAL, 1.0),
    "reflection": padded(conv(), SPATIAL, mode="reflect"),
    "channels": padded(conv(group=1), [0, 0, 0, 0, 0, 0, 0, 1], 2.0),
    "batch": padded(conv(), [1, 0, 1, 1, 0, 0, 1, 1]),
    "cut": padded(conv(), [0, 0, -1, 0, 0, 0, 1, 0]),
    "same": padded(conv(auto_pad="SAME_UPPER"), SPATIAL),
    "largest of zeros": padded(pool("MaxPool"), SPATIAL),
    "indices": padded(node("MaxPool", "p", "y i", kernel_shape=[3, 3]), SPATIAL, LOWEST),
    "rounded up": padded(pool("AveragePool", strides=[2, 2], ceil_mode=1), SPATIAL),
    "average without its own": padded(pool("AveragePool", pads=[1, 1, 1, 1]), SPATIAL),
    "more than a pool's kernel": padded(pool("MaxPool"), [0, 0, 3, 0, 0, 0, 0, 0], LOWEST),
}


@pytest.mark.parametrize("model", FIRES.values(), ids=FIRES)
def test_it_fires(model: Any, backend: str, backend_context: Any) -> None:
    fused, changed = apply("fuse_padding", model)
    assert changed == 1 and len(ops(fused)) == 1
    check_numbers_stay(model, {"x": random(2, 3, 11, 7) - 2}, backend, backend_context)


@pytest.mark.parametrize("model", STAYS.values(), ids=STAYS)
def test_it_stays_away(model: Any) -> None:
    fused, changed = apply("fuse_padding", model)
    assert changed == 0 and "Pad" in ops(fused)


def test_all_readers_take_it(backend: str, backend_context: Any) -> None:
    readers = [node("Conv", "p w", "a"), node("AveragePool", "p", "b", kernel_shape=[3, 3]), node("Add", "s b", "y")]
    sums = node("ReduceSum", "a", "s", keepdims=1)
    constants = {"pads": np.array(SPATIAL, np.int64), "w": WEIGHTS}
    model = graph([node("Pad", "x pads", "p"), *readers[:2], sums, readers[2]], {"x": (2, 3, 11, 7)}, constants)
    fused, changed = apply("fuse_padding", model)
    assert changed == 1 and "Pad" not in ops(fused)
    check_numbers_stay(model, {"x": random(2, 3, 11, 7)}, backend, backend_context)


def test_another_reader_needs_it() -> None:
    nodes = [node("Pad", "x pads", "p"), node("Conv", "p w", "y"), node("Sin", "p", "z")]
    constants = {"pads": np.array(SPATIAL, np.int64), "w": WEIGHTS}
    _, changed = apply("fuse_padding", graph(nodes, {"x": (2, 3, 11, 7)}, constants, outputs="y z"))
    assert changed == 0


def test_a_padded_output_stays() -> None:
    nodes = [node("Pad", "x pads", "p"), node("Conv", "p w", "y")]
    constants = {"pads": np.array(SPATIAL, np.int64), "w": WEIGHTS}
    _, changed = apply("fuse_padding", graph(nodes, {"x": (2, 3, 11, 7)}, constants, outputs="y p"))
    assert changed == 0
