"""Which layers compute with bytes, and which values share a scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perframe.model import Layer, Model
from perframe.passes.match import Graph
from perframe.passes.quantization import averages_pixels, moves
from perframe.tensor import DataType

PRODUCTS = ("Conv", "MatMul", "Gemm")


@dataclass
class Choice:
    """The layers that compute with bytes, by their ids; and the values that become bytes, in groups of one scale."""

    layers: list[Layer]
    groups: list[list[str]]

    @property
    def products(self) -> list[Layer]:
        """The layers whose weights become bytes too."""
        return [layer for layer in self.layers if layer.op in PRODUCTS]

    @property
    def values(self) -> list[str]:
        """All values that become bytes."""
        return [name for group in self.groups for name in group]


def choose(model: Model, exclude: set[str]) -> Choice:
    """Choose products of constant weights, and the layers between them that need not leave the bytes.

    A layer between products is chosen if all its data comes as bytes, and some chosen layer reads its result. Data
    comes as bytes from a chosen layer, or if a product needs it as bytes anyway.
    """
    graph = Graph(model)
    able = [layer for layer in model.layers if is_product(graph, layer) or _follows(graph, layer)]
    chosen = {id(layer): layer for layer in able if layer.name not in exclude}
    count = 0
    while count != len(chosen):  # one that goes may take its neighbors along
        count = len(chosen)
        chosen = {key: layer for key, layer in chosen.items() if layer.op in PRODUCTS or _stays(graph, layer, chosen)}
    layers = [layer for layer in model.layers if id(layer) in chosen]
    return Choice(layers, _groups(layers))


def data_of(layer: Layer) -> list[str]:
    """The names of the inputs that become bytes."""
    count = len(layer.inputs) if layer.op in ("Concat", "Add") else 1
    return layer.inputs[:count]


def is_product(graph: Graph, layer: Layer) -> bool:
    """Whether a layer is a product of data and constant weights that the CPU can multiply as bytes."""
    if layer.op not in PRODUCTS or layer.inputs[3:] or not _are_real(graph, layer):
        return False
    weights, data = graph.constant(layer.inputs[1]), graph.specs[layer.inputs[0]]
    if weights is None or layer.inputs[0] in graph.model.constants or layer.inputs[1] in graph.model.output_names:
        return False
    if layer.inputs[2:] and layer.inputs[2] and graph.constant(layer.inputs[2]) is None:
        return False
    if layer.op == "Conv":
        return data.shape is not None and len(data.shape) in (3, 4)
    attributes = layer.attributes
    plain = {attributes.get("alpha", 1.0), attributes.get("beta", 1.0)} == {1.0}
    return weights.ndim == 2 and not attributes.get("transA") and plain


def _are_real(graph: Graph, layer: Layer) -> bool:
    names = [*data_of(layer), *layer.outputs[:1]]
    return all(name and graph.specs[name].dtype is DataType.FLOAT32 for name in names)


def _follows(graph: Graph, layer: Layer) -> bool:
    """Whether the CPU has a kernel of bytes for a layer that multiplies no weights."""
    if layer.outputs[1:] or not layer.inputs or not _are_real(graph, layer):
        return False
    clamps = all(stage.limits is not None for stage in layer.epilogue)
    data = [graph.specs[name].shape for name in data_of(layer)]
    if moves(layer):
        return not layer.epilogue
    if layer.op == "Add":
        return clamps and len(set(data)) == 1 and data[0] is not None
    if averages_pixels(graph, layer):
        return not layer.epilogue
    return layer.family == "elementwise" and _is_formula(graph, layer)


def _is_formula(graph: Graph, layer: Layer) -> bool:
    """Whether a layer computes each element of its first input, and numbers."""
    shape = graph.specs[layer.inputs[0]].shape
    numbers = [graph.constant(name) for name in layer.inputs[1:] if name]
    return (
        shape is not None
        and graph.specs[layer.outputs[0]].shape == shape
        and all(value is not None and value.size == 1 for value in numbers)
    )


def _stays(graph: Graph, layer: Layer, chosen: dict[int, Layer]) -> bool:
    made = layer.outputs[0]

    def readers(name: str) -> list[Layer]:
        return [user for user in graph.users.get(name, []) if id(user) in chosen and name in data_of(user)]

    def comes_as_bytes(name: str) -> bool:
        maker = graph.producers.get(name)
        made_of_bytes = maker is not None and id(maker) in chosen
        return made_of_bytes or any(user.op in PRODUCTS for user in readers(name))

    from_bytes = all(map(comes_as_bytes, data_of(layer)))
    return from_bytes and bool(readers(made)) and made not in graph.model.output_names


def _groups(layers: list[Layer]) -> list[list[str]]:
    """The values that chosen layers read, in groups of one scale: layers that move elements keep the scale."""
    groups: dict[str, list[str]] = {}
    for layer in layers:
        for name in data_of(layer):
            groups.setdefault(name, [name])
    for layer in layers:
        if moves(layer):
            for name, other in _pairs([*data_of(layer), layer.outputs[0]]):
                one, two = groups[name], groups[other]
                if one is not two:
                    one += two
                    groups |= dict.fromkeys(two, one)
    return list({id(group): group for group in groups.values()}.values())


def _pairs(names: list[str]) -> Iterator[tuple[str, str]]:
    return ((names[0], name) for name in names[1:])
