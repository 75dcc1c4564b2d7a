"""Which layers compute with bytes, and which values share a scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perframe.ir import Layer, Model, Value
from perframe.passes.match import constant_of
from perframe.passes.quantise.quantization import averages_pixels, moves
from perframe.tensor import DataType

PRODUCTS = ("Conv", "MatMul", "Gemm")


@dataclass
class Choice:
    """The layers that compute with bytes, and the values that become bytes, in groups of one scale."""

    layers: list[Layer]
    groups: list[list[Value]]

    @property
    def products(self) -> list[Layer]:
        """The layers whose weights become bytes too."""
        return [layer for layer in self.layers if layer.op in PRODUCTS]

    @property
    def values(self) -> list[Value]:
        """All values that become bytes."""
        return [value for group in self.groups for value in group]


def choose(model: Model, exclude: set[str]) -> Choice:
    """Choose products of constant weights, and the layers between them that need not leave the bytes.

    A layer between products is chosen if all its data comes as bytes, and some chosen layer reads its result. Data
    comes as bytes from a chosen layer, or if a product needs it as bytes anyway.
    """
    model.infer()
    able = [layer for layer in model.layers if is_product(layer) or _follows(layer)]
    chosen = {layer for layer in able if layer.name not in exclude}
    count = 0
    while count != len(chosen):  # one that goes may take its neighbors along
        count = len(chosen)
        chosen = {layer for layer in chosen if layer.op in PRODUCTS or _stays(layer, chosen)}
    layers = [layer for layer in model.layers if layer in chosen]
    return Choice(layers, _groups(layers))


def data_of(layer: Layer) -> list[Value]:
    """The inputs that become bytes."""
    count = len(layer.inputs) if layer.op in ("Concat", "Add") else 1
    return [value for value in layer.inputs[:count] if value is not None]


def is_product(layer: Layer) -> bool:
    """Whether a layer is a product of data and constant weights that the CPU can multiply as bytes."""
    if layer.op not in PRODUCTS or layer.inputs[3:] or not _are_real(layer):
        return False
    data, weights, bias = layer.input(0), layer.input(1), layer.inputs[2] if layer.inputs[2:] else None
    if weights.constant is None or data.constant is not None or weights.is_output:
        return False
    if bias is not None and bias.constant is None:
        return False
    if layer.op == "Conv":
        return data.spec.shape is not None and len(data.spec.shape) in (3, 4)
    plain = layer.op == "MatMul" or layer.alpha == layer.beta == 1
    return weights.constant.ndim == 2 and not layer.transA and plain


def _are_real(layer: Layer) -> bool:
    values = [*data_of(layer), *layer.outputs[:1]]
    return all(value is not None and value.spec.dtype is DataType.FLOAT32 for value in values)


def _follows(layer: Layer) -> bool:
    """Whether the CPU has a kernel of bytes for a layer that multiplies no weights."""
    if layer.outputs[1:] or not layer.inputs or not _are_real(layer):
        return False
    clamps = all(stage.limits is not None for stage in layer.epilogue)
    data = [value.spec.shape for value in data_of(layer)]
    if moves(layer):
        return not layer.epilogue
    if layer.op == "Add":
        return clamps and len(set(data)) == 1 and data[0] is not None
    if averages_pixels(layer):
        return not layer.epilogue
    return layer.family == "elementwise" and _is_formula(layer)


def _is_formula(layer: Layer) -> bool:
    """Whether a layer computes each element of its first input, and numbers."""
    shape = layer.input(0).spec.shape
    numbers = [constant_of(value) for value in layer.inputs[1:] if value is not None]
    return (
        shape is not None
        and layer.output.spec.shape == shape
        and all(number is not None and number.size == 1 for number in numbers)
    )


def _stays(layer: Layer, chosen: set[Layer]) -> bool:
    def readers(value: Value) -> list[Layer]:
        return [user for user in value.users if user in chosen and value in data_of(user)]

    def comes_as_bytes(value: Value) -> bool:
        return value.producer in chosen or any(user.op in PRODUCTS for user in readers(value))

    from_bytes = all(map(comes_as_bytes, data_of(layer)))
    return from_bytes and bool(readers(layer.output)) and not layer.output.is_output


def _groups(layers: list[Layer]) -> list[list[Value]]:
    """The values that chosen layers read, in groups of one scale: layers that move elements keep the scale."""
    groups: dict[Value, list[Value]] = {}
    for layer in layers:
        for value in data_of(layer):
            groups.setdefault(value, [value])
    for layer in layers:
        if moves(layer):
            first, *others = (*data_of(layer), layer.output)
            for other in others:
                one, two = groups[first], groups[other]
                if one is not two:
                    one += two
                    groups |= dict.fromkeys(two, one)
    return list({id(group): group for group in groups.values()}.values())


def split_activations(model: Model, choice: Choice) -> None:
    """Make layers of the activations after products whose result becomes bytes, in place.

    An 8-bit product can clip its results. Any other formula would need them as floats, and a table of 256 bytes is
    faster. Other runtimes multiply bytes only if nothing but a clip follows before the quantization.
    """
    products, values = set(choice.products), set(choice.values)
    for layer in model.layers:
        at = next((index for index, stage in enumerate(layer.epilogue) if stage.limits is None), None)
        if at is None or layer not in products or layer.output not in values or layer.output.is_output:
            continue
        value, *numbers = layer.epilogue[at].operands
        if value is not None or not all(isinstance(number, float | int) for number in numbers):
            continue
        stage, rest, output = layer.epilogue[at], layer.epilogue[at + 1 :], layer.output
        before = Value(f"{output.name}/before")
        constants = [model.add_constant(f"{output.name}/number", np.array(number, np.float32)) for number in numbers]
        layer.outputs, layer.epilogue = [before], layer.epilogue[:at]
        title, attributes = f"{layer.name}/{stage.op}", dict(stage.attributes)
        model.insert(Layer(stage.op, title, [before, *constants], [output], attributes, rest), after=layer)
