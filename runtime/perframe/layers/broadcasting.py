"""What makes a formula a layer: its shape rule, its operands' strides, its place in the registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perframe.layers.base import Attributes, Declaration, Known, register
from perframe.layers.geometry import Ints, broadcast_strides, collapse
from perframe.spec import PartialTensor, broadcast
from perframe.tensor import DataType

Formula = Callable[..., Any]
Range = tuple[float, float]

_WHOLE = (DataType.INT64, DataType.INT32, DataType.BOOL)
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
    the formula takes (one of floats alone gets integers as floats); inputs in `channelwise` hold a value for each
    channel (axis 1). `choose(attributes, present, kind)` picks another formula than the declared one, for an attribute
    that selects and for absent inputs.
    """

    def declare(formula: Formula) -> Declaration:
        def infer(*inputs: PartialTensor | None, **attributes: Any) -> PartialTensor:
            given = [value for value in inputs if value is not None]
            if channelwise:
                given = [value for value, name in zip(given, entry.inputs, strict=False) if name not in channelwise]
            dtype = result
            if isinstance(dtype, str) and not isinstance(dtype, DataType):
                named = inputs[entry.inputs.index(dtype)] if dtype in entry.inputs else None
                dtype = named.dtype if named else DataType.of(attributes[dtype])
            made = PartialTensor(dtype or given[0].dtype, broadcast(*(value.shape for value in given)))
            return made if channelwise else _known(made, inputs, attributes)

        def _known(
            made: PartialTensor, inputs: Sequence[PartialTensor | None], attributes: Attributes
        ) -> PartialTensor:
            """Shape arithmetic: the formula of small whole numbers that are known already."""
            given = [value for value in inputs if value is not None]
            small = made.shape is not None and made.shape.is_static and len(made.shape) <= 1
            if not small or made.shape is None or any(value.dtype not in _WHOLE for value in (made, *given)):
                return made
            numbers = [value.ints() for value in given]
            if any(known is None for known in numbers):
                return made
            arrays = [
                np.array(known, value.dtype.numpy).reshape(value.shape.to_shape() if value.shape is not None else ())
                for known, value in zip(numbers, given, strict=True)
            ]
            present = tuple(value is not None for value in inputs)
            kind = operand_kinds([value.dtype for value in given])[-1]
            chosen = (choose(attributes, present, kind) if choose else None) or formula
            with np.errstate(all="ignore"):
                result = chosen(
                    *arrays, **{name: attributes[name] for name in _parameters(chosen) if name in attributes}
                )
            known = np.broadcast_to(result, made.shape.to_shape()).astype(made.dtype.numpy)
            return replace(made, partial=tuple(int(number) for number in known.ravel()))

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
            return Elementwise(chosen, shape, collapsed[1:], numbers, kinds, operands)

        entry = Declaration(
            formula.__name__, "elementwise", infer, formula=formula, choose=choose, domain=domain, dtypes=dtypes
        )
        entry.form_of = form
        if result == "to":
            entry.attributes["to"] = 1
        return register(entry)

    return declare


def _parameters(formula: Formula) -> list[str]:
    return [p.name for p in inspect.signature(formula).parameters.values() if p.kind is p.KEYWORD_ONLY]


def operand_kinds(dtypes: Sequence[DataType]) -> tuple[str, ...]:
    """The kinds in which a formula sees its operands: bool stays, the others become float if one of them is."""
    kinds = [_KINDS.get(dtype, "float" if dtype.is_float else "int") for dtype in dtypes]
    common = "float" if "float" in kinds else "int"
    return tuple("bool" if kind == "bool" else common for kind in kinds)
