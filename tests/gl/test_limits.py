"""Kernels stay within the limits that GL 4.3 and GL 3.3 guarantee."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from perframe.backends.gl.compute import buffers_of
from perframe.backends.gl.context import MAX_INPUTS
from perframe.backends.gl.program import Kernel, Parameter, load_kernel

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


def kernel(body: str, *inputs: str) -> Kernel:
    return Kernel("test", inputs, (), (Parameter("int", "O_size", None),), body)


def test_an_input_has_a_block_for_what_the_kernel_reads() -> None:
    made = kernel("X(0); Y_four(1); Z_texel(2);\n#ifdef BOTH\nZ_at(ivec4(0));\n#else\nU(1);\n#endif\n", *"XYZUV")
    found = {b.name: (b.has_elements, b.has_texels) for b in buffers_of(made, dict.fromkeys("XYZUV", "float"), {}, ())}
    assert found == {
        "X": (True, False),
        "Y": (True, False),
        "Z": (False, True),
        "U": (True, False),
        "V": (False, False),
    }
    found = {b.name: b.blocks for b in buffers_of(made, dict.fromkeys("XYZUV", "float"), {"BOTH": "V(1)"}, ())}
    assert found == {"X": 1, "Y": 1, "Z": 2, "U": 0, "V": 1}


def test_elements_are_read_from_texels_where_blocks_are_too_many() -> None:
    body = "#define OPERAND(k) X##k##_texel(t); X##k##_at(ivec4(t));\n"
    for count, each in ((3, 2), (4, 1), (7, 1)):
        names = [f"X{index}" for index in range(count)]
        buffers = buffers_of(kernel(body, *names), dict.fromkeys(names, "int"), {}, ())
        assert [buffer.blocks for buffer in buffers] == [each] * count
        assert all(buffer.has_texels for buffer in buffers)
