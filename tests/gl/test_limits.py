"""Kernels stay within the limits that GL 4.3 and GL 3.3 guarantee."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import perframe as pf
from gl.graphs import graph
from perframe.backends.gl.backend import reason_against
from perframe.backends.gl.compile.program import Kernel, load_kernel, parse_kernel
from perframe.backends.gl.context.device import FEWEST_ROUNDS, MAX_INPUTS, MOST_ROUNDS
from perframe.backends.gl.context.devices import device_for
from perframe.backends.gl.lowering import steps
from perframe.backends.gl.lowering.read_buffers import buffers_of
from perframe.backends.gl.lowering.steps import MOST_OPERATIONS, Binding
from perframe.backends.operand import Operand
from perframe.tensor import DataType

SHADERS = Path(__file__).parents[2] / "shaders"
KERNELS = sorted(
    [
        *(path.stem for path in SHADERS.glob("*.glsl")),
        *(f"compute/{path.stem}" for path in SHADERS.glob("compute/*.glsl")),
    ]
)
BLOCKS, UNITS, UNIFORM_BYTES = 8, 16, 16 << 10


def variants(kernel: Kernel) -> list[tuple[str, ...]]:
    """All sets of the defines on which the kernel's text depends."""
    names = sorted(set(re.findall(r"#\s*ifn?def (\w+)", kernel.body)))
    return [chosen for count in range(len(names) + 1) for chosen in combinations(names, count)]


def blocks_and_units(kernel: Kernel, kind: str, defines: tuple[str, ...], is_viewed: bool) -> tuple[int, int]:
    """The storage blocks and the texture units of the kernel with the most inputs that a launch binds."""
    inputs = dict.fromkeys(kernel.inputs[:MAX_INPUTS], kind)
    buffers = buffers_of(kernel, inputs, dict.fromkeys(defines, "1"), set(inputs) if is_viewed else set())
    text = "\n".join(buffer.accessor for buffer in buffers)
    return 1 + len(re.findall(r"^layout\(std430", text, re.MULTILINE)), text.count("uniform")


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_stays_within_the_limits(name: str) -> None:
    kernel = load_kernel(name).with_numbers(64)
    assert all(parameter.count is None or parameter.count < 256 for parameter in kernel.parameters)
    zeros = {parameter.name: 0 for parameter in kernel.parameters}
    assert len(kernel.pack(zeros, "float")) <= UNIFORM_BYTES
    assert len(kernel.inputs) + len(kernel.textures) <= UNITS
    for defines in variants(kernel):
        for is_viewed in (False, True):
            blocks, units = blocks_and_units(kernel, "float", defines, is_viewed)
            assert blocks <= BLOCKS and units + len(kernel.textures) <= UNITS, (defines, is_viewed)


def test_an_input_has_a_block_for_what_the_kernel_reads() -> None:
    lines = ["X", "Y texels", "Z texels, elements if BOTH", "U elements if not BOTH", "V elements texels if BOTH"]
    made = parse_kernel("test", "\n".join(f"//@ input {line}" for line in lines))
    found = {b.name: (b.has_elements, b.has_texels) for b in buffers_of(made, dict.fromkeys("XYZUV", "float"), {}, ())}
    assert found == {
        "X": (True, False),
        "Y": (False, True),
        "Z": (False, True),
        "U": (True, False),
        "V": (False, False),
    }
    found = {b.name: b.blocks for b in buffers_of(made, dict.fromkeys("XYZUV", "float"), {"BOTH": "1"}, ())}
    assert found == {"X": 1, "Y": 1, "Z": 2, "U": 0, "V": 2}


def test_elements_are_read_from_texels_where_blocks_are_too_many() -> None:
    for count, each in ((3, 2), (4, 1), (7, 1)):
        names = [f"X{index}" for index in range(count)]
        made = parse_kernel("test", "\n".join(f"//@ input {name} elements texels" for name in names))
        buffers = buffers_of(made, dict.fromkeys(names, "int"), {}, ())
        assert [buffer.blocks for buffer in buffers] == [each] * count
        assert all(buffer.has_texels for buffer in buffers)


def test_loops_are_as_long_as_the_device_allows(gl_context: Any) -> None:
    """llvmpipe ends a shader early, and is asked about it; a GPU takes longer sums."""
    (layer,) = graph([("MatMul", ["a", "b"], ["y"])], {"a": (2, 40_000), "b": (40_000, 3)}).layers
    shapes = {"a": (2, 40_000), "b": (40_000, 3), "y": (2, 3)}
    a, b, y = (Operand(name, shape, DataType.FLOAT32) for name, shape in shapes.items())
    assert "40000 products" in str(reason_against(layer, [a, b], [y], 1 << 30, FEWEST_ROUNDS))
    assert reason_against(layer, [a, b], [y], 1 << 30, MOST_ROUNDS) is None
    expected = FEWEST_ROUNDS if "llvmpipe" in gl_context.info["GL_RENDERER"] else MOST_ROUNDS
    own = Thread(target=lambda: found.append(device_for(None).most_rounds))  # its context is current in no thread
    found = [device_for(gl_context).most_rounds]
    own.start()
    own.join()
    assert found == [expected, expected]


@pytest.mark.parametrize(
    ("size", "operations", "most", "expected"),
    [
        (10, 0, None, [(0, 10)]),
        (10, 0, 4, [(0, 4), (4, 4), (8, 2)]),
        (10, MOST_OPERATIONS, None, [(0, 10)]),
        (10, MOST_OPERATIONS + 1, None, [(0, 5), (5, 5)]),
        (10, 3 * MOST_OPERATIONS, 5, [(0, 4), (4, 4), (8, 2)]),
        (2, 9 * MOST_OPERATIONS, None, [(0, 1), (1, 1)]),
        (0, 0, 4, [(0, 0)]),
    ],
)
def test_a_launch_has_a_limited_number_of_operations(
    size: int, operations: int, most: int | None, expected: list[tuple[int, int]]
) -> None:
    binding: Any = Binding(
        "", parse_kernel("test", ""), {}, Operand("y", (), DataType.FLOAT32), {}, operations=operations
    )
    assert binding.parts(size, most) == expected


@pytest.mark.parametrize("layer", ["conv", "matmul"])
def test_large_layers_take_several_launches(
    layer: str, where: str, gl_context: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(2)
    if layer == "conv":
        x, w = random.normal(size=(1, 8, 40, 70)), random.normal(size=(16, 8, 3, 3))
        nodes = [("Conv", ["x", "w"], ["c"], {"pads": [1, 1, 1, 1]}), ("Conv", ["c", "v"], ["y"])]
        constants = {"w": w, "v": random.normal(size=(16, 16, 1, 1))}
    else:
        x, constants = random.normal(size=(300, 20)), {"w": random.normal(size=(20, 90))}
        nodes = [("MatMul", ["x", "w"], ["y"])]
    x, constants = x.astype(np.float32), {name: value.astype(np.float32) for name, value in constants.items()}
    model = graph(nodes, {"x": x.shape}, constants=constants)
    results, launches = [], []
    for most in (MOST_OPERATIONS, 50_000):
        monkeypatch.setattr(steps, "MOST_OPERATIONS", most)
        with pf.Worker(model, where, gl_context, strict=True) as worker:
            results.append(worker.schedule(x).peek_output().download_to_array())
            results.append(worker.schedule(2 * x).peek_output().download_to_array())
            (part,) = worker.parts.planned_parts()
            program: Any = part.latest_plan.program
            (commands,) = program._lists.values()
            addresses = [
                device_for(gl_context).gl.addresses.get(name) for name in ("glDispatchCompute", "glDrawArraysInstanced")
            ]
            launches.append(sum(row[0] in addresses for row in commands._rows))
    assert launches[1] >= launches[0] + 3
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(results[1], results[3])
