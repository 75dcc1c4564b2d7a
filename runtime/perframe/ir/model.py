"""A model: the graph of its values and layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from weakref import ref

import numpy as np

from perframe.errors import ModelError
from perframe.ir.dims import check_dims, shape_with
from perframe.ir.inference import Inference
from perframe.ir.layer import Layer, Value
from perframe.ir.linking import linked
from perframe.ir.order import Order
from perframe.ir.report import OptimizationReport
from perframe.ir.sizes.partial import PartialTensor
from perframe.safety import notebooks
from perframe.safety.wording import counted, did_you_mean
from perframe.tensor import Array
from perframe.tensor.background import in_turns, take_turns

Evaluate = Callable[[Layer, Sequence[Array | None]], list[Array]]


class Model:
    """A network that can be optimized, saved, and run by a worker. Passes change it; workers only read it.

    The model keeps the producers and users of its values, and their names unique. A layer belongs to one model.
    """

    def __init__(
        self,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        layers: Sequence[Layer],
        constants: Mapping[str, Array] = MappingProxyType({}),
        name: str = "model",
    ) -> None:
        """`layers` stand in run order. Where a layer or an output has only a name, the value of that name is meant.

        Layers and inputs of another model are copied.
        """
        self.name = name
        self._outputs: tuple[Value, ...] = ()
        self._order = Order()
        self.producer = ""  # the program that made the file, with its version
        self.opsets: dict[str, int] = {}  # of the file, by domain
        self.metadata: dict[str, str] = {}  # texts of the file by name, such as the names of classes
        self.fixed_inputs: frozenset[str] = frozenset()  # inputs of the file that have a value there: constants here
        self.optimized = False  # whether all passes have run; set to False after editing layers
        self.preparations: int | None = None  # the passes of a backend that may change it, in number; None for all
        self.report: OptimizationReport | None = None  # of the passes; None if they did not run
        self.check_file: Callable[[], None] | None = None  # raises ModelError if a mapped file has changed in place
        self.inference = Inference()
        self._named: dict[str, ref[Value]] = {}
        self.inputs, made, own = linked(inputs, outputs, layers, constants)
        self._named.update({value.name: ref(value) for value in (*self.inputs, *made)})
        self._counts: dict[str, int] = {}  # the last number that a name got to become a free one
        self.layers = own
        self.outputs = made

    # --- what it holds ---

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The values that it outputs, in order."""
        return self._outputs

    @outputs.setter
    def outputs(self, values: Sequence[Value]) -> None:
        for value in self._outputs:
            value.is_output = False
        self._outputs = tuple(values)
        for value in self._outputs:
            value.is_output = True

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, in order."""
        return [value.name for value in self._outputs]

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers in run order."""
        return self._order.layers

    @layers.setter
    def layers(self, layers: Sequence[Layer]) -> None:
        kept, before = set(layers), self.layers
        for layer in before:
            if layer not in kept:
                layer.unlink()
        self._order = Order(layers)
        known = set(before)
        for layer in layers:
            if layer not in known:
                self._link(layer)

    def walk(self) -> Iterator[Layer]:
        """Yield the layers in run order, without those that are removed meanwhile."""
        for layer in in_turns(self.layers):
            if layer.is_linked:
                yield layer

    @property
    def constants(self) -> Mapping[str, Array]:
        """The arrays of all constants that layers read or the model outputs, by name."""
        pairs = ((value.name, value.constant) for value in self.constant_values)
        return MappingProxyType({name: array for name, array in pairs if array is not None})

    @property
    def constant_values(self) -> list[Value]:
        """The constants that layers read or the model outputs."""
        read = [value for layer in self.layers for value in layer.operands if value._constant is not None]
        return list(dict.fromkeys([*read, *(value for value in self._outputs if value._constant is not None)]))

    def value(self, name: str) -> Value:
        """Return the value of this name. Raises ModelError if there is none."""
        found = self._holder(name)
        if found is None or found.name != name or not (found.is_live or found in self.inputs):
            raise ModelError(f"{self.name} has no value named {name!r}")
        return found

    @property
    def parameter_count(self) -> int:
        """The number of elements of all constants."""
        return sum(int(np.size(value)) for value in self.constants.values())

    # --- changes ---

    def insert(self, *layers: Layer, before: Layer | None = None, after: Layer | None = None) -> None:
        """Add layers before or after one of the model's layers, or at the end."""
        beside = before or after
        if beside is None:
            self._order.append(layers)
        else:
            self._order.insert(beside, layers, after=before is None)
        for layer in layers:
            self._link(layer)

    def remove(self, *layers: Layer) -> None:
        """Remove layers whose outputs no layer needs any more, or another layer makes."""
        for layer in layers:
            self._order.remove(layer)
            layer.unlink()

    def replace(self, old: Layer, *new: Layer) -> None:
        """Put layers at the place of another one. They may make its outputs."""
        self._order.replace(old, new)
        old.unlink()
        for layer in new:
            self._link(layer)

    def absorb(self, kept: Layer, absorbed: Layer) -> None:
        """Remove `absorbed`, which reads the result of `kept`. `kept` takes over its first output and its position."""
        result = absorbed.output
        self._order.remove(kept)
        self._order.replace(absorbed, [kept])
        absorbed.unlink()
        kept.outputs = [result, *kept.outputs[1:]]

    def replace_uses(self, old: Value, new: Value) -> None:
        """Make every layer that reads `old` read `new`. Outputs of the model stay."""
        for layer in list(old.users):
            layer.replace_input(old, new)

    def add_constant(self, name: str, array: Array) -> Value:
        """Return a new constant with a free name like `name`. It is part of the model once a layer reads it."""
        value = Value(name, constant=array)
        self._name(value)
        return value

    def rename(self, value: Value, name: str) -> None:
        """Give a value this name, or a free one like it. Its old name is free then."""
        self._named.pop(value.name, None)
        value.name = name
        self._name(value)

    def _link(self, layer: Layer) -> None:
        for value in (*layer.operands, *layer.results):
            if self._holder(value.name) is not value:
                self._name(value)
        layer.link()

    def _name(self, value: Value) -> None:
        """Give a value a name that no other value of the model has. Inputs and outputs keep theirs."""
        name = value.name
        while (owner := self._holder(value.name)) is not None and owner is not value and self._owns(owner):
            count = self._counts[name] = self._counts.get(name, 0) + 1  # not from 1 again: that takes quadratic time
            value.name = f"{name}_{count}"
        self._named[value.name] = ref(value)

    def _holder(self, name: str) -> Value | None:
        """The value that got this name last, if it still exists."""
        held = self._named.get(name)
        return None if held is None else held()

    def _owns(self, value: Value) -> bool:
        return value.is_live or value in self.inputs

    def copy(self, with_bodies: bool = False) -> Model:
        """Return a copy of values and layers. Constants are the same arrays; bodies too are copied only if asked."""
        read = [value for layer in self.layers for value in (*layer.operands, *layer.results)]
        copies = {value: _copy(value) for value in dict.fromkeys([*self.inputs, *read, *self._outputs])}
        layers = [layer.copy(copies) for layer in self.layers]
        if with_bodies:
            for layer in layers:
                copy_bodies(layer)
        made = Model([copies[value] for value in self.inputs], (), (), name=self.name)
        made._named.update({copy.name: ref(copy) for copy in copies.values()})  # no name is taken twice
        made._order = Order(layers)
        for layer in layers:
            layer.link()
        made.outputs = [copies[value] for value in self._outputs]
        made.inference = self.inference.copied(zip(self.layers, layers, strict=True))
        made.preparations, made.metadata = self.preparations, dict(self.metadata)
        return made

    def take_over(self, other: Model) -> None:
        """Take the values and layers of another model, which is not used any more."""
        self.inputs, self._outputs = other.inputs, other._outputs
        self._order, self._named, self._counts = other._order, other._named, other._counts
        self.inference = other.inference

    def fix_dims(self, dims: Mapping[str, int]) -> None:
        """Fix open dims of the inputs, and dims of the outputs that have the same names. A dim without a name is called
        INPUT:AXIS.

        Raises ModelError for a name that no input has, and for a value that is not a size.
        """
        check_dims(self.name, self.inputs, dims)
        for value in self.inputs:
            if value.declared is not None:
                value.declared = value.declared.with_shape(shape_with(value, dims))
        for value in self._outputs:
            declared = value.declared
            if declared is not None and declared.shape is not None:
                value.declared = declared.with_shape(declared.shape.with_dims(dims))

    def keep_outputs(self, names: Sequence[str]) -> None:
        """Make these values the outputs, in this order: outputs, or intermediate values. The layers that no output
        needs go with the next pass. Raises ModelError for any other name.
        """
        if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
            raise ModelError(f"outputs are names of values, such as ['scores'], not {names!r}")
        made = {value.name: value for layer in self.layers for value in layer.results}
        made |= {value.name: value for value in self._outputs}
        unknown = [name for name in names if name not in made]
        if unknown:
            raise ModelError(
                f"{self.name} makes no value named {', '.join(map(repr, unknown))}: {did_you_mean(unknown[0], made)}"
                f"its outputs are {', '.join(self.output_names)}"
            )
        if len(set(names)) < len(names):
            raise ModelError(f"an output is named twice: {', '.join(names)}")
        kept = [made[name] for name in names]
        if any(value.declared is None for value in kept):
            self.infer()
        for value in kept:
            value.declared = value.declared or value.spec
        self.outputs = kept

    # --- shapes ---

    def infer(self) -> None:
        """Infer the spec of every value. Raises InferenceError."""
        self.inference.infer(self.layers)

    def specs(self, known: Mapping[Value, PartialTensor] = MappingProxyType({})) -> dict[Value, PartialTensor]:
        """Return the spec of every value; `known` refines those of some, such as the inputs. Raises InferenceError."""
        specs = self.inference.specs(self.layers, {value: value.spec for value in self.inputs} | dict(known))
        return specs | {value: value.spec for value in self._outputs if value not in specs}

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Remember inferred specs within the `with` block. No array may be changed in place there.

        After it, the specs of read-only constants and attributes stay known.
        """
        outer, self.inference.remembers = self.inference.remembers, True
        try:
            yield
        finally:
            if not outer:
                self.inference.forget(but=self.layers)

    def verify(self) -> None:
        """Raise ModelError if a value is read before it is made, made twice, or missing, or if links are wrong."""
        known = set(self.inputs)
        names: dict[str, Value] = {value.name: value for value in self.inputs}
        for layer in in_turns(self.layers):
            if not known.issuperset(layer.operands):
                unmade = [value for value in layer.operands if value not in known and value.constant is None]
                if unmade:
                    raise ModelError(
                        f"{self.name}: layer {layer.name!r} ({layer.op}) reads {unmade[0].name!r}, which no earlier "
                        "layer makes"
                    )
                known.update(layer.operands)
            for value in layer.operands:
                if layer not in value.users:
                    raise ModelError(f"{self.name}: {value.name!r} does not know that layer {layer.name!r} reads it")
            for value in layer.results:
                if value in known or names.setdefault(value.name, value) is not value or value.producer is not layer:
                    raise ModelError(
                        f"{self.name}: {value.name!r} is made twice, the second time by layer {layer.name!r}"
                    )
                known.add(value)
        missing = [value.name for value in self._outputs if value not in known and value.constant is None]
        if missing:
            raise ModelError(f"{self.name}: no layer makes the output {missing[0]!r}")

    def _repr_html_(self) -> str | None:
        """The graph page, for notebooks."""
        page = notebooks.pages.get("Model")
        return None if page is None else page(self)

    def __repr__(self) -> str:
        return (
            f"Model({self.name!r}, {counted(len(self.layers), 'layer')}, {counted(self.parameter_count, 'parameter')})"
        )


def _copy(value: Value) -> Value:
    take_turns()
    copy = Value(value.name, constant=value.constant)
    copy.declared, copy.is_half = value.declared, value.is_half
    if value.constant is not None:
        copy._spec = value._spec  # other specs change if the inputs of the copy are declared anew
    return copy


def copy_bodies(layer: Layer) -> None:
    """Give a layer copies of its bodies, with the same constants."""
    if "bodies" in layer.attributes:
        copies = {name: body.copy(with_bodies=True) for name, body in layer.inner_models.items()}
        layer.attributes["bodies"] = copies
