"""PyTorch's networks, as onnxruntime's own optimisations and quantisation leave them."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import perframe as pf
from perframe.testing.cases import expected_by_onnxruntime

torch = pytest.importorskip("torch")
networks = pytest.importorskip("models.networks")

MADE = {  # operators of com.microsoft that the file must contain
    ("mobilenet", "optimised"): {"FusedConv"},
    ("encoder", "optimised"): {"BiasGelu"},
    ("decoder", "optimised"): {"FusedMatMul", "QuickGelu"},
    ("encoder", "quantised"): {"DynamicQuantizeMatMul", "Gelu", "SkipLayerNormalization"},
    ("decoder", "quantised"): {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"},
}


@functools.cache
def exported(name: str, how: str) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A network's file after onnxruntime went over it, and inputs."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    (network,) = (n for n in networks.NETWORKS if n.name == name)
    example, dims = network.exported_with(), {key: dict(value) for key, value in network.dims.items()}
    with tempfile.TemporaryDirectory() as folder:
        plain, small, last = (str(Path(folder) / f"{step}.onnx") for step in ("plain", "small", "last"))
        given = tuple(torch.from_numpy(value) for value in example.values())
        options = {"input_names": list(example), "dynamic_axes": dims, "opset_version": 17, "dynamo": False}
        torch.onnx.export(network.module(), given, plain, **options)
        if how == "quantised":
            quantization.quantize_dynamic(plain, small, reduce_range=True)  # see test_contrib_quantized.signed()
        session = onnxruntime.SessionOptions()
        session.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        session.optimized_model_filepath, session.log_severity_level = last, 3
        onnxruntime.InferenceSession(small if how == "quantised" else plain, session)
        proto = onnx.load(last)
    names = {info.name for info in proto.graph.input}
    return proto, {key: value for key, value in network.given()[0].items() if key in names}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, how", MADE, ids=[" ".join(key) for key in MADE])
def test_against_onnxruntime(name: str, how: str, backend: str, backend_context: Any) -> None:
    proto, feeds = exported(name, how)
    assert {node.op_type for node in proto.graph.node if node.domain == "com.microsoft"} >= MADE[name, how]
    made = pf.run(proto, feeds, backend=backend, ctx=backend_context)
    # a number that is rounded another way is off by a step
    tolerance = 1e-4 if how == "optimised" else 2e-2
    for value, want in zip(made.values(), expected_by_onnxruntime(proto, feeds), strict=True):
        np.testing.assert_allclose(value, want, tolerance, tolerance)
