"""`python -m fuzz.random_graphs.show FOLDER...`: a saved graph, and what onnxruntime, ONNX and perframe make of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import perframe as pf
from fuzz.random_graphs.reference import run_plainly


def show(folder: Path, backends: list[str]) -> None:
    """Print a graph's nodes, constants and results."""
    model = onnx.load(folder / "model.onnx")
    with np.load(folder / "inputs.npz") as arrays:
        feed = {key: arrays[key] for key in arrays.files}
    print(f"===== {folder} opset {model.opset_import[0].version}")
    for node in model.graph.node:
        attributes = {
            a.name: "graph" if a.type == a.GRAPH else onnx.helper.get_attribute_value(a) for a in node.attribute
        }
        print(f"  {node.op_type} {list(node.input)} -> {list(node.output)} {attributes}")
    for name, array in feed.items():
        print(f"  input {name} {array.dtype} {array.shape}: {array.reshape(-1)[:8]}")
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        print(f"  constant {tensor.name} {array.dtype} {array.shape}: {array.reshape(-1)[:8]}")
    print("  onnxruntime", _said(lambda: run_plainly(model, feed)))
    print("  reference  ", _said(lambda: ReferenceEvaluator(model).run(None, feed)))
    for backend in backends:
        for optimize in (True, False):
            loaded = f"{backend}{'' if optimize else ', optimize=False'}"
            run = lambda o=optimize, b=backend: list(pf.run(pf.load(model, optimize=o), feed, backend=b).values())  # noqa: E731
            print(f"  {loaded}", _said(run))


def _said(run: Any) -> str:
    try:
        with np.errstate(all="ignore"):
            return ", ".join(f"{np.shape(value)} {np.reshape(value, -1)[:8]}" for value in run())
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"


if __name__ == "__main__":
    for place in sys.argv[1:]:
        show(Path(place), ["cpu"])
