"""The graph of functional tensors, and the model that it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from perframe.backends import evaluator
from perframe.errors import InputError
from perframe.functional.calls import graph_of
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor
from perframe.ir import Layer, Model, Names, Value
from perframe.ir.model import copy_bodies
from perframe.ir.sizes.partial import Dim, DynamicTensorShape
from perframe.passes import optimize as run_passes
from perframe.passes.prepared import freeze
from perframe.tensor import DataType

_MAX_NAME = 1000


class FunctionalGraph:
    """A model that is built in code: add inputs, compute with `pf.functional`, and compile.

    ```python
    graph = pf.FunctionalGraph()
    x = graph.add_input(pf.DataType.FLOAT32, (1, 3, "h", "w"), "x")
    model = graph.compile(scores=pf.functional.softmax(x * 2 + 1, dim=1))
    ```
    """

    def __init__(self, name: str = "model") -> None:
        self.name = name
        self.metadata: dict[str, str] = {}  # texts for the compiled model; `forward` adds those of its model
        self._inputs: list[FunctionalTensor] = []
        self._outputs: dict[str, FunctionalTensor] = {}

    @property
    def inputs(self) -> tuple[FunctionalTensor, ...]:
        """The inputs, in the order in which they were added."""
        return tuple(tensor.fixed() for tensor in self._inputs)

    def add_input(
        self, dtype: DataType | str, shape: Sequence[Dim] | None, name: str | None = None
    ) -> FunctionalTensor:
        """Add an input. Dims are numbers, names, or None; a `shape` of None leaves the number of dims open.

        Raises InputError for a dtype, a dim or a name that a model's input cannot have.
        """
        chosen = f"input_{len(self._inputs)}" if name is None else name
        return self._add(Value(chosen, DataType.of(dtype), None if shape is None else _shape(shape)))

    def add_inputs(self, model: Model) -> tuple[FunctionalTensor, ...]:
        """Add inputs like those of a model: names, dtypes and shapes. Raises InputError for a name that is taken."""
        return tuple(self._add(Value.of(value.name, value.spec)) for value in model.inputs)

    def add_output(self, output: Given, name: str | None = None) -> None:
        """Add an output of the model that `compile` makes. Raises InputError for a name that is taken."""
        tensor = self._own(output)
        chosen = self._free_output(tensor) if name is None else _checked(name)
        if chosen in self._outputs or any(chosen == tensor.name for tensor in self._inputs):
            raise InputError(f"there already is an input or an output {chosen!r}: choose another name")
        self._outputs[chosen] = tensor.fixed()

    def add_outputs(self, *outputs: Given, **named: Given) -> None:
        """Add several outputs: unnamed ones, then those that arguments name."""
        for output in outputs:
            self.add_output(output)
        for name, output in named.items():
            self.add_output(output, name)

    def compile(self, *outputs: Given, optimize: bool = True, **named: Given) -> Model:
        """Return a model with the outputs that were added and those given here; the graph keeps only the former.

        `compile(y, scores=z)` calls an output "scores". `optimize=False` leaves the layers as they were built. Raises
        InputError if there are no outputs, or if one is of another graph.
        """
        before = dict(self._outputs)
        try:
            self.add_outputs(*outputs, **named)
            if not self._outputs:
                raise InputError("a model needs an output: compile(y), compile(scores=y) or add_output(y, 'scores')")
            model = _model(self.name, self._inputs, self._outputs)
        finally:
            self._outputs = before
        model.metadata = dict(self.metadata)
        model.verify()
        if optimize:
            run_passes(model, evaluator())
        freeze(model)
        return model

    def _add(self, value: Value) -> FunctionalTensor:
        if any(value.name == tensor.name for tensor in self._inputs) or value.name in self._outputs:
            raise InputError(f"there already is an input or an output {value.name!r}: choose another name")
        _checked(value.name)
        tensor = FunctionalTensor(value, self, name=value.name)
        self._inputs.append(tensor)
        return tensor.fixed()

    def _own(self, output: Given) -> FunctionalTensor:
        tensor = to_tensor(output)
        if tensor.graph not in (None, self):
            raise InputError(f"{tensor} belongs to another graph: an output is computed from its own graph's inputs")
        return tensor

    def _free_output(self, tensor: FunctionalTensor) -> str:
        """Return a name for an output: the one that a model inside gave it, else "output_0", "output_1", ..."""
        taken = {*self._outputs, *(tensor.name for tensor in self._inputs)}
        if tensor.value.producer is not None and tensor.name and tensor.name not in taken:
            return tensor.name
        numbers = (f"output_{at}" for at in range(len(self._outputs), len(taken) + len(self._outputs) + 1))
        return next(name for name in numbers if name not in taken)

    def __repr__(self) -> str:
        return f"FunctionalGraph({self.name!r}, {len(self._inputs)} inputs, {len(self._outputs)} outputs)"


def _shape(dims: Sequence[Dim]) -> DynamicTensorShape:
    """Return dims as a shape. Raises InputError for a dim that is no size, no name and not None."""
    if isinstance(dims, (str, int)):
        raise InputError(f"a shape is a list of dims, such as (1, 3, 'h', 'w'), not {dims!r}")
    for dim in dims:
        whole = isinstance(dim, (int, np.integer)) and not isinstance(dim, bool) and 0 <= dim < 1 << 31
        if not (whole or dim is None or (isinstance(dim, str) and dim)):
            raise InputError(f"a dim is a number from 0, a name or None, not {dim!r}")
    return DynamicTensorShape(dims)


def _checked(name: str) -> str:
    """Return a name. Raises InputError if an input or an output cannot have it."""
    if not isinstance(name, str) or not name or len(name) > _MAX_NAME:
        raise InputError(f"the name of an input or an output is a text of 1 to {_MAX_NAME} letters, not {name!r:.80}")
    return name


def _model(name: str, inputs: Sequence[FunctionalTensor], outputs: Mapping[str, FunctionalTensor]) -> Model:
    """Return a model of copies of the layers that outputs need; the graph's own layers stay as they are."""
    graph_of(list(outputs.values()))
    copies = {tensor.value: Value.of(tensor.name, tensor.spec) for tensor in inputs}
    made = list(copies.values())
    for output, tensor in outputs.items():
        if tensor.value.producer is not None and tensor.value not in copies:
            copies[tensor.value] = Value.of(output, tensor.spec)
    layers, titles = list[Layer](), Names()
    arrays: dict[int, Value] = {}  # constants by their arrays' ids; the tensors keep the arrays alive
    for layer in _needed(outputs.values()):
        for value in (*layer.operands, *layer.results):
            if value not in copies:
                copies[value] = _copied(value, arrays)
        layers.append(layer.copy(copies))
        layers[-1].name = titles.free(layer.name)
        copy_bodies(layers[-1])
    results = list[Value]()
    for output, tensor in outputs.items():
        source = copies.get(tensor.value) or _copied(tensor.value, arrays)
        if source.name != output:  # an input, a constant, or the second name of a value
            declared = Value.of(output, tensor.spec)
            layers.append(Layer("Identity", titles.free(output), [source], [declared]))
            source = declared
        results.append(source)
    return Model(made, results, layers, name=name)


def _copied(value: Value, arrays: dict[int, Value]) -> Value:
    """Return a value of the model. Constants of one array are one value."""
    if value.constant is None:
        return Value(value.name)
    return arrays.setdefault(id(value.constant), Value(value.name or "constant", constant=value.constant))


def _needed(tensors: Iterable[FunctionalTensor]) -> list[Layer]:
    """Return the layers that make these tensors, in the order in which they were made."""
    found: set[Layer] = set()
    waiting = [tensor.value.producer for tensor in tensors]
    while waiting:
        layer = waiting.pop()
        if layer is not None and layer not in found:
            found.add(layer)
            waiting += [value.producer for value in layer.operands]
    return sorted(found, key=lambda layer: layer.serial)
