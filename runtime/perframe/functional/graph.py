"""The graph of functional tensors, and the model that it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.backends import evaluator
from perframe.errors import InputError
from perframe.functional.calls import graph_of
from perframe.functional.tensor import FunctionalTensor, Given, Origin, to_tensor
from perframe.model import Layer, Model, Names, Value
from perframe.passes import optimize as run_passes
from perframe.passes.prepared import freeze
from perframe.sizes.partial import Dim, DynamicTensorShape, PartialTensor
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
        return tuple(self._add(value) for value in model.inputs)

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
            model = _Assembly(self._inputs, self._outputs).model(self.name)
        finally:
            self._outputs = before
        model.verify()
        if optimize:
            run_passes(model, evaluator())
        freeze(model)
        return model

    def _add(self, value: Value) -> FunctionalTensor:
        if any(value.name == tensor.name for tensor in self._inputs) or value.name in self._outputs:
            raise InputError(f"there already is an input or an output {value.name!r}: choose another name")
        tensor = FunctionalTensor(value.spec, graph=self, name=_checked(value.name))
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
        if tensor.origin is not None and tensor.name and tensor.name not in taken:
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


class _Assembly:
    """Turns the origins behind some outputs into a model."""

    def __init__(self, inputs: Sequence[FunctionalTensor], outputs: dict[str, FunctionalTensor]) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.titles = Names()
        self.names = Names((*(tensor.name for tensor in inputs), *outputs))
        self.made: dict[tuple[int, int], str] = {}  # names of values, by origin and index
        self.constants: dict[str, NDArray[Any]] = {}
        self.constant_names: dict[int, str] = {}  # by the array's id; the tensors keep the arrays alive
        self.layers: list[Layer] = []

    def model(self, name: str) -> Model:
        """Return the model."""
        graph_of(list(self.outputs.values()))
        for output, tensor in self.outputs.items():
            if tensor.origin is not None:
                self.made.setdefault((tensor.origin.number, tensor.index), output)
        for origin in _origins(self.outputs.values()):
            self.layers.append(self._layer(origin))
        for output, tensor in self.outputs.items():
            source = self._name(tensor)
            if source != output:  # an input, a constant, or the second name of a value
                self.layers.append(Layer("Identity", self.titles.free(output), [source], [output]))
        inputs = [_value(tensor.name, tensor.spec) for tensor in self.inputs]
        return Model(inputs, [_value(*pair) for pair in self._specs()], self.layers, self.constants, name)

    def _specs(self) -> list[tuple[str, PartialTensor]]:
        return [(name, tensor.spec) for name, tensor in self.outputs.items()]

    def _layer(self, origin: Origin) -> Layer:
        outputs = [self._output(origin, index, hint) for index, hint in enumerate(origin.hints)]
        inputs = ["" if tensor is None else self._name(tensor) for tensor in origin.inputs]
        title = self.titles.free(origin.title)
        attributes = copied_attributes(origin.attributes)
        return Layer(
            origin.op, title, inputs, outputs, attributes, origin.epilogue, origin.on_host, origin.channels_last
        )

    def _output(self, origin: Origin, index: int, hint: str) -> str:
        key = (origin.number, index)
        if hint and key not in self.made:
            self.made[key] = self.names.free(hint)
        return self.made.get(key, "")

    def _name(self, tensor: FunctionalTensor) -> str:
        """Return the name of a value. A constant becomes one of the model's the first time."""
        if tensor.origin is not None:
            return self.made[tensor.origin.number, tensor.index]
        array = tensor.spec.value
        if array is None:
            return tensor.name
        if id(array) not in self.constant_names:
            name = self.names.free(tensor.name or "constant")
            self.constant_names[id(array)], self.constants[name] = name, array
        return self.constant_names[id(array)]


def _origins(tensors: Any) -> list[Origin]:
    """Return the origins that the tensors need, in the order of a run."""
    found: dict[int, Origin] = {}
    waiting = [tensor.origin for tensor in tensors if tensor.origin is not None]
    while waiting:
        origin = waiting.pop()
        if origin.number not in found:
            found[origin.number] = origin
            waiting += [tensor.origin for tensor in origin.inputs if tensor is not None and tensor.origin is not None]
    return [found[number] for number in sorted(found)]


def _value(name: str, spec: PartialTensor) -> Value:
    return Value(name, spec.dtype, spec.shape, spec.kind, spec.element_kind)


def copied_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes whose bodies, which are models that passes change, are copies with the same constants."""
    made = dict(attributes)
    if "bodies" in made:
        made["bodies"] = {name: _copied(body) for name, body in made["bodies"].items()}
    return made


def _copied(model: Model) -> Model:
    layers = [
        Layer(
            layer.op,
            layer.name,
            list(layer.inputs),
            list(layer.outputs),
            copied_attributes(layer.attributes),
            layer.epilogue,
            layer.on_host,
            layer.channels_last,
        )
        for layer in model.layers
    ]
    return Model(model.inputs, model.outputs, layers, model.constants, model.name)
