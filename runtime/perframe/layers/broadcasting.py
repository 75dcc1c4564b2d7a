"""What makes a formula a layer: its shape rule, its operands' strides, its place in the registry."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perframe.errors import InferenceError
from perframe.layers.base import Attributes, Declaration, Known, register
from perframe.layers.entries import Entries, each
from perframe.layers.geometry import Ints, View, broadcast_strides, collapse
from perframe.tensor import DataType
from perframe.tensor.partial import PartialTensor, broadcast

Formula = Callable[..., Any]
Range = tuple[float, float]

_KINDS = {DataType.FLOAT32: "float", DataType.INT32: "int", DataType.INT64: "int", DataType.BOOL: "bool"}


@dataclass(frozen=True)
class Elementwise:
    """The form of an elementwise layer: where each operand's element lies, and the formula that joins them.

    `strides` are in elements, one tuple an operand. `parameters` are the formula's attributes, as floats in its order.
    """

    formula: Formula
    shape: Ints
    strides: tuple[Ints, ...]
    parameters: tuple[float, ...]
    kinds: tuple[str, ...]
    operands: tuple[int, ...]  # the inputs that are present
    converts: bool = False  # the values into another dtype

    def of_entries(self, inputs: Sequence[PartialTensor | None], output: PartialTensor) -> Entries:
        """The formula of what is known of each element's operands."""
        columns, dtypes = [], []
        for index, strides, kind in zip(self.operands, self.strides, self.kinds, strict=True):
            operand = inputs[index]
            assert operand is not None and operand.known is not None
            columns.append(View(self.shape, strides).of(operand.known).reshape(-1))
            counts = kind == "float" and not operand.dtype.is_float  # a formula of floats alone gets them as such
            dtypes.append(np.dtype(np.float32) if counts else operand.dtype.numpy)
        numbers = dict(zip(_parameters(self.formula), self.parameters, strict=True))
        return each(functools.partial(self.formula, **numbers), columns, dtypes, output.dtype)


def elementwise(
    *domain: Range,
    result: DataType | str | None = None,
    dtypes: str = "float",
    channelwise: Sequence[str] = (),
    choose: Callable[[Attributes, tuple[bool, ...], str], Formula | None] | None = None,
) -> Callable[[Formula], Declaration]:
    """Declare an elementwise layer by its formula.

    `domain` gives the range of each input (the last repeats) that tests draw from; `result` is the dtype of the
    output, or the name of the input that gives it (the first, unless said); `dtypes` says which of "float int bool"
    the formula takes (one of floats alone gets integers as floats); inputs in `channelwise`, all but the first, hold a
    value for each channel (axis 1). `choose(attributes, present, kind)` picks another formula than the declared one,
    for an attribute that selects and for absent inputs.
    """

    def declare(formula: Formula) -> Declaration:
        def infer(*inputs: PartialTensor | None, **attributes: Any) -> PartialTensor:
            given = [value for value in inputs if value is not None]
            if channelwise:
                _check_channels(given[0], given[1:])
                given = given[:1]
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
                shape = tuple(value.shape)
                if entry.inputs[index] in channelwise:
                    shape = (*shape, *(1,) * (len(target) - 2)) if len(target) > 1 else shape
                strides.append(broadcast_strides(shape, target))
            shape, collapsed = collapse(target, (broadcast_strides(target, target), *strides))
            names = [name for name in _parameters(chosen) if name in attributes]
            numbers = tuple(float(attributes[name]) for name in names)
            return Elementwise(chosen, shape, collapsed[1:], numbers, kinds, operands, result == "to")

        entry = Declaration(
            formula.__name__, "elementwise", infer, formula=formula, choose=choose, domain=domain, dtypes=dtypes
        )
        entry.form_of = form
        if result == "to":
            entry.add_attributes(to=(1, DataType))
        return register(entry)

    return declare


def _check_channels(x: PartialTensor, others: Sequence[PartialTensor]) -> None:
    """Raise InferenceError where what has a value for each channel of x has more or fewer."""
    channels = x.shape[1:2] if x.shape is not None else ()
    for value in others:
        if channels and value.shape is not None and not value.shape.may_be(channels):
            raise InferenceError(f"{value} does not broadcast to {x}: a number for each channel is expected")


@functools.cache
def _parameters(formula: Formula) -> list[str]:
    return [p.name for p in inspect.signature(formula).parameters.values() if p.kind is p.KEYWORD_ONLY]


def operand_kinds(dtypes: Sequence[DataType]) -> tuple[str, ...]:
    """The kinds in which a formula sees its operands: bool stays, the others become float if one of them is."""
    kinds = [_KINDS.get(dtype, "float" if dtype.is_float else "int") for dtype in dtypes]
    common = "float" if "float" in kinds else "int"
    return tuple("bool" if kind == "bool" else common for kind in kinds)
