"""Elementwise layers. The cases come from the registry: a declared formula is tested without a line here."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx.defs
import pytest

from perframe.ir.declaration import Declaration, registry
from perframe.testing import Case, Draw, check, formula_cases
from perframe.testing.cases import OPSET
from perframe.testing.formulas import SHAPES as BY_ARITY
from perframe.testing.formulas import Shapes, ranges_of, title

LAYERS = {n: entry for n, entry in registry().items() if entry.family == "elementwise" and onnx.defs.has(n)}

# where ONNX does not let all inputs broadcast
SHAPES: dict[str, tuple[Shapes, ...]] = {
    "PRelu": (((3, 5), ()), ((2, 3, 5, 7), (3, 1, 1)), ((3, 5), (5,)), ((2, 7), (2, 1)), ((0, 3), (3,)), ((4,), (4,))),
    "Clip": tuple((shape, (), ()) for (shape,) in BY_ARITY[1]),
    "BatchNormalization": tuple(
        (shape, (3,), (3,), (3,), (3,)) for shape in ((2, 3), (1, 3, 5), (2, 3, 5, 7), (0, 3, 2))
    ),
}
# attributes to test besides the defaults
ATTRIBUTES: dict[str, list[dict[str, Any]]] = {
    "Mod": [{"fmod": 0}, {"fmod": 1}],
    "BitShift": [{"direction": "LEFT"}, {"direction": "RIGHT"}],
    "Cast": [{"to": onnx.TensorProto.DataType.Value(name)} for name in ("FLOAT", "INT32", "INT64", "BOOL")],
    "IsInf": [{}, {"detect_negative": 0}, {"detect_positive": 0}, {"detect_negative": 0, "detect_positive": 0}],
    "Gelu": [{}, {"approximate": "tanh"}],
    "LeakyRelu": [{}, {"alpha": 0.3}],
    "ThresholdedRelu": [{}, {"alpha": 2.5}],
    "Elu": [{}, {"alpha": 0.7}],
    "Celu": [{}, {"alpha": 1.7}],
    "Selu": [{}, {"alpha": 1.5, "gamma": 1.2}],
    "HardSigmoid": [{}, {"alpha": 0.1, "beta": 0.6}],
    "Swish": [{}, {"alpha": 1.5}],
    "Shrink": [{}, {"lambd": 2.0, "bias": 1.5}],
    "BatchNormalization": [{}, {"epsilon": 0.1}],
}
DTYPES = (
    "float32",
    "float64",
    "float16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)
# against whom ONNX's reference is wrong, or has nothing to say
REFERENCES: dict[str, Any] = {"Softsign": lambda x: x / (1 + np.abs(x))}
# float16 and cancellation
TOLERANCES = {"float32": (1e-5, 2e-6), "float64": (1e-6, 1e-6), "float16": (4e-3, 4e-3)}


def onnx_dtypes(name: str, index: int) -> list[str]:
    """The dtypes that ONNX allows for an input and NumPy knows."""
    schema = onnx.defs.get_schema(name, OPSET)
    allowed = schema.inputs[min(index, len(schema.inputs) - 1)].types
    names = {"float": "float32", "double": "float64"}
    found = {kind.removeprefix("tensor(").removesuffix(")") for kind in allowed}
    return [dtype for dtype in DTYPES if dtype in {names.get(kind, kind) for kind in found}]


def same_type(name: str) -> list[int]:
    """The inputs that must share one dtype: those without a type of their own."""
    types = [value.type_str for value in onnx.defs.get_schema(name, OPSET).inputs]
    types += [types[-1]] * 2  # the last of them may repeat
    return [index for index, kind in enumerate(types) if kind == types[_main(name)]]


def _main(name: str) -> int:
    return 1 if name == "Where" else 0


def cases(name: str, entry: Declaration) -> Iterator[Case]:
    """Every shape in the first dtype, every dtype in one shape, every attribute set in both."""
    arity = 2 if entry.variadic else len(entry.inputs)
    shapes = SHAPES.get(name) or BY_ARITY[arity]
    dtypes = onnx_dtypes(name, _main(name))
    first = "float32" if "float32" in dtypes else "int32" if "int32" in dtypes else dtypes[0]
    draw = Draw(len(name))
    for attributes in ATTRIBUTES.get(name, [{}]):
        for shape in shapes if attributes == ATTRIBUTES.get(name, [{}])[0] else shapes[-2:]:
            yield case(name, entry, draw, shape, first, attributes)
        for dtype in dtypes:
            if dtype != first:
                yield case(name, entry, draw, shapes[-2], dtype, attributes)


def case(name: str, entry: Declaration, draw: Draw, shapes: Shapes, dtype: str, attributes: dict[str, Any]) -> Case:
    """Inputs from the declared domain."""
    if name == "Mod" and np.dtype(dtype).kind == "f":
        attributes = {"fmod": 1}  # ONNX allows no other
    alike = same_type(name)
    inputs = []
    for index, (shape, (low, high)) in enumerate(zip(shapes, ranges_of(entry, len(shapes)), strict=True)):
        kind = dtype if index in alike else onnx_dtypes(name, index)[0]
        inputs.append(draw(*shape, low=low, high=high, dtype=kind))
    rtol, atol = TOLERANCES.get(dtype, (0, 0))
    reference = REFERENCES.get(name, "onnx")
    return Case(title(dtype, shapes, attributes), name, inputs, attributes, reference=reference, rtol=rtol, atol=atol)


def limits(name: str, dtype: Any, attributes: dict[str, Any] | None = None) -> Case:
    """Whole numbers at the ends of their range: results that overflow wrap around."""
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, info.max // 2, info.max - 1, info.max, 1, 3], dtype)
    given = [ends[:, None], ends] if len(LAYERS[name].inputs) == 2 or LAYERS[name].variadic else [ends]
    if name == "BitShift":
        given[1] = np.arange(7, dtype=dtype)
    if name in ("Div", "Mod"):
        given[1] = np.where(given[1] == 0, given[1].dtype.type(7), given[1])
    return Case(f"limits of {np.dtype(dtype)} {attributes or ''}", name, given, attributes or {}, rtol=0, atol=0)


_SIGNED, _UNSIGNED = (np.int8, np.int16), (np.uint8, np.uint16)
LIMITS = [
    *(limits(name, dtype) for name in ("Add", "Sub", "Mul", "BitwiseNot", "Sign") for dtype in _SIGNED + _UNSIGNED),
    *(limits(name, dtype) for name in ("Neg", "Abs") for dtype in _SIGNED),
    *(limits(name, dtype) for name in ("Div", "Mod", "Less", "Max") for dtype in _UNSIGNED),
    *(limits("BitShift", dtype, {"direction": way}) for way in ("LEFT", "RIGHT") for dtype in _UNSIGNED),
]

# perframe's layers that ONNX lacks: the formula with NumPy is their reference
OTHERS = [
    one
    for name, entry in registry().items()
    if entry.family == "elementwise" and not onnx.defs.has(name) and entry.origin.startswith("perframe.layers.")
    for one in formula_cases(entry, ATTRIBUTES.get(name, [{}]))
]

ALL = [one for name, entry in LAYERS.items() for one in cases(name, entry)] + LIMITS + OTHERS


@pytest.mark.parametrize("one", ALL, ids=str)
def test_elementwise(one: Case, backend: str, backend_context: Any) -> None:
    check(one, backend, backend_context)


def test_every_attribute_without_default_is_drawn() -> None:
    for name, entry in LAYERS.items():
        needed = {key for key, value in entry.attributes.items() if value is inspect.Parameter.empty}
        assert needed <= set(ATTRIBUTES.get(name, [{}])[0]), f"{name} wants {needed}: say them in ATTRIBUTES"
