"""The numbers that decide shapes, computed on the host before the plan that needs them.

A loop's body that cuts or resizes by its inputs' values is planned for a few numbers that its shape arithmetic gives,
and not for all values that this arithmetic reads: plans are reused more often, and templates can follow the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from perframe.errors import InputError
from perframe.execution.machine import Machine, Values, downloaded
from perframe.ir import Layer, Subgraph, Value
from perframe.ir.sizes.open_dims import Shapes
from perframe.ir.sizes.partial import PartialTensor
from perframe.ir.sizes.size import specialized
from perframe.safety.records import dataclass
from perframe.tensor import Array, DataType

MAX_KNOWN = 64  # sets of input shapes for which the arithmetic is kept
MAX_HOST_VALUES = 1024  # an input that decides shapes is part of a plan's key, up to this many elements
MAX_FOLLOWED = 64  # numbers that templates follow: dims, and elements of inputs that decide shapes
LARGEST, MOST_ELEMENTS = 1 << 14, 1 << 40  # a number that templates follow, and the product of those of one input


def host_value(value: Any) -> Array:
    """Return the values of an input that decides shapes. Waits for them. Raises InputError if they are too many."""
    array = np.asarray(downloaded(value))
    if array.size > MAX_HOST_VALUES:
        raise InputError(f"an input that decides shapes may have {MAX_HOST_VALUES} elements, and got {array.size}")
    return array


def key_of(shapes: Shapes, decisive: Iterable[Array]) -> tuple[Any, ...]:
    """Return the key of the plan for these shapes, and for these values of the inputs that decide shapes."""
    return (shapes, *((value.tobytes(), value.shape) for value in decisive))


def values_in(key: Any, decisive: Sequence[Value]) -> dict[str, Array | None]:
    """Return the values in a key of the inputs that decide shapes; None for each if there is no key."""
    if key is None or not decisive:
        return dict.fromkeys(value.name for value in decisive)
    return {
        value.name: np.frombuffer(data, value.dtype.numpy).reshape(shape)
        for value, (data, shape) in zip(decisive, key[1:], strict=True)
    }


def can_follow(part: Subgraph) -> bool:
    """Whether templates can follow the values of the inputs that decide shapes: these are integers, and layers take
    them as sizes or positions, and not as axes and the like.
    """
    known = set(part.decisive_inputs)
    for layer in part.layers if known else ():
        read = [index for index, value in enumerate(layer.inputs) if value in known]
        if any(layer.declaration.is_host(index) and not layer.declaration.is_followed(index) for index in read):
            return False
        if read and layer.on_host:
            known.update(layer.results)
    return all(value.dtype in (DataType.INT32, DataType.INT64) for value in part.decisive_inputs)


def sizes_of(shapes: Shapes, decisive: Iterable[Array]) -> Shapes | None:
    """Return the shapes, and behind them the numbers in the inputs that decide shapes, as if these were shapes too.
    None if these are too many, or so large that arithmetic with them might overflow.
    """
    numbers = [array.ravel().tolist() for array in decisive]
    if not numbers:
        return shapes
    if sum(map(len, (*shapes, *numbers))) > MAX_FOLLOWED:
        return None
    fits = all(
        all(abs(number) <= LARGEST for number in row)
        and math.prod([max(1, abs(number)) for number in row]) <= MOST_ELEMENTS
        for row in numbers
    )
    return (*shapes, *numbers) if fits else None


def traced_values(dtype: DataType, shape: Sequence[int], numbers: Sequence[int]) -> Array:
    """Return the values of an input that decides shapes, some of which may be sizes of a trace."""
    values = PartialTensor.of_values(dtype, numbers).values
    assert values is not None
    return values.reshape([specialized(dim) for dim in shape])


@dataclass(frozen=True)
class ShapeArithmetic:
    """Layers that compute shapes from values, and the values that they read besides constants."""

    layers: Sequence[Layer]
    read: Sequence[Value]


def split_arithmetic(layers: Sequence[Layer], decisive: Sequence[Value]) -> tuple[ShapeArithmetic | None, list[Layer]]:
    """Split layers into those that compute shapes from `decisive` values alone, and the others, both in run order."""
    known, chosen, others = set(decisive), list[Layer](), list[Layer]()
    for layer in layers:
        given = [
            (index, value) for index, value in enumerate(layer.inputs) if value is not None and value.constant is None
        ]
        may = layer.on_host and layer.declaration.pure and given
        if may and all(value in known and not layer.declaration.is_host(index) for index, value in given):
            known.update(layer.results)
            chosen.append(layer)
        else:
            others.append(layer)
    read = [value for value in decisive if any(layer in value.users for layer in chosen)]
    return (ShapeArithmetic(chosen, read) if chosen else None), others


class DecidingPart:
    """Shape arithmetic, computed by NumPy. Waits for values that are still pending, or lie on a GPU."""

    def __init__(self, arithmetic: ShapeArithmetic, machine: Machine) -> None:
        self._layers, self._machine = arithmetic.layers, machine
        self._names = [value.name for value in arithmetic.read]
        self._known: dict[Any, list[Callable[[Sequence[Any]], list[Any]]]] = {}  # by the shapes of what it reads

    def run_whole(self, values: Values) -> None:
        """Compute, and add all results as arrays."""
        arrays: Values = {name: np.asarray(downloaded(values[name])) for name in self._names}
        key = tuple([array.shape for array in arrays.values()])
        functions = self._known.get(key)
        made = list[Callable[[Sequence[Any]], list[Any]]]()
        for index, layer in enumerate(self._layers):
            given = [
                None if value is None else arrays[value.name] if value.constant is None else value.constant
                for value in layer.inputs
            ]
            if functions is None:
                made.append(self._machine.evaluation(layer, given))
            results = (made if functions is None else functions)[index](given)
            arrays.update(
                [(value.name, x) for value, x in zip(layer.outputs, results, strict=False) if value is not None]
            )
        values.update([item for item in arrays.items() if item[0] not in self._names])
        if functions is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[key] = made

    def advance(self, values: Values) -> Iterator[str]:
        """Compute all, and yield the name of the last layer."""
        self.run_whole(values)
        yield self._layers[-1].name

    def planned_parts(self) -> Iterator[Any]:
        """Yield nothing: the part has no plan."""
        yield from ()

    def releasing(self) -> Iterator[None]:
        """Yield nothing: the part holds no memory."""
        yield from ()
