"""The decorator that makes a formula a layer: a shape rule, the strides of its operands, and a declaration."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from perframe.errors import InferenceError, ModelError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import Attributes, Declaration, Known, full_name, register
from perframe.ir.form import Followed
from perframe.ir.formula import keywords
from perframe.ir.geometry import Ints, View, broadcast_strides, collapse
from perframe.ir.shape_arithmetic import Values, each, numbers_of
from perframe.ir.sizes.partial import PartialTensor, broadcast
from perframe.safety.records import dataclass
from perframe.tensor import DataType

Formula = Callable[..., Any]
Range = tuple[float, float]

_KINDS = {DataType.FLOAT32: "float", DataType.INT32: "int", DataType.INT64: "int", DataType.BOOL: "bool"}


@dataclass(frozen=True)
class Float8Rules:
    """The rules for numbers that float8 does not hold: with `saturate` they become its largest number, and `round_mode`
    picks the power of two for float8e8m0.
    """

    saturate: bool = True
    round_mode: str = "up"


@dataclass(frozen=True)
class Elementwise(Followed):
    """The form of an elementwise layer: the strides of its operands, and the formula that joins them.

    `strides` holds one tuple for each operand, in elements. `parameters` holds the formula's attributes as floats, in
    the formula's order.
    """

    formula: Formula
    shape: Ints
    strides: tuple[Ints, ...]
    parameters: tuple[float, ...]
    kinds: tuple[str, ...]
    operands: tuple[int, ...]  # the inputs that are present
    conversion: Float8Rules | None = None  # of a layer that converts values into another dtype

    def of_values(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Values:
        """Apply the formula to the values of the operands."""
        columns, dtypes = [], []
        present = [inputs[index] for index in self.operands]
        are_known = all([operand is not None and operand.value is not None for operand in present])
        for index, strides, kind in zip(self.operands, self.strides, self.kinds, strict=True):
            operand = inputs[index]
            assert operand is not None
            given = operand.value if are_known else numbers_of(operand)
            assert given is not None
            columns.append(View(self.shape, strides).of(given).reshape(-1))
            counts = kind == "float" and not operand.dtype.is_float  # a formula of floats only gets integers as floats
            dtypes.append(np.dtype(np.float32) if counts else operand.dtype.numpy)
        numbers = dict(zip(keywords(self.formula), self.parameters, strict=True))
        return each(functools.partial(self.formula, **numbers), columns, dtypes, output.dtype)


def elementwise(
    *ranges: Range,
    result: DataType | str | None = None,
    dtypes: str = "float",
    channelwise: Sequence[str] = (),
    single: Sequence[str] = (),
    choose: Callable[[Attributes, tuple[bool, ...], str], Formula | None] | None = None,
    strings: bool = False,
    domain: str = "",
) -> Callable[[Formula], Declaration]:
    """Declare an elementwise layer by its formula.

    - `ranges`: the range of each input, from which tests draw values; the last range repeats.
    - `result`: the dtype of the output, or the name of the input or attribute that gives it; by default the first
      input gives it.
    - `dtypes`: which of "float int bool" the formula takes; a formula of floats only gets integers as floats.
    - `channelwise`: the inputs that hold a value for each channel (axis 1); the first input cannot be one of them.
    - `single`: the inputs that hold one number, whatever their rank.
    - `choose(attributes, present, kind)`: picks a formula other than the declared one, for an attribute that selects
      and for absent inputs.
    - `strings`: inputs may be strings.
    - `domain`: that of the operator in ONNX models; by default it is ONNX's own.
    """

    def declare(formula: Formula) -> Declaration:
        def infer(*inputs: PartialTensor | None, **attributes: Any) -> PartialTensor:
            given = [value for value in inputs if value is not None]
            if channelwise:
                _check_channels(given[0], given[1:])
                given = given[:1]
            elif single:
                _check_single(entry, inputs, single)
                given = [
                    value for name, value in zip(entry.inputs, inputs, strict=False) if value and name not in single
                ]
            dtype = result
            if isinstance(dtype, str) and not isinstance(dtype, DataType):
                named = inputs[entry.inputs.index(dtype)] if dtype in entry.inputs else None
                dtype = named.dtype if named else DataType.of(attributes[dtype])
            return PartialTensor(dtype or given[0].dtype, broadcast(*(value.shape for value in given)))

        def form(inputs: Sequence[Known | None], outputs: Sequence[Known], **attributes: Any) -> Elementwise:
            present = tuple(value is not None for value in inputs)
            operands = tuple(index for index, value in enumerate(inputs) if value is not None)
            given = [value for value in inputs if value is not None]
            kinds = operand_kinds([value.dtype for value in given])
            if dtypes == "float":
                kinds = tuple("float" if kind == "int" else kind for kind in kinds)
            chosen = (choose(attributes, present, kinds[-1]) if choose else None) or formula
            target = outputs[0].shape
            strides = []
            for index, value in zip(operands, given, strict=True):
                shape = () if entry.inputs[index] in single else tuple(value.shape)
                if entry.inputs[index] in channelwise:
                    shape = (*shape, *(1,) * (len(target) - 2)) if len(target) > 1 else shape
                strides.append(broadcast_strides(shape, target))
            shape, collapsed = collapse(target, (broadcast_strides(target, target), *strides))
            names = [name for name in keywords(chosen) if name in attributes]
            numbers = tuple(float(attributes[name]) for name in names)
            conversion = Float8Rules(bool(attributes["saturate"]), attributes["round_mode"]) if result == "to" else None
            return Elementwise(chosen, shape, collapsed[1:], numbers, kinds, operands, conversion)

        name = full_name(formula.__name__, domain)
        entry = Declaration(name, "elementwise", infer, formula=formula, choose=choose, ranges=ranges, dtypes=dtypes)
        entry.form_of, entry.channelwise, entry.strings = form, tuple(channelwise), strings
        if result == "to":
            modes = Literal["up", "down", "nearest"]
            entry.add_attributes(to=(1, DataType), saturate=(1, Flag), round_mode=("up", modes))
        elif not (result is None or isinstance(result, DataType) or result in (*entry.inputs, *entry.attributes)):
            raise ModelError(f"{name}: result={result!r} is neither a DataType nor an input or an attribute")
        return register(entry)

    return declare


def _check_channels(x: PartialTensor, others: Sequence[PartialTensor]) -> None:
    """Raise InferenceError if one of `others` does not have one value for each channel of x."""
    channels = x.shape[1:2] if x.shape is not None else ()
    for value in others:
        if channels and value.shape is not None and not value.shape.may_be(channels):
            raise InferenceError(f"{value} does not broadcast to {x}: a number for each channel is expected")


def _check_single(entry: Declaration, inputs: Sequence[PartialTensor | None], single: Sequence[str]) -> None:
    """Raise InferenceError if one of the inputs that hold one number holds more or none."""
    for name, value in zip(entry.inputs, inputs, strict=False):
        if name in single and value is not None and value.shape is not None and value.shape.size not in (1, None):
            raise InferenceError(f"{name!r} is {value}, and must be one number")


def operand_kinds(dtypes: Sequence[DataType]) -> tuple[str, ...]:
    """Return the kinds in which a formula gets its operands: bool stays, and one float makes the others float."""
    kinds = [_KINDS.get(dtype, "float" if dtype.is_float else "int") for dtype in dtypes]
    common = "float" if "float" in kinds else "int"
    return tuple("bool" if kind == "bool" else common for kind in kinds)
