"""Operators of com.microsoft, against onnxruntime, which made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import perframe as pf
from perframe.testing import Draw
from perframe.testing.cases import Array, expected_by_onnxruntime

draw = Draw(67)


def model(
    op: str,
    inputs: Sequence[Array | None],
    attributes: dict[str, Any],
    *,
    outputs: Sequence[str] = ("y0",),
    constants: Sequence[int] = (),
    domain: str = "com.microsoft",
) -> onnx.ModelProto:
    """A model of one node. Its inputs with the indices `constants` are initializers, and its outputs have no types."""
    names = ["" if value is None else f"x{index}" for index, value in enumerate(inputs)]
    infos, initializers = [], []
    for index, value in enumerate(inputs):
        if value is None:
            continue
        if index in constants:
            initializers.append(numpy_helper.from_array(value, names[index]))
        else:
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            infos.append(helper.make_tensor_value_info(names[index], kind, value.shape))
    node = helper.make_node(op, names, outputs, name="node", domain=domain, **attributes)
    ends = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    graph = helper.make_graph([node], op, infos, ends, initializers)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def fed(inputs: Sequence[Array | None], constants: Sequence[int] = ()) -> dict[str, Array]:
    """The inputs for the model that `model` returns."""
    return {f"x{i}": value for i, value in enumerate(inputs) if value is not None and i not in constants}


def check(
    backend: str,
    ctx: Any,
    op: str,
    inputs: Sequence[Array | None],
    attributes: dict[str, Any] | None = None,
    *,
    outputs: int | Sequence[str] = 1,
    constants: Sequence[int] = (),
    wanted: Sequence[Array] | None = None,
    tolerance: float = 2e-5,
    domain: str = "com.microsoft",
    native: bool = False,
) -> None:
    """Run a node on a backend and compare; whole numbers of 8 bits may differ by one, where two roundings meet.

    `native` says that a GL backend runs it without the CPU.
    """
    names = [f"y{index}" for index in range(outputs)] if isinstance(outputs, int) else outputs
    proto = model(op, inputs, attributes or {}, outputs=names, constants=constants, domain=domain)
    given = fed(inputs, constants)
    expected = expected_by_onnxruntime(proto, given) if wanted is None else wanted
    made = pf.run(proto, given, backend=backend, strict=native and backend != "cpu", ctx=ctx)
    assert list(made) == [name for name in names if name]
    for (name, value), want in zip(made.items(), expected, strict=True):
        assert (value.shape, value.dtype) == (want.shape, want.dtype), name
        if want.dtype.kind == "f":
            loose = tolerance if want.dtype == np.float32 else 1e-2
            np.testing.assert_allclose(value, want, loose, loose, err_msg=name)
        elif want.dtype.itemsize == 1:
            assert np.abs(value.astype(int) - want.astype(int)).max(initial=0) <= 1, name
        else:
            np.testing.assert_array_equal(value, want, err_msg=name)


X, W = draw(1, 3, 6, 5), draw(4, 3, 3, 3)
CASES: list[tuple[str, str, list[Array | None], dict[str, Any]]] = [
    ("relu", "FusedConv", [X, W, draw(4)], {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    ("leaky", "FusedConv", [X, W], {"activation": "LeakyRelu", "activation_params": [0.2], "strides": [2, 2]}),
    ("clip", "FusedConv", [X, W, draw(4)], {"activation": "Clip", "activation_params": [-0.5, 0.5]}),
    ("hard", "FusedConv", [X, W], {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]}),
    ("sum", "FusedConv", [X, W, draw(4), draw(1, 4, 4, 3)], {"activation": "Relu"}),
    (
        "",
        "FusedGemm",
        [draw(4, 3), draw(5, 4), draw(5)],
        {"transA": 1, "transB": 1, "alpha": 0.5, "activation": "Relu"},
    ),
    ("leaky", "FusedGemm", [draw(3, 4), draw(4, 5)], {"activation": "LeakyRelu", "activation_alpha": 0.3}),
    ("", "FusedMatMul", [draw(3, 4), draw(4, 5)], {}),
    ("both", "FusedMatMul", [draw(2, 4, 3), draw(2, 5, 4)], {"transA": 1, "transB": 1, "alpha": 0.25}),
    ("right", "FusedMatMul", [draw(2, 1, 3, 4), draw(5, 5, 4)], {"transB": 1, "alpha": 2.0}),
    ("vector", "FusedMatMul", [draw(4), draw(4, 5)], {"transA": 1}),
    ("batch", "FusedMatMul", [draw(3, 2, 4), draw(2, 4, 5)], {"transBatchA": 1}),
    (
        "batches",
        "FusedMatMul",
        [draw(4, 2, 3), draw(5, 2, 4)],
        {"transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1},
    ),
    ("", "TransposeMatMul", [draw(2, 4, 3), draw(2, 4, 5)], {"transA": 1}),
    ("", "Gelu", [draw(3, 5, low=-4, high=4)], {}),
    ("", "BiasGelu", [draw(3, 5), draw(5)], {}),
    ("", "FastGelu", [draw(3, 5, low=-4, high=4)], {}),
    ("bias", "FastGelu", [draw(3, 5), draw(5)], {}),
    ("", "QuickGelu", [draw(3, 5)], {}),
    ("alpha", "QuickGelu", [draw(3, 5)], {"alpha": 1.2}),
    ("", "Trilu", [draw(2, 4, 5)], {}),
    ("lower", "Trilu", [draw(4, 5), np.array(1, np.int64)], {"upper": 0}),
    ("", "ExpandDims", [draw(2, 3), np.array(1, np.int32)], {}),
    ("last", "ExpandDims", [draw(2, 3), np.array(-1, np.int32)], {}),
    ("", "Pad", [draw(2, 3), np.array([1, 0, 0, 2], np.int64), np.array([1.5], np.float32)], {}),
    ("row", "Pad", [draw(2, 3), np.array([[1, 0, 0, 2]], np.int64)], {"mode": "reflect"}),
    ("", "Inverse", [draw(2, 4, 4) + 2 * np.eye(4, dtype=np.float32)], {}),
    ("2", "Inverse", [draw(2, 2)], {}),
    ("1", "Inverse", [draw(3, 1, 1)], {}),
    ("3", "Inverse", [draw(2, 1, 3, 3)], {}),
]


FORMS = [(case, folded) for case in CASES for folded in (False, True) if not folded or len(case[2]) > 1]


@pytest.mark.parametrize(
    "case, folded", FORMS, ids=[f"{case[1]}-{case[0] or 'plain'}-{'constant' if f else 'read'}" for case, f in FORMS]
)
def test_against_onnxruntime(case: Any, folded: bool, backend: str, backend_context: Any) -> None:
    _, op, inputs, attributes = case
    constants = range(1, len(inputs)) if folded else ()
    native = op != "Inverse" and (folded or len(inputs) == 1 or op.startswith("Fused"))
    check(backend, backend_context, op, inputs, attributes, constants=constants, native=native)


@pytest.mark.parametrize("outputs", [("y",), ("y", "idx"), ("y", "", "counts"), ("y", "idx", "counts")])
def test_unique(outputs: Sequence[str], backend: str, backend_context: Any) -> None:
    x = np.array([3, 1, 3, 2, 1, 3], np.float32)
    every = expected_by_onnxruntime(model("Unique", [x], {}, outputs=("y", "idx", "counts")), {"x0": x})
    wanted = [value for name, value in zip(("y", "idx", "counts"), every, strict=True) if name in outputs]
    check(backend, backend_context, "Unique", [x], outputs=outputs, wanted=wanted)


def test_bias_add(backend: str, backend_context: Any) -> None:
    x, bias, skip = draw(2, 3, 4), draw(4), draw(2, 3, 4)
    check(backend, backend_context, "BiasAdd", [x, bias, skip], wanted=[x + bias + skip])


def test_bias_split_gelu(backend: str, backend_context: Any) -> None:
    x, bias = draw(2, 3, 8), draw(8)
    both = x + bias
    (gelu,) = expected_by_onnxruntime(model("Gelu", [both], {}), {"x0": both})
    check(backend, backend_context, "BiasSplitGelu", [x, bias], wanted=[both[..., :4] * gelu[..., 4:]])


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_nhwc_conv(last: bool, backend: str, backend_context: Any) -> None:
    w = draw(4, 3, 3, 2)
    attributes = {"pads": [1, 0, 1, 0], "kernel_shape": [3, 2]}
    (wanted,) = expected_by_onnxruntime(model("Conv", [X, w], attributes, domain=""), {"x0": X, "x1": w})
    inputs = [X.transpose(0, 2, 3, 1).copy(), w.transpose(0, 2, 3, 1).copy() if last else w]
    check(backend, backend_context, "NhwcConv", inputs, attributes, wanted=[wanted.transpose(0, 2, 3, 1)])


def test_what_cannot_be_honoured_is_reported() -> None:
    x = draw(1, 2, 9, 9)
    with pytest.raises(pf.UnsupportedOperatorError, match="9 rows"):
        pf.load(model("Inverse", [x], {}))
    with pytest.raises(pf.UnsupportedOperatorError, match="activation='Selu'"):
        pf.load(model("FusedConv", [X, W], {"activation": "Selu"}))
