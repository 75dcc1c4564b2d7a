"""The texts of composed shaders: kept in a folder while perframe runs, and compiled from there on any driver.

`python tools/shader_texts.py collect FOLDER BACKEND [MODEL] [NAME=N,...]` plans a model, or standard layers if none is
named, and keeps the shaders. `python tools/shader_texts.py compile FOLDER FILE...` compiles some of them, with a line
before and after each on stderr, between which a driver's own notes appear. Both run on the driver that is to be seen:
a backend may choose a kernel by its device.

As a plugin of pytest it keeps the shaders of a test run: `-p shader_texts`, with PYTHONPATH=tools and
PERFRAME_SHADERS=FOLDER.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

BEGIN, END = "=== begin ", "=== end "
COMPUTE = "\nlayout(local_size_x"  # in a compute shader
_OUTPUT = re.compile(r"^\s*(?:layout\s*\([^)]*\)\s*)?out\s+\w+\s+\w+\s*(?:\[(\d+)\])?\s*;", re.MULTILINE)

VERTEX = ".vert"  # the suffix of a vertex shader
USES = "uses.json"  # what `collect` writes beside the shaders


def keep(folder: Path) -> Counter[str]:
    """Write each shader that a GL backend composes from now on into a folder; its name begins with the kernel's.

    A vertex shader lies beside its fragment shader, as `.vert`. Returns the number of steps by file, which is counted
    until the process ends.
    """
    from perframe.backends.gl.compile.program import ProgramCache

    folder.mkdir(parents=True, exist_ok=True)
    compile_text, uses = ProgramCache.get, Counter[str]()

    def get(self: Any, shader: Any, samplers: Any, kernel: str, layer: str = "") -> Any:
        digest = hashlib.sha256(shader.text.encode()).hexdigest()[:12]
        path = folder / f"{kernel.replace('/', '.').replace(':', '.')}-{digest}.glsl"
        uses[path.name] += 1
        if not path.exists():
            path.write_text(shader.text, encoding="utf-8")
            if shader.vertex:
                path.with_suffix(VERTEX).write_text(shader.vertex, encoding="utf-8")
        return compile_text(self, shader, samplers, kernel, layer)

    ProgramCache.get = get  # type: ignore[method-assign]
    return uses


def kernel_name(file: str) -> str:
    """The name of the kernel in a file that `keep` wrote."""
    return file.rpartition("-")[0]


def pytest_configure() -> None:
    """Keep the shaders of a test run."""
    keep(Path(os.environ["PERFRAME_SHADERS"]))


# --- standard layers ---


def standard_models() -> dict[str, tuple[Any, dict[str, Any]]]:
    """Models of one layer whose loop decides how fast a network is, and their inputs: convolutions and a product."""
    import numpy as np

    from perframe.ir import Layer, Model, Value
    from perframe.ir.sizes.partial import DynamicTensorShape
    from perframe.tensor import DataType

    def model(op: str, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...], **attributes: Any) -> Any:
        shapes = {"x": x, "y": y}
        values = {name: Value(name, DataType.FLOAT32, DynamicTensorShape(shape)) for name, shape in shapes.items()}
        weights = np.random.default_rng(0).normal(size=w).astype(np.float32)
        layers = [Layer(op, op.lower(), ["x", "w"], ["y"], attributes)]
        return Model([values["x"]], [values["y"]], layers, {"w": weights}), {"x": np.zeros(x, np.float32)}

    same = {"pads": [1, 1, 1, 1]}
    return {
        "3×3": model("Conv", (1, 64, 56, 56), (64, 64, 3, 3), (1, 64, 56, 56), **same),
        "1×1": model("Conv", (1, 256, 56, 56), (64, 256, 1, 1), (1, 64, 56, 56)),
        "depthwise": model("Conv", (1, 128, 56, 56), (128, 1, 3, 3), (1, 128, 56, 56), **same, group=128),
        "product": model("MatMul", (1, 256, 512), (512, 512), (1, 256, 512)),
    }


def collect(folder: Path, backend: str, name: str = "", dims: str = "") -> None:
    """Plan a model on a backend, keep its shaders, and write how many of its steps use each: by file, then by model."""
    import perframe as pf
    from perframe.command_line.sources import likely_arrays, likely_dims, named_model, parse_dims

    if name:
        model = pf.load(named_model(name))
        sizes = {**likely_dims(model.inputs), **parse_dims(dims)}
        wanted = {Path(name).stem: (model, likely_arrays(model, sizes))}
    else:
        wanted = standard_models()
    uses, by_file = keep(folder), dict[str, dict[str, int]]()
    for what, (model, feed) in wanted.items():
        uses.clear()
        with pf.Worker(model, backend) as worker:
            worker.schedule(feed)
        for file, steps in uses.items():
            by_file.setdefault(file, {})[what] = steps
    (folder / USES).write_text(json.dumps(by_file))


# --- compiling ---


def open_context() -> Any:
    """A headless context of GL 4.3, or of 3.3 where there is no other."""
    import moderngl

    for version in (430, 330):
        try:
            return moderngl.create_context(standalone=True, backend="egl", require=version)
        except Exception as error:  # moderngl raises Exception itself
            failure = error
    raise failure


def compile_files(folder: Path, files: list[str]) -> None:
    """Compile files one by one, and print a JSON line for each: the file, and its error or null.

    A driver may compile a shader only when it runs, so each one runs once, without inputs. Some shaders need GL 4.3;
    the line of one that is left out has the key "skipped".
    """
    ctx = open_context()
    for file in files:
        text = (folder / file).read_text(encoding="utf-8")
        print(BEGIN + file, file=sys.stderr, flush=True)
        result: dict[str, Any] = {"file": file, "error": None}
        try:
            if text.startswith("#version 430") and ctx.version_code < 430:
                result["skipped"] = True
            elif COMPUTE in text:
                _dispatch(ctx, text)
            else:
                vertex = (folder / file).with_suffix(VERTEX)
                _draw(ctx, text, vertex.read_text(encoding="utf-8") if vertex.exists() else None)
        except Exception as error:  # moderngl raises Exception itself
            result["error"] = str(error).strip()
        ctx.finish()
        print(END + file, file=sys.stderr, flush=True)
        print(json.dumps(result), flush=True)


def _dispatch(ctx: Any, text: str) -> None:
    shader = ctx.compute_shader(text)
    shader.run()
    shader.release()


def _draw(ctx: Any, text: str, vertex: str | None) -> None:
    from perframe.resources import resource

    vertex = vertex or resource("shaders", "shell", "triangle.glsl").read_text(encoding="utf-8")
    program = ctx.program(vertex_shader=vertex, fragment_shader=text)
    dtype = "i4" if re.search(r"^#define O_TYPE int$", text, re.MULTILINE) else "f4"
    targets = [
        ctx.texture((4, 4), 4, dtype=dtype) for found in _OUTPUT.finditer(text) for _ in range(int(found[1] or 1))
    ]
    framebuffer, vertices = ctx.framebuffer(targets), ctx.vertex_array(program, [])
    framebuffer.use()
    vertices.render(vertices=3)
    for made in (vertices, framebuffer, *targets, program):
        made.release()


if __name__ == "__main__":
    action, place, *rest = sys.argv[1:]
    if action == "collect":
        collect(Path(place), *rest)
    else:
        compile_files(Path(place), rest)
