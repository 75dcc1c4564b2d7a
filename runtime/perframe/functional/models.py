"""A model inside of another, and layers that have no function: both become layers of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perframe.errors import InputError
from perframe.functional.calls import apply_all, function, graph_of
from perframe.functional.tensor import FunctionalTensor, Given, to_tensor
from perframe.ir import Array, Model, Value
from perframe.ir.declaration import Declaration
from perframe.ir.model import copy_bodies
from perframe.ir.sizes.partial import PartialTensor


@function
def forward(model: Model, /, *inputs: Given | Mapping[str, Given], **named: Given) -> tuple[FunctionalTensor, ...]:
    """Return the outputs of a model for inputs by position, as a list, by name, or as a dict by name.

    The model's layers become part of the graph, as do its metadata under new names, and its constants are shared; the
    model is not changed. Raises InputError for an input that is missing, unknown, or of a wrong dtype or shape.
    """
    given = _by_name(model, inputs, named)
    _check_dims(model, given)
    graph = graph_of(list(given.values()))
    if graph is not None:
        graph.metadata = model.metadata | graph.metadata
    values = {value: given[value.name] for value in model.inputs}
    for constant in model.constant_values:
        values[constant] = FunctionalTensor(Value(constant.name, constant=_fixed(constant.constant)))
    for layer in model.layers:
        operands = [None if value is None else values[value] for value in layer.inputs]
        results = layer.infer([None if tensor is None else tensor.spec for tensor in operands])
        made = [None if value is None else Value(value.name) for value in layer.outputs]
        copy = layer.changed(inputs=[None if tensor is None else tensor.value for tensor in operands], outputs=made)
        copy_bodies(copy)
        for inner, value, spec in zip(layer.outputs, made, results, strict=False):
            if inner is not None and value is not None:
                value.spec = spec
                values[inner] = FunctionalTensor(value, graph, name=value.name)
    return tuple(_output(values[value], value) for value in model.outputs)


def _fixed(constant: Array | None) -> Array | None:
    """Return a constant that this graph cannot change, over the same memory."""
    if constant is not None and constant.flags.writeable:
        constant = constant.view()
        constant.flags.writeable = False
    return constant


def _output(tensor: FunctionalTensor, value: Value) -> FunctionalTensor:
    """Return an output. Where a dim is unknown here, the dim that the model declares counts."""
    if tensor.spec.shape is None and value.shape is not None and tensor.spec.kind == "tensor":
        spec = PartialTensor(tensor.dtype, value.shape)
        return FunctionalTensor(tensor.value, tensor.graph, spec=spec, name=tensor.name)
    return tensor.fixed()


def _by_name(model: Model, inputs: Sequence[Any], named: Mapping[str, Given]) -> dict[str, FunctionalTensor]:
    """Return the inputs by name. Raises InputError unless each is given once, with its dtype and shape."""
    names = [value.name for value in model.inputs]
    listed = ", ".join(map(str, model.inputs)) or "none"
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        named, inputs = {**inputs[0], **named}, []
    elif (
        len(inputs) == 1
        and isinstance(inputs[0], (list, tuple))
        and any(isinstance(one, FunctionalTensor) for one in inputs[0])
    ):
        inputs = inputs[0]
    if len(inputs) > len(names):
        raise InputError(f"{model.name} takes {len(names)} input(s), and got {len(inputs)}; its inputs are {listed}")
    given: dict[str, Any] = dict(zip(names, inputs, strict=False))
    for name, value in named.items():
        if name not in names:
            raise InputError(f"{model.name} has no input {name!r}; its inputs are {listed}")
        if name in given:
            raise InputError(f"{model.name}: the input {name!r} is given by position and by name")
        given[name] = value
    missing = [str(value) for value in model.inputs if value.name not in given]
    if missing:
        raise InputError(f"{model.name} still needs the input(s) {', '.join(missing)}")
    return {value.name: _checked(model, value, to_tensor(given[value.name]).fixed()) for value in model.inputs}


def _checked(model: Model, value: Value, tensor: FunctionalTensor) -> FunctionalTensor:
    where = f"{model.name}: input {value.name!r}"
    if tensor.spec.kind != value.kind:
        raise InputError(f"{where} is a {value.kind}, and got a {tensor.spec.kind}")
    if tensor.dtype is not value.dtype:
        raise InputError(f"{where} is {value.dtype}, and got {tensor.spec}: convert it by .to('{value.dtype}')")
    if value.shape is not None and tensor.spec.shape is not None and not value.shape.may_be(tensor.spec.shape):
        raise InputError(f"{where} has the shape {value.shape}, and got {tensor.spec.shape}")
    return tensor


def _check_dims(model: Model, given: Mapping[str, FunctionalTensor]) -> None:
    """Raise InputError where one named dim would have two sizes."""
    sizes: dict[str, tuple[str, int]] = {}
    for value in model.inputs:
        shape = given[value.name].spec.shape
        for dim, size in zip(value.shape or (), shape or (), strict=False):
            if isinstance(dim, str) and isinstance(size, int):
                first, before = sizes.setdefault(dim, (value.name, size))
                if before != size:
                    raise InputError(
                        f"{model.name}: the dim {dim!r} is {before} in the input {first!r}, and {size} in "
                        f"{value.name!r}"
                    )


@function
def apply(
    operator: Declaration | str, /, *inputs: Given | None, **attributes: Any
) -> FunctionalTensor | tuple[FunctionalTensor, ...]:
    """Return the output of any layer, or a tuple of its outputs.

    `operator` is a layer that you declared, or a name: "HardSwish", "my.domain::SoftLimit". None stands for an absent
    input. Raises InputError for any other operator, InferenceError for inputs or attributes that do not fit, and
    ModelError if there is no operator of this name.
    """
    name = operator.name if isinstance(operator, Declaration) else operator
    if not isinstance(name, str):
        raise InputError(f"an operator is a layer that you declared, or a name such as 'HardSwish', not {name!r:.80}")
    made = apply_all(name, inputs, **attributes)
    return made[0] if len(made) == 1 else made
