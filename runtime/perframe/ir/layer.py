"""Layers: the nodes of a model. A layer holds the values that it reads and makes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from perframe.errors import InferenceError, ModelError, PerframeError
from perframe.ir.channels_last import Seen, channels_last_outputs
from perframe.ir.declaration import Declaration, Known, declaration
from perframe.ir.epilogue import Stage
from perframe.ir.sizes.partial import PartialTensor
from perframe.ir.value import Value

_serials = itertools.count()


class Layer:
    """One operation. `inputs` and `outputs` are values; None stands for an absent optional one.

    Inputs and attributes can be read by the names of the operator's declaration, attributes with their defaults:
    `layer.x`, `layer.axis`. A name given instead of a value is linked when the layer becomes part of a model.

    `epilogue` is applied to each element of the first output. A layer with `on_host` is shape arithmetic and runs on
    the CPU, whatever the backend. With `channels_last` the layer's data (not its weights) has the channels as the last
    dim, instead of the second. A layer that `is_wide` may read or make integers that 32 bits do not hold.
    """

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
        self.op, self.name = op, name
        self.attributes = dict(attributes or {})
        self.epilogue, self.on_host, self.channels_last, self.is_wide = epilogue, on_host, channels_last, is_wide
        self.serial = next(_serials)  # later layers of a graph that is being built read earlier ones
        self.is_linked = False  # whether a model holds it, and its values know it as a user
        self._inputs = _values(inputs)
        self._outputs = _values(outputs)
        for value in self._outputs:
            if value is not None and value.producer is None and value.constant is None:
                value.producer = self

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
        for value in self.results:
            value.producer = self

    @property
    def operands(self) -> list[Value]:
        """The inputs that are not absent."""
        return [value for value in self._inputs if value is not None]

    @property
    def results(self) -> list[Value]:
        """The outputs that are not absent."""
        return [value for value in self._outputs if value is not None]

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
        return Layer(
            self.op,
            self.name,
            [None if value is None else values[value] for value in self._inputs],
            [None if value is None else values[value] for value in self._outputs],
            self.attributes,
            self.epilogue,
            self.on_host,
            self.channels_last,
            self.is_wide,
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
        return declaration(self.op)

    @property
    def family(self) -> str:
        """The family whose kernels run it."""
        return self.declaration.family

    def form(self, inputs: Sequence[Known | None], outputs: Sequence[Known | None]) -> Any:
        """Return the canonical form of its family for these shapes.

        Raises ModelError if the operator has no form, and InferenceError if the inputs or attributes do not fit.
        """
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
        """Return its outputs as partial tensors.

        Raises InferenceError that names the layer and its inputs.
        """
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
