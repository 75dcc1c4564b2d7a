"""RNN, GRU and LSTM: directions, lengths, initial states, biases, peepholes, activations, clipping, layouts."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import perframe as pf
from perframe.ir.declaration import declaration
from perframe.ir.sizes.partial import PartialTensor
from perframe.testing import Case, Draw, check, ints
from perframe.testing.cases import Array, expected_by_onnxruntime

draw = Draw(53)
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DIRECTIONS = ("forward", "reverse", "bidirectional")
SCALES: dict[str, dict[str, float]] = {
    "Relu": {},
    "Softsign": {},
    "Softplus": {},
    "LeakyRelu": {"alpha": 0.2},
    "Elu": {"alpha": 0.7},
    "ThresholdedRelu": {"alpha": 0.1},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "Affine": {"alpha": 0.6, "beta": 0.1},
    "ScaledTanh": {"alpha": 0.7, "beta": 0.4},
}


def cell(
    name: str,
    op: str,
    steps: int = 5,
    batch: int = 4,
    inputs: int = 3,
    hidden: int = 6,
    bias: bool = True,
    lengths: Array | None = None,
    state: bool = False,
    peepholes: bool = False,
    dtype: Any = np.float32,
    **attributes: Any,
) -> Case:
    """One layer; its weights are constants, its data are not."""
    d, gates = (2 if attributes.get("direction") == "bidirectional" else 1), GATES[op] * hidden
    initial = (d, batch, hidden)

    def some(*shape: int, present: bool = True) -> Array | None:
        return draw(*shape, low=-0.7, high=0.7, dtype=dtype) if present else None

    given = [some(steps, batch, inputs), some(d, gates, inputs), some(d, gates, hidden)]
    given += [some(d, 2 * gates, present=bias), lengths, some(*initial, present=state)]
    if op == "LSTM":
        given += [some(*initial, present=state), some(d, 3 * hidden, present=peepholes)]
    while given[-1] is None:
        given.pop()
    tolerance = 3e-2 if np.dtype(dtype).itemsize == 2 else 1e-5
    options: dict[str, Any] = {"rtol": tolerance, "atol": tolerance, "constants": [1, 2, 3, 7]}
    if np.dtype(dtype).itemsize == 4:
        options["reference"] = "onnxruntime"
    title = f"{name} {attributes.get('direction', '')} {np.dtype(dtype)}"
    return Case(title, op, given, {"hidden_size": hidden, **attributes}, 3 if op == "LSTM" else 2, opset=22, **options)


def activated(op: str, activation: str) -> Case:
    count = {"RNN": 1, "GRU": 2, "LSTM": 3}[op]
    attributes = {f"activation_{key}": [value] * count for key, value in SCALES[activation].items()}
    return cell(activation, op, steps=2, activations=[activation] * count, **attributes)


CASES = [
    *(cell("all", op, direction=way, state=True, peepholes=True) for op in GATES for way in DIRECTIONS),
    *(cell("bare", op, bias=False, direction=way) for op in GATES for way in DIRECTIONS),
    *(
        cell("lengths", op, lengths=ints(3, 5, 0, 1, dtype=np.int32), state=True, direction=way)
        for op in GATES
        for way in DIRECTIONS
    ),
    *(cell("clip", op, clip=0.2, direction=way, state=True) for op in GATES for way in DIRECTIONS),
    *(cell("one step", op, steps=1, batch=1) for op in GATES),
    *(cell("one of all", op, steps=1, batch=1, inputs=1, hidden=1) for op in GATES),
    *(cell("many", op, steps=41, batch=2, inputs=7, hidden=13, direction="bidirectional") for op in GATES),
    *(activated(op, activation) for op in GATES for activation in SCALES),
    *(cell("blocks", op, 3, 17, 5, 40, state=True, direction="bidirectional") for op in GATES),
    cell("blocks after the reset", "GRU", 2, 19, 3, 37, linear_before_reset=1, direction="reverse"),
    cell("linear before reset", "GRU", linear_before_reset=1, state=True, direction="bidirectional"),
    cell("coupled", "LSTM", input_forget=1, peepholes=True, state=True),
    cell(
        "scales for some",
        "LSTM",
        activations=["HardSigmoid", "Tanh", "LeakyRelu"],
        activation_alpha=[0.3, 0.1],
        activation_beta=[0.4],
    ),
    cell(
        "two ways two kinds",
        "GRU",
        direction="bidirectional",
        activations=["Sigmoid", "Tanh", "HardSigmoid", "Softsign"],
        activation_alpha=[0.3],
        activation_beta=[0.4],
        clip=1.5,
    ),
    *(cell("", op, dtype=t, state=True) for op in GATES for t in (np.float64, np.float16)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_recurrent(case: Case, backend: str, backend_context: Any) -> None:
    check(case, backend, backend_context)


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_batch_first_is_the_same_turned(op: str, direction: str, backend: str, backend_context: Any) -> None:
    lengths = ints(3, 5, 2, 1, dtype=np.int32)
    case = cell("turned", op, lengths=lengths, state=True, direction=direction)
    whole, *last = expected_by_onnxruntime(case.proto(), case.fed)
    wanted = [whole.transpose(2, 0, 1, 3), *(value.swapaxes(0, 1) for value in last)]
    given = [v.swapaxes(0, 1) if v is not None and k in (0, 5, 6) else v for k, v in enumerate(case.inputs)]
    attributes = {**case.attributes, "layout": 1}
    turned = Case("", op, given, attributes, case.outputs, [1, 2, 3], 22, lambda *_: wanted, rtol=1e-5, atol=1e-5)
    check(turned, backend, backend_context)


@pytest.mark.parametrize(
    "attributes",
    [
        {"direction": "sideways"},
        {"activations": ["Sigmoid", "Tanh"]},
        {"activations": ["Sigmoid", "Tanh", "Wave"]},
        {"direction": "bidirectional"},
        {"activations": ["Sigmoid", "Tanh", "Tanh"], "direction": "bidirectional"},
    ],
    ids=str,
)
def test_bad_attributes_are_refused(attributes: dict[str, Any]) -> None:
    case = cell("", "LSTM")
    given = [None if value is None else PartialTensor.of(value) for value in case.inputs]
    with pytest.raises(pf.InferenceError):
        declaration("LSTM").outputs_for(given, attributes)


@pytest.mark.parametrize("op", GATES)
def test_bfloat16_computes_in_float32(op: str, backend: str, backend_context: Any) -> None:
    case = cell("short", op, dtype=ml_dtypes.bfloat16, state=True)
    wide = [None if value is None else value.astype(np.float32) for value in case.inputs]
    same = Case("wide", op, wide, case.attributes, case.outputs, [1, 2, 3], 22)
    wanted = expected_by_onnxruntime(same.proto(), same.fed)
    made = pf.run(case.proto(), case.fed, backend=backend, ctx=backend_context)
    for value, want in zip(made.values(), wanted, strict=True):
        assert value.dtype == ml_dtypes.bfloat16
        np.testing.assert_allclose(value.astype(np.float32), want, 2**-8, 1e-6)


def test_only_the_last_state_is_wanted(backend: str, backend_context: Any) -> None:
    case = cell("last", "GRU")
    proto = case.proto()
    proto.graph.node[0].output[0] = ""
    del proto.graph.output[0]
    (wanted,) = expected_by_onnxruntime(proto, case.fed)
    made = pf.run(proto, case.fed, backend=backend, ctx=backend_context)["y1"]
    np.testing.assert_allclose(made, wanted, 1e-4, 1e-5)
