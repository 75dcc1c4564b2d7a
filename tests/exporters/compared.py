"""Models as ONNX files, their outputs in onnxruntime, and a comparison of outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import perframe as pf
from files.rewriting import saved


def session(source: bytes | str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run(source: bytes | Path, inputs: dict[str, Any]) -> list[Any]:
    made: list[Any] = session(source if isinstance(source, bytes) else str(source)).run(None, inputs)
    return made


def exported(model: pf.Model) -> bytes:
    """The ONNX file of a model, which the standard's checker has accepted."""
    data = saved(model, name="m.onnx")
    onnx.checker.check_model(onnx.ModelProto.FromString(data))
    return data


def assert_same(got: Any, want: Any, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """Arrays, lists of them, and None; floats within a tolerance, of the largest value too."""
    if want is None or isinstance(want, list):
        assert type(got) is type(want) and len(got or ()) == len(want or ())
        for one, other in zip(got or (), want or (), strict=True):
            assert_same(one, other)
        return
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind in "fc":
        most = np.abs(want[np.isfinite(want)]).max(initial=1.0)
        np.testing.assert_allclose(got, want, rtol, atol * float(most))
    else:
        np.testing.assert_array_equal(got, want)
