"""Draws networks that are GLSL functions, a pixel for each row of their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import perframe as pf

Array = NDArray[Any]
TRIANGLE = """#version 330
void main() { gl_Position = vec4(vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0, 0.0, 1.0); }
"""


def argument(kind: str, name: str, width: int) -> str:
    """The declaration of an argument's variable."""
    return f"float {name}[{width}];" if width > 4 else f"{'float' if width == 1 else f'vec{width}'} {name};"


def component(name: str, width: int, at: int) -> str:
    """The expression of one channel of an argument."""
    return name if width == 1 else f"{name}.{'xyzw'[at]}" if width < 5 else f"{name}[{at}]"


def fragment(text: str, widths: list[int], made: list[int], name: str = "network", version: str = "330") -> str:
    """A fragment shader: column n of its target is pixel n, and row k is number k of all outputs together."""
    lines, reads, writes = [], [], []
    for which, (letter, listed) in enumerate((("i", widths), ("o", made))):
        row = 0
        for index, width in enumerate(listed):
            lines.append(argument("", f"{letter}{index}", width))
            for at in range(width):
                own = component(f"{letter}{index}", width, at)
                if which == 0:
                    reads.append(f"{own} = texelFetch(numbers, ivec2(gl_FragCoord.x, {row}), 0).r;")
                else:
                    writes.append(f"if (int(gl_FragCoord.y) == {row}) value = {own};")
                row += 1
    names = [f"i{index}" for index in range(len(widths))] + [f"o{index}" for index in range(len(made))]
    precise = "precision highp float;\nprecision highp int;\n" if "es" in version else ""
    body = "\n    ".join([*lines, *reads, f"{name}({', '.join(names)});", "value = 0.0;", *writes])
    head = f"#version {version}\n{precise}uniform highp sampler2D numbers;\nout highp float value;\n"
    return f"{head}{text}void main() {{\n    {body}\n}}\n"


def drawn(ctx: Any, text: str, given: list[Array], made: list[int], version: str = "330", **units: int) -> list[Array]:
    """The outputs (pixels, channels) of the function `network` for inputs (pixels, channels). `units` are samplers."""
    numbers = np.ascontiguousarray(np.concatenate(given, 1).T, np.float32)
    source = fragment(text, [array.shape[1] for array in given], made, version=version)
    program = ctx.program(vertex_shader=TRIANGLE, fragment_shader=source)
    for name, unit in units.items():
        program[name].value = unit
    texture = ctx.texture(numbers.shape[::-1], 1, numbers.tobytes(), dtype="f4")
    target = ctx.framebuffer([ctx.texture((numbers.shape[1], sum(made)), 1, dtype="f4")])
    array = ctx.vertex_array(program, [])
    with ctx.scope(target):
        texture.use(0)
        array.render(vertices=3)
    found = np.frombuffer(target.read(components=1, dtype="f4"), np.float32).reshape(sum(made), -1).T
    for thing in (array, target.color_attachments[0], target, texture, program):
        thing.release()
    return np.split(found, np.cumsum(made)[:-1], 1)


def function_of(model: pf.Model, ctx: Any, *given: Array, version: str = "330") -> list[Array]:
    """A model's outputs by its GLSL function, for inputs (pixels, channels)."""
    shapes = model.specs()
    widths = [int(shapes[value].shape[1]) for value in model.outputs]
    return drawn(ctx, pf.to_glsl(model), list(given), widths, version)
