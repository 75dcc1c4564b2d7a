"""Channel blocks: the layers that make them, undo them and shuffle their channels, and convolution of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.backends import gl_choices, gl_variants
from perframe.backends.gl.lowering import block_winograd
from perframe.errors import PerframeError
from perframe.ir import Layer, Model, Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.tensor import DataType
from small import specs

Shapes = dict[str, tuple[int, ...]]


def random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def model_of(layers: list[Layer], inputs: Shapes, constants: dict[str, Any]) -> Model:
    values = [Value(name, DataType.FLOAT32, DynamicTensorShape(shape)) for name, shape in inputs.items()]
    made = Model(values, [], layers, constants)
    spec = specs(made)["y"]
    return Model(values, [Value("y", spec.dtype, spec.shape)], layers, constants)


def run(layers: list[Layer], fed: dict[str, Any], constants: dict[str, Any], backend: str, ctx: Any) -> Any:
    model = model_of(layers, {name: value.shape for name, value in fed.items()}, constants)
    return pf.run(model, fed, backend, ctx=ctx, strict=backend != "cpu")["y"]


def blocked(x: Any) -> Any:
    """The definition, by indices."""
    result = np.zeros((x.shape[0], -(-x.shape[1] // 4), *x.shape[2:], 4), x.dtype)
    for channel in range(x.shape[1]):
        result[:, channel // 4, ..., channel % 4] = x[:, channel]
    return result


@pytest.mark.parametrize("shape", [(1, 4, 3, 5), (2, 7, 3, 1), (3, 1, 2), (1, 8), (2, 5, 2, 3, 2)])
def test_blocks_and_back(shape: tuple[int, ...], backend: str, backend_context: Any) -> None:
    x = random(*shape)
    there = [Layer("ToBlocks", "there", ["x"], ["y"])]
    np.testing.assert_array_equal(run(there, {"x": x}, {}, backend, backend_context), blocked(x))
    back = [Layer("FromBlocks", "back", ["x"], ["y"], {"channels": shape[1]})]
    np.testing.assert_array_equal(run(back, {"x": blocked(x)}, {}, backend, backend_context), x)


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 12])
def test_shuffles(groups: int, backend: str, backend_context: Any) -> None:
    x = random(2, 12, 3, 2)
    want = x.reshape(2, groups, 12 // groups, 6).swapaxes(1, 2).reshape(x.shape)
    layers = [Layer("ShuffleBlocks", "shuffle", ["x"], ["y"], {"groups": groups})]
    np.testing.assert_array_equal(run(layers, {"x": blocked(x)}, {}, backend, backend_context), blocked(want))


@pytest.mark.parametrize("channels, size, mode", [(8, 2, "DCR"), (4, 3, "DCR"), (3, 2, "CRD"), (2, 4, "CRD")])
def test_channels_that_become_pixels(channels: int, size: int, mode: str, backend: str, backend_context: Any) -> None:
    x, attributes = random(2, channels * size**2, 3, 2), {"blocksize": size, "mode": mode}
    want = run([Layer("DepthToSpace", "spread", ["x"], ["y"], attributes)], {"x": x}, {}, "cpu", None)
    layers = [Layer("BlocksToSpace", "spread", ["x"], ["y"], attributes)]
    made = run(layers, {"x": blocked(x)}, {}, backend, backend_context)
    np.testing.assert_array_equal(made, blocked(want) if mode == "DCR" else want)


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 8, 5, 7), (12, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 4, 9, 9), (4, 4, 3, 3), {}),
    ((2, 20, 7, 7), (36, 20, 1, 1), {}),
    ((2, 20, 7, 7), (8, 20, 1, 1), {"strides": [2, 3]}),
    ((1, 8, 3, 3), (8, 8, 1, 1), {"pads": [1, 0, 1, 2]}),
    ((2, 8, 13, 6), (4, 8, 3, 5), {"strides": [2, 2], "pads": [1, 2, 1, 2]}),
    ((1, 8, 13, 9), (4, 8, 3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    ((2, 3, 9, 11), (8, 3, 7, 7), {"strides": [2, 2], "pads": [3, 3, 3, 3]}),
    ((2, 2, 9, 11), (8, 2, 4, 3), {"strides": [3, 1]}),
    ((2, 1, 9, 11), (5, 1, 5, 5), {"pads": [2, 2, 2, 2]}),
    ((2, 7, 5, 5), (10, 7, 3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 16, 5, 5), (24, 8, 3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    ((1, 12, 5, 5), (12, 4, 1, 1), {"group": 3}),
    ((2, 8, 9, 10), (8, 1, 3, 3), {"group": 8, "pads": [1, 1, 1, 1]}),
    ((1, 12, 9, 10), (12, 1, 5, 5), {"group": 12, "strides": [2, 2], "pads": [2, 2, 2, 2]}),
    ((1, 8, 9, 10), (8, 1, 3, 4), {"group": 8, "dilations": [2, 1]}),
    ((2, 8, 17), (12, 8, 5), {"strides": [2], "pads": [2, 2]}),
    ((1, 4, 1, 1), (4, 4, 1, 1), {}),
    ((1, 64, 14, 14), (64, 64, 3, 3), {"pads": [1, 1, 1, 1]}),
]


def named(case: Any) -> str:
    x, w, attributes = case
    return f"{x} by {w} {attributes}"


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=named)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_convolutions(case: Any, bias: bool, backend: str, backend_context: Any) -> None:
    shape, weights, attributes = case
    x, constants = random(*shape), {"w": random(*weights), **({"b": random(weights[0])} if bias else {})}
    names = ["x", *constants]
    want = run([Layer("Conv", "conv", names, ["y"], attributes)], {"x": x}, constants, "cpu", None)
    given = x if shape[1] <= 3 else blocked(x)
    channels = {"channels": weights[0]}
    layers = [Layer("BlockConv", "conv", names, ["a"], attributes), Layer("FromBlocks", "back", ["a"], ["y"], channels)]
    made = run(layers, {"x": given}, constants, backend, backend_context)
    np.testing.assert_allclose(made, want, 1e-4, 1e-5 * np.abs(want).max())


@pytest.mark.parametrize("channels", [4, 12])
@pytest.mark.parametrize("taps", [1, 3])
def test_addends(channels: int, taps: int, backend: str, backend_context: Any) -> None:
    x, z, w = random(2, 8, 5, 6), random(2, channels, 5, 6), random(12, 8, taps, taps)
    fed, pads = {"x": blocked(x), "z": blocked(z)}, {"pads": [taps // 2] * 4}
    plain = run([Layer("Conv", "conv", ["x", "w"], ["y"], pads)], {"x": x}, {"w": w}, "cpu", None)
    plain[:, :channels] += z
    layers = [Layer("BlockConv", "conv", ["x", "w", "", "z"], ["y"], pads)]
    made = run(layers, fed, {"w": w}, backend, backend_context)
    np.testing.assert_allclose(made, blocked(plain), 1e-4, 1e-4)


DEPTHWISE: list[tuple[int, dict[str, Any]]] = [
    (3, {"pads": [1, 1, 1, 1]}),
    (3, {"strides": [2, 2], "pads": [0, 0, 1, 1]}),
    (5, {"pads": [2, 2, 2, 2]}),
    (5, {"strides": [2, 2], "pads": [3, 1, 0, 2]}),
    (7, {"pads": [3, 6, 0, 3]}),
    (7, {"strides": [2, 2], "pads": [3, 3, 3, 3]}),
]


@pytest.mark.parametrize("variant", gl_variants()["depthwise patch"][:-1])
@pytest.mark.parametrize(("taps", "window"), DEPTHWISE, ids=str)
def test_depthwise_convolutions_of_patches(
    taps: int, window: dict[str, Any], variant: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patches that overhang the result, addends for some of its blocks, and a launch in parts."""
    x, constants = random(2, 12, 41, 53), {"w": random(12, 1, taps, taps), "b": random(12)}
    x[0, 3, 4, -1] = np.inf  # must not reach the line below
    names, attributes = ["x", *constants], {"group": 12, **window}
    want = run([Layer("Conv", "conv", names, ["y"], attributes)], {"x": x}, constants, "cpu", None)
    z = random(2, 8, *want.shape[2:])
    want[:, :8] += z
    layers = [Layer("BlockConv", "conv", [*names, "z"], ["y"], attributes)]
    monkeypatch.setattr("perframe.backends.gl.lowering.steps.MOST_OPERATIONS", x.size * taps**2 // 5)
    with gl_choices(gl_context).trying("depthwise patch", variant):
        made = run(layers, {"x": blocked(x), "z": blocked(z)}, constants, "gpu_compute", gl_context)
    np.testing.assert_allclose(made, blocked(want), 1e-4, 1e-4)


@pytest.mark.parametrize(
    ("shape", "outputs", "pads"),
    [((2, 20, 37, 53), 18, [1, 1, 1, 1]), ((1, 16, 41, 38), 36, [0, 2, 1, 0]), ((3, 33, 38, 39), 16, [0, 0, 0, 0])],
    ids=str,
)
@pytest.mark.parametrize("extras", ["", "b", "z", "bz"])
def test_convolutions_by_points(
    shape: tuple[int, ...], outputs: int, pads: list[int], extras: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Winograd's way, with tiles that overhang the result: as exact as the products of float32."""
    channels, (top, left, bottom, right) = shape[1], pads
    rows, columns = shape[2] + top + bottom - 2, shape[3] + left + right - 2
    x, constants = random(*shape), {"w": random(outputs, channels, 3, 3), "b": random(outputs)}
    fed = {"x": blocked(x)} | ({"z": blocked(random(shape[0], 8, rows, columns))} if "z" in extras else {})
    attributes = {"pads": pads, "map_size": rows * columns}
    names = ["x", "w", "b" if "b" in extras else "", *("z" if "z" in extras else "")]
    model = [Layer("BlockConv", "conv", names, ["y"], attributes)]
    made = []
    monkeypatch.setattr(block_winograd, "FEW_PRODUCTS", 0)
    for variant in gl_variants()["window of 3 x 3"]:
        with gl_choices(gl_context).trying("window of 3 x 3", variant):
            made.append(run(model, fed, constants, "gpu_compute", gl_context))
    np.testing.assert_allclose(*made, rtol=0, atol=1e-5 * np.abs(made[0]).max())
    assert not np.array_equal(*made)  # the variants are two ways


WRONG = {
    "too few blocks": ({"x": (1, 1, 5, 5, 4)}, Layer("BlockConv", "c", ["x", "w"], ["y"])),
    "no blocks": ({"x": (1, 2, 5, 5, 3)}, Layer("BlockConv", "c", ["x", "w"], ["y"])),
    "an addend of another size": (
        {"x": (1, 2, 5, 5, 4), "z": (1, 2, 5, 5, 4)},
        Layer("BlockConv", "c", ["x", "w", "", "z"], ["y"]),
    ),
    "more channels than blocks hold": ({"x": (1, 2, 5, 5, 4)}, Layer("FromBlocks", "c", ["x"], ["y"], {"channels": 9})),
    "one dim": ({"x": (3,)}, Layer("ToBlocks", "c", ["x"], ["y"])),
    "no pictures": ({"x": (1, 4, 5, 4)}, Layer("BlocksToSpace", "c", ["x"], ["y"], {"blocksize": 2})),
    "too few pixels": ({"x": (1, 3, 5, 5, 4)}, Layer("BlocksToSpace", "c", ["x"], ["y"], {"blocksize": 2})),
    "pixels between blocks": (
        {"x": (1, 9, 5, 5, 4)},
        Layer("BlocksToSpace", "c", ["x"], ["y"], {"blocksize": 3, "mode": "CRD"}),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_shapes(name: str) -> None:
    inputs, layer = WRONG[name]
    with pytest.raises(PerframeError, match="'c'"):
        model_of([layer], inputs, {"w": random(8, 8, 3, 3)})
