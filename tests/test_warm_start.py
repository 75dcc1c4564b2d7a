"""A load of a small model, and a first run, import what they need and little else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import perframe as pf
from fresh import run_fresh

CODE = """
import sys
import perframe as pf
model = pf.load(sys.argv[1])
loaded = set(sys.modules)
import numpy as np
with pf.Worker(model, "cpu") as worker:
    worker.schedule(np.ones((1, 3, 8, 8), np.float32)).peek_output().download_to_array()
print(len([name for name in loaded if name.startswith("perframe")]), *loaded)
print(len([name for name in sys.modules if name.startswith("perframe")]), *sys.modules)
"""
# what only other formats, devices, errors or programs need
OTHERS = {
    "onnx",
    "google.protobuf",
    "ml_dtypes",
    "moderngl",
    "glfw",
    "numba",
    "typer",
    "rich",
    "html",
    "difflib",
    "email",
}
OTHERS |= {"perframe.host", "perframe.functional", "perframe.exporters", "perframe.inspection", "perframe.textures"}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A network of a convolution, a pool and a product, as an ONNX file and as one of perframe."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["p", "s"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    constants = {"w": np.ones((4, 3, 3, 3), np.float32), "s": np.array([1, -1]), "m": np.ones((36, 5), np.float32)}
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5])
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    made = {name: tmp_path / f"m.{name}" for name in ("onnx", "perframe")}
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y], weights)), made["onnx"])
    pf.save(pf.load(made["onnx"]), made["perframe"])
    return made


@pytest.mark.parametrize(("name", "most_loaded", "most"), [("onnx", 170, 238), ("perframe", 100, 213)])
def test_a_first_run_imports_few_modules(files: dict[str, Path], name: str, most_loaded: int, most: int) -> None:
    """The limits leave room for a few modules: an eager import of a family of files exceeds them."""
    loaded, ran = (line.split() for line in run_fresh(CODE, str(files[name])).splitlines())
    assert not OTHERS & set(ran)
    assert int(loaded[0]) <= most_loaded and int(ran[0]) <= most
