"""Shaders keep the rules of their version of GLSL, which Mesa's compiler does not enforce and macOS may."""

from __future__ import annotations

import shutil
from pathlib import Path

import glsl_rules
import pytest

from fresh import run_fresh
from perframe.backends.gl.compile.program import _in_whole_lines
from support import unavailable

# a kernel of most files of shaders, and those with macros of several lines
KEEP = """
import sys
from pathlib import Path
import numpy as np
import perframe as pf
from perframe import functional as F
from shader_texts import keep
keep(Path(sys.argv[1]))
x = np.linspace(0, 1, 3 * 8 * 8, dtype=np.float32).reshape(1, 3, 8, 8)
graph = pf.FunctionalGraph()
picture = graph.add_input(pf.DataType.FLOAT32, (1, 3, 8, 8))
weights = F.tensor(np.ones((4, 3, 3, 3), np.float32))
made = F.relu(F.conv2d(picture, weights, padding=1))
rows = F.softmax(F.reshape(made, (4, 64)), 1)
pooled = F.max_pool2d(made, 2)
outputs = [
    rows, pooled, F.matmul(rows, F.transpose(rows, 0, 1)), F.reduce_sum(made, [1]), F.layer_norm(rows, [64]),
    F.interpolate(made, scale_factor=2.0), F.cat([pooled, pooled], 1), F.cumsum(rows, 1), F.pad(made, [1, 1]),
    F.argmax(rows, 1), F.gather(rows, 1, F.tensor(np.array([[1, 2]] * 4))), F.instance_norm(made),
]
model = graph.compile(*outputs)
pf.run(model, {model.inputs[0].name: x}, backend=sys.argv[2], strict=True)
if sys.argv[2] == "gpu_pixel":
    import moderngl
    ctx = moderngl.create_context(standalone=True, backend="egl")
    overlay = pf.vision.Overlay(ctx, target=ctx.texture((8, 8), 4))
    boxes = pf.Tensor(np.ones((1, 4), np.float32)).to("gpu_pixel", ctx)
    overlay.boxes(boxes, color=boxes, scores=[1.0])
    overlay.points(boxes)
    overlay.lines(boxes, [(0, 0)])
    overlay.masks(boxes)
    overlay.texts(["a"], boxes)
"""


@pytest.mark.slow
def test_composed_shaders_keep_the_rules(tmp_path: Path, where: str) -> None:
    if shutil.which("glslangValidator") is None:
        unavailable("no glslangValidator; try: apt-get install glslang-tools")
    run_fresh(KEEP, str(tmp_path), where)
    kept = [path.name.rpartition("-")[0] for path in tmp_path.iterdir()]
    assert where != "gpu_pixel" or len(list(tmp_path.glob("draw.*.vert"))) == 5
    assert len(kept) > 12 and "standardize" in kept, kept
    assert list(glsl_rules.complaints(tmp_path)) == []


def test_a_rule_that_is_broken_is_named(tmp_path: Path) -> None:
    if shutil.which("glslangValidator") is None:
        unavailable("no glslangValidator; try: apt-get install glslang-tools")
    head = "#version 330\nout vec4 colour;\n"
    (tmp_path / "macro.glsl").write_text(head + "#define TWO \\\n 2\nvoid main() { colour = vec4(TWO); }\n", "utf-8")
    (tmp_path / "more.glsl").write_text(head + "#extension all : warn\nvoid main() { colour = vec4(2); }\n", "utf-8")
    found = dict(glsl_rules.complaints(tmp_path))
    assert sorted(found) == ["macro.glsl", "more.glsl"] and "line continuation" in found["macro.glsl"]


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("a\nb\n", "a\nb\n"),
        ("#define A \\\n  b \\\n  c\nd", "#define A    b    c\n\n\nd"),
        ("x \\\ny\nz \\\nw", "x  y\n\nz  w\n"),
    ],
)
def test_lines_that_go_on_are_joined_and_others_keep_their_numbers(text: str, joined: str) -> None:
    assert _in_whole_lines(text) == joined
