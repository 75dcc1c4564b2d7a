"""Layers and values, the nodes and edges of a model: each knows its neighbors."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perframe.errors import InferenceError, ModelError, PerframeError
from perframe.ir.channels_last import Seen, channels_last_outputs
from perframe.ir.declaration import FOUND, Declaration, Known, declaration
from perframe.ir.epilogue import Stage
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.tensor import Array, DataType
from perframe.tensor.background import take_turns

_serials = itertools.count()


class Value:
    """A model's input, output or constant, or a result between two layers.

    `producer` is the layer that makes it, and `users` are the layers that read it, each once; the model keeps both.
    `constant` holds the array of a constant. `declared` holds what a file or a user declares of an input or an output:
    its dtype and shape (None if the rank is unknown). `is_half` says of a float32 value whether the file holds it in
    float16, so that a GPU may; None for a value that a pass made. Values are compared by identity; names serve people
    and files.
    """

    __slots__ = ("__weakref__", "_constant", "_spec", "declared", "is_half", "is_output", "name", "producer", "users")

    def __init__(
        self,
        name: str,
        dtype: DataType | None = None,
        shape: DynamicTensorShape | None = None,
        kind: str = "tensor",  # or "sequence" of tensors, or "optional"
        element_kind: str = "tensor",  # of an optional
        constant: Array | None = None,
    ) -> None:
        self.name = name
        self.declared = None if dtype is None else PartialTensor(dtype, shape, kind=kind, element_kind=element_kind)
        self.producer: Layer | None = None
        self.users: dict[Layer, None] = {}
        self.is_output = False
        self.is_half: bool | None = None
        self._constant = constant
        self._spec: PartialTensor | None = None

    @classmethod
    def of(cls, name: str, spec: PartialTensor) -> Value:
        """Return a value that is declared as `spec` says."""
        return cls(name, spec.dtype, spec.shape, spec.kind, spec.element_kind)

    @property
    def constant(self) -> Array | None:
        """The array of a constant, else None."""
        return self._constant

    @constant.setter
    def constant(self, array: Array | None) -> None:
        self._constant, self._spec = array, None
        if array is not None:
            self.producer = None

    @property
    def spec(self) -> PartialTensor:
        """The inferred dtype, shape and known values. Raises InferenceError, and ModelError if nothing makes it."""
        if self._spec is None:
            if self._constant is not None:
                self._spec = PartialTensor.of(self._constant)
            elif self.producer is not None:
                self.producer.infer_outputs()
                assert self._spec is not None
            elif self.declared is not None:
                return self.declared
            else:
                raise ModelError(f"no layer makes the value {self.name!r}")
        return self._spec

    @spec.setter
    def spec(self, spec: PartialTensor) -> None:
        self._spec = spec

    @property
    def is_inferred(self) -> bool:
        """Whether `spec` is known, or follows from the constant or the declaration without inference."""
        return self._spec is not None or self._constant is not None or self.producer is None

    @property
    def is_named_only(self) -> bool:
        """Whether it is a name that a model has not linked yet."""
        return self.producer is None and self._constant is None and self.declared is None

    @property
    def is_live(self) -> bool:
        """Whether a layer makes or reads it, or a model outputs it."""
        return self.producer is not None or bool(self.users) or self.is_output

    @property
    def only_user(self) -> Layer | None:
        """The only layer that reads it; None if there are more or none, or the model outputs it."""
        return next(iter(self.users)) if len(self.users) == 1 and not self.is_output else None

    @property
    def _shown(self) -> PartialTensor:
        return self.spec if self.declared is None else self.declared

    @property
    def dtype(self) -> DataType:
        """The declared dtype, or the inferred one."""
        return self._shown.dtype

    @property
    def shape(self) -> DynamicTensorShape | None:
        """The declared shape, or the inferred one; None if the rank is unknown."""
        return self._shown.shape

    @property
    def kind(self) -> str:
        """ "tensor", "sequence" or "optional"."""
        return self._shown.kind

    @property
    def element_kind(self) -> str:
        """The kind of an optional's element."""
        return self._shown.element_kind

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype} {'of unknown rank' if self.shape is None else self.shape}"

    def __repr__(self) -> str:
        return f"Value({self.name!r})" if self.is_named_only else f"Value({self})"


class Layer:
    """One operation. `inputs` and `outputs` are values; None stands for an absent optional one. `operands` and
    `results` are those that are not absent.

    Inputs and attributes can be read by the names of the operator's declaration, attributes with their defaults:
    `layer.x`, `layer.axis`. A name given instead of a value is linked when the layer becomes part of a model.

    `epilogue` is applied to each element of the first output. A layer with `on_host` is shape arithmetic and runs on
    the CPU, whatever the backend. With `channels_last` the layer's data (not its weights) has the channels as the last
    dim, instead of the second. A layer that `is_wide` may read or make integers that 32 bits do not hold.
    """

    __slots__ = (
        *("__weakref__", "_inputs", "_outputs", "attributes", "channels_last", "epilogue", "is_linked", "is_wide"),
        *("name", "on_host", "op", "operands", "results", "serial"),
    )

    def __init__(
        self,
        op: str,
        name: str,
        inputs: Sequence[Value | str | None],
        outputs: Sequence[Value | str | None],
        attributes: Mapping[str, Any] | None = None,
        epilogue: tuple[Stage, ...] = (),
        on_host: bool = False,
        channels_last: bool = False,
        is_wide: bool = False,
    ) -> None:
        take_turns()
        self.op, self.name = op, name
        self.attributes = dict(attributes or {})
        self.epilogue, self.on_host, self.channels_last, self.is_wide = epilogue, on_host, channels_last, is_wide
        self.serial = next(_serials)  # later layers of a graph that is being built read earlier ones
        self.is_linked = False  # whether a model holds it, and its values know it as a user
        self._inputs, self._outputs = _values(inputs), _values(outputs)
        self._note_present()
        for value in self.results:
            if value.producer is None and value.constant is None:
                value.producer = self

    def _note_present(self) -> None:  # kept and not derived: passes and plans ask for them at every step
        self.operands = tuple([value for value in self._inputs if value is not None])
        self.results = tuple([value for value in self._outputs if value is not None])

    @property
    def inputs(self) -> tuple[Value | None, ...]:
        """The values that it reads, None for each absent one."""
        return self._inputs

    @inputs.setter
    def inputs(self, values: Sequence[Value | None]) -> None:
        if self.is_linked:
            for value in self.operands:
                value.users.pop(self, None)
        self._inputs = tuple(values)
        self._note_present()
        if self.is_linked:
            for value in self.operands:
                value.users[self] = None

    @property
    def outputs(self) -> tuple[Value | None, ...]:
        """The values that it makes, None for each one that it leaves out."""
        return self._outputs

    @outputs.setter
    def outputs(self, values: Sequence[Value | None]) -> None:
        for value in self.results:
            if value.producer is self:
                value.producer = None
        self._outputs = tuple(values)
        self._note_present()
        for value in self.results:
            value.producer = self

    @property
    def inner_models(self) -> Mapping[str, Any]:
        """The models of the branches or the loop that it runs, by name; none for most layers."""
        found: Mapping[str, Any] = self.attributes.get("bodies", {})
        return found

    @property
    def output(self) -> Value:
        """The first output. Raises ModelError if the layer leaves it out."""
        first = self._outputs[0] if self._outputs else None
        if first is None:
            raise ModelError(f"layer {self.name!r} ({self.op}) has no first output")
        return first

    def input(self, index: int) -> Value:
        """Return an input that the operator needs. Raises ModelError if it is absent."""
        value = self._inputs[index] if index < len(self._inputs) else None
        if value is None:
            raise ModelError(f"layer {self.name!r} ({self.op}) has no input {index}")
        return value

    def __getattr__(self, name: str) -> Any:
        """Return an input or an attribute by the name in the operator's declaration."""
        if name.startswith("_") or name == "op":
            raise AttributeError(name)
        entry = self.declaration
        if name in entry.attributes:
            return self.attributes.get(name, entry.attributes[name])
        if name in entry.inputs:
            index = entry.inputs.index(name)
            return self._inputs[index] if index < len(self._inputs) else None
        raise AttributeError(f"a layer {self.op} has no input and no attribute {name!r}")

    def set_input(self, index: int, value: Value | None) -> None:
        """Read another value as input `index`."""
        given = [*self._inputs, *(None,) * (index + 1 - len(self._inputs))]
        given[index] = value
        self.inputs = given

    def replace_input(self, old: Value, new: Value) -> None:
        """Read `new` wherever the layer reads `old`."""
        self.inputs = [new if value is old else value for value in self._inputs]

    def link(self) -> None:
        """Make the values know this layer as their producer or user."""
        take_turns()
        self.is_linked = True
        for value in self.results:
            value.producer = self
        for value in self.operands:
            value.users[self] = None

    def unlink(self) -> None:
        """Make the values forget this layer."""
        self.is_linked = False
        for value in self.results:
            if value.producer is self:
                value.producer = None
        for value in self.operands:
            value.users.pop(self, None)

    def copy(self, values: Mapping[Value, Value]) -> Layer:
        """Return a copy that reads and makes other values, by this layer's own."""
        return self.changed(
            inputs=[None if value is None else values[value] for value in self._inputs],
            outputs=[None if value is None else values[value] for value in self._outputs],
        )

    def changed(
        self,
        op: str | None = None,
        inputs: Sequence[Value | None] | None = None,
        outputs: Sequence[Value | None] | None = None,
        attributes: Mapping[str, Any] | None = None,
        epilogue: tuple[Stage, ...] | None = None,
        channels_last: bool | None = None,
    ) -> Layer:
        """Return a layer of no model, like this one but for the changes."""
        return Layer(
            self.op if op is None else op,
            self.name,
            self._inputs if inputs is None else inputs,
            self._outputs if outputs is None else outputs,
            self.attributes if attributes is None else attributes,
            self.epilogue if epilogue is None else epilogue,
            self.on_host,
            self.channels_last if channels_last is None else channels_last,
            self.is_wide,
        )

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, "" for each absent one."""
        return ["" if value is None else value.name for value in self._inputs]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs, "" for each absent one."""
        return ["" if value is None else value.name for value in self._outputs]

    @property
    def declaration(self) -> Declaration:
        """The declaration of its operator."""
        return FOUND.get(self.op) or declaration(self.op)  # plans ask for it ten times a layer

    @property
    def family(self) -> str:
        """The family whose kernels run it."""
        return self.declaration.family

    def form(self, inputs: Sequence[Known | None], outputs: Sequence[Known | None]) -> Any:
        """Return the canonical form of its family for these shapes. Raises ModelError if the operator has no form, and
        InferenceError if the inputs or attributes do not fit.
        """
        take_turns()
        entry = self.declaration
        if entry.form_of is None:
            raise ModelError(f"layer {self.name!r} ({self.op}) has no canonical form")
        seen, made = inputs, outputs
        if self.channels_last:
            seen = [Seen.channels_first(value) if entry.is_spatial(i) else value for i, value in enumerate(inputs)]
            made = [Seen.channels_first(value) for value in outputs]
        try:
            return entry.canonical(seen, made, entry.with_defaults(self.attributes))
        except PerframeError as error:
            raise self._named(error, inputs) from None
        except Exception as error:  # a file may say anything
            raise self._named(error, inputs) from error

    def _named(self, error: Exception, inputs: Sequence[Any]) -> InferenceError:
        """Return an error that names the layer and its inputs."""
        listed = ", ".join(
            f"{name or '(absent)'}: {'' if value is None else f'{value.dtype} {value.shape}'}"
            for name, value in zip(self.input_names, inputs, strict=False)
        )
        said = str(error) or type(error).__name__
        return InferenceError(f"layer {self.name!r} ({self.op}): {said} [inputs {listed}]")

    def infer(self, inputs: Sequence[PartialTensor | None]) -> tuple[PartialTensor, ...]:
        """Return its outputs as partial tensors. Raises InferenceError that names the layer and its inputs."""
        trimmed = list(inputs)
        while trimmed and trimmed[-1] is None and not self.declaration.variadic:
            trimmed.pop()
        try:
            if self.channels_last:
                results = channels_last_outputs(self.declaration, trimmed, self.attributes)
            else:
                results = self.declaration.outputs_for(trimmed, self.attributes)
            if len(results) < len(self._outputs):
                raise InferenceError(
                    f"from these inputs it makes {len(results)} output(s), and the model names {len(self._outputs)}"
                )
            if self.epilogue:  # the declaration knows the values before it
                results = (results[0].with_shape(results[0].shape), *results[1:])
            return results
        except PerframeError as error:
            raise self._named(error, inputs) from None

    def infer_outputs(self) -> None:
        """Infer the specs of the outputs, and those of values before them where they are not known.

        Raises InferenceError, and ModelError if layers read each other's results in a circle.
        """
        waiting, begun = [self], set[Layer]()  # no recursion: a model may be deeper than Python's stack
        while waiting:
            layer = waiting[-1]
            makers = [value.producer for value in layer.operands if not value.is_inferred]
            before = [maker for maker in makers if maker is not None]
            if begun.intersection(before):
                raise ModelError(f"layer {layer.name!r} ({layer.op}) reads its own result, by way of other layers")
            if before:
                begun.add(layer)
                waiting += before
                continue
            specs = layer.infer([None if value is None else value.spec for value in layer.inputs])
            for value, spec in zip(layer.outputs, specs, strict=False):
                if value is not None:
                    value.spec = spec
            begun.discard(waiting.pop())

    def __str__(self) -> str:
        return f"{self.op} {self.name!r}: {', '.join(self.input_names)} -> {', '.join(self.output_names)}"

    def __repr__(self) -> str:
        return f"Layer({self})"


def _values(given: Iterable[Value | str | None]) -> tuple[Value | None, ...]:
    return tuple([(Value(one) if one else None) if isinstance(one, str) else one for one in given])
