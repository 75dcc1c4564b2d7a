"""Facts about a model: its layers with shapes, costs and backends, its values and its constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from perframe.backends import unsupported_on_gl
from perframe.backends.operand import Operand
from perframe.errors import PerframeError
from perframe.execution.report import described
from perframe.importers.loading import load
from perframe.inspection.chosen_sizes import ChosenSizes, choose_sizes
from perframe.ir import Layer, Model
from perframe.ir.dims import check_dims, shape_with
from perframe.ir.report import OptimizationReport
from perframe.ir.sizes.partial import PartialTensor
from perframe.passes.work import Specs, multiply_adds, spec_in
from perframe.safety.names import shown
from perframe.safety.notebooks import preformatted
from perframe.safety.wording import bytes_text, counted
from perframe.tensor import BackendType

Dims = list[int | str | None] | None
HOST = "on the host: "
LONGEST = 100  # characters of a text of the file
CPU, GPUS = str(BackendType.CPU), (str(BackendType.GPU_COMPUTE), str(BackendType.GPU_PIXEL))


@dataclass(frozen=True)
class ValueFacts:
    """An input, an output or a constant."""

    name: str
    dtype: str
    shape: Dims


@dataclass(frozen=True)
class LayerFacts:
    """One layer. `shapes` are those of its outputs; None if a shape cannot be inferred. `parameters` counts the values
    of its constant inputs. `epilogue` names the operators that were fused into it.

    `multiply_adds` are those of a product or a convolution, and `bytes` the size of all inputs and outputs, with the
    model's `sizes`; None where they are not known. `backends` says for each backend why the layer runs elsewhere: "" if
    it runs there, and "?" if that depends on a shape which is not known.
    """

    name: str
    op: str
    family: str
    epilogue: list[str]
    inputs: list[str]
    outputs: list[str]
    shapes: list[Dims]
    dtypes: list[str]
    attributes: dict[str, str]
    parameters: int
    multiply_adds: int | None
    bytes: int | None
    backends: dict[str, str]
    on_host: bool


@dataclass(frozen=True, repr=False)
class ModelFacts:
    """Facts about a model. `operators` counts layers by operator, before the passes (in the file) and after. `sizes`
    are those of open dims in all costs.
    """

    name: str
    producer: str
    opsets: dict[str, int]
    metadata: dict[str, str]
    inputs: list[ValueFacts]
    outputs: list[ValueFacts]
    layers: list[LayerFacts]
    constants: list[ValueFacts]
    parameters: int
    constant_bytes: int
    multiply_adds: int | None
    operators: dict[str, list[int]] = field(default_factory=dict)
    report: OptimizationReport | None = None
    sizes: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """The facts about the whole model, in lines; `layers` and `constants` list the rest."""
        opsets = ", ".join(f"{domain} {version}" for domain, version in self.opsets.items())
        known = self.producer or opsets
        lines = [self.name, *([f"made by {self.producer or 'an unknown program'}, opset {opsets}"] if known else [])]
        lines += [f"{name}: {_beginning(text)}" for name, text in self.metadata.items()]
        for way, values in (("in", self.inputs), ("out", self.outputs)):
            lines += [f"{way:4}{value.name}  {value.dtype} {shape_text(value.shape)}" for value in values]
        layers, constants = counted(len(self.layers), "layer"), counted(len(self.constants), "constant")
        stored = f"{counted(self.parameters, 'value')} ({bytes_text(self.constant_bytes)})"
        lines.append(f"{layers}, {constants} with {stored}")
        if self.multiply_adds is not None:
            sizes = f" with {ChosenSizes(self.sizes)}" if self.sizes else ""
            lines.append(f"{self.multiply_adds:,} multiply-adds{sizes}")
        return "\n  ".join(map(shown, lines))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return preformatted(str(self))


def shape_text(shape: Dims) -> str:
    """A shape as text, such as "(1, batch, ?)"; "?" if its rank is unknown."""
    return "?" if shape is None else f"({', '.join('?' if dim is None else str(dim) for dim in shape)})"


def _beginning(text: str) -> str:
    """A text of the file on one line; its begin if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}… ({len(text):,} characters)"


def inspect(
    model: Model | str | Path | bytes | IO[bytes] | Any,
    as_filed: Model | None = None,
    dims: Mapping[str, int] | None = None,
) -> ModelFacts:
    """Return the facts about a model, or about anything that `load` takes.

    `as_filed` is the model before the passes, to compare with. Costs need sizes for open dims: those of `dims`, and
    likely ones for the others. Raises ModelError; InferenceError if a layer does not fit its inputs.
    """
    model = model if isinstance(model, Model) else load(model)
    check_dims(model.name, model.inputs, dims or {})
    constants = model.constants
    model.infer()
    sizes = {**(dims or {}), **choose_sizes(model, dims or {}).sizes}
    sized = _sized(model, sizes)
    layers = [_layer(layer, sized) for layer in model.layers]
    counted = [layer.multiply_adds for layer in layers if layer.multiply_adds is not None]
    return ModelFacts(
        name=model.name,
        producer=model.producer,
        opsets=dict(model.opsets),
        metadata=dict(model.metadata),
        inputs=_values(model.inputs),
        outputs=_values(model.outputs),
        layers=layers,
        constants=[ValueFacts(key, str(value.dtype), list(value.shape)) for key, value in constants.items()],
        parameters=sum(value.size for value in constants.values()),
        constant_bytes=sum(value.nbytes for value in constants.values()),
        multiply_adds=sum(counted) if sized else None,
        operators=_operators(as_filed or model, model),
        report=model.report,
        sizes=sizes if sized else {},
    )


def _sized(model: Model, sizes: Mapping[str, int]) -> Specs | None:
    """The specs of all values with these sizes of open dims; None if the model does not take such sizes."""
    given = {
        value: PartialTensor(value.dtype, shape_with(value, sizes))
        for value in model.inputs
        if value.kind == "tensor" and value.shape is not None
    }
    try:
        return model.specs(given)
    except PerframeError:  # costs are not known
        return None


def _layer(layer: Layer, sized: Specs | None) -> LayerFacts:
    made = [value.spec for value in layer.results]
    sizes = [_bytes(spec_in(sized, value)) for value in (*layer.operands, *layer.results)]
    whole = [size for size in sizes if size is not None]
    constants = (value.constant for value in layer.operands)
    return LayerFacts(
        name=layer.name,
        op=layer.op,
        family=layer.family,
        epilogue=[stage.op for stage in layer.epilogue],
        inputs=layer.input_names,
        outputs=layer.output_names,
        shapes=[None if spec.shape is None else list(spec.shape) for spec in made],
        dtypes=[str(spec.dtype) for spec in made],
        attributes={key: _text(value) for key, value in layer.attributes.items()},
        parameters=sum(array.size for array in constants if array is not None),
        multiply_adds=multiply_adds(layer, sized),
        bytes=sum(whole) if len(whole) == len(sizes) else None,
        backends=placements(layer, sized),
        on_host=layer.on_host,
    )


def _text(value: Any) -> str:
    return ", ".join(f"{name}: {body!r}" for name, body in value.items()) if isinstance(value, dict) else str(value)


def _bytes(spec: PartialTensor) -> int | None:
    if spec.shape is None or not spec.shape.is_static:
        return None
    return spec.shape.to_shape().size * spec.dtype.numpy.itemsize


def _values(values: Sequence[Any]) -> list[ValueFacts]:
    return [ValueFacts(v.name, str(v.dtype), None if v.shape is None else list(v.shape)) for v in values]


def _operators(before: Model, after: Model) -> dict[str, list[int]]:
    was, now = (Counter(layer.op for layer in model.layers) for model in (before, after))
    return {op: [was[op], now[op]] for op in sorted({*was, *now})}


def placements(layer: Layer, specs: Specs | None) -> dict[str, str]:
    """For each backend the reason why the layer runs elsewhere; "" if it runs there.

    A reason that begins with HOST does not count as a fallback: on every backend the layer belongs on the host.
    """
    if layer.on_host:
        return {CPU: "", **dict.fromkeys(GPUS, f"{HOST}shape arithmetic")}
    if layer.declaration.alias:
        return {CPU: "", **dict.fromkeys(GPUS, "")}  # the same data: there is nothing to run
    if layer.family == "control":
        return {CPU: "", **dict.fromkeys(GPUS, f"{HOST}it chooses or repeats layers, which run on the backend")}
    if layer.declaration.on_host:
        return {CPU: "", **dict.fromkeys(GPUS, f"{HOST}the shape of its output depends on values")}
    return {CPU: "", **dict.fromkeys(GPUS, _reason(layer, specs))}


def _reason(layer: Layer, specs: Specs | None) -> str:
    inputs = [None if value is None else described(value.name, spec_in(specs, value)) for value in layer.inputs]
    outputs = [described(value.name, spec_in(specs, value)) for value in layer.results]
    known: Sequence[Operand | None] = [x for x, value in zip(inputs, layer.inputs, strict=True) if value is not None]
    if None in known or None in outputs:
        return "?"  # a shape is not known before the run
    try:
        return unsupported_on_gl(layer, inputs, [value for value in outputs if value is not None]) or ""
    except PerframeError as error:
        return str(error)
