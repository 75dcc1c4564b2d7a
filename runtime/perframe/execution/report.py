"""Reports of a worker: the steps of its plans with sizes and costs, and the memory of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from perframe.backends.operand import Operand
from perframe.backends.protocol import TimedProgram
from perframe.ir import Layer, Subgraph, Value
from perframe.ir.form import Counted
from perframe.ir.inference import Inference
from perframe.ir.sizes.partial import DynamicTensorShape, PartialTensor
from perframe.plan.segments import Segment, Transfer
from perframe.safety.notebooks import preformatted
from perframe.safety.records import dataclass
from perframe.tensor import BackendType, HostStorage, TensorShape


@dataclass(frozen=True)
class MemoryUse:
    """The memory of one part of a model, in bytes.

    `constants` are all constants of the part, `read` the constants that kernels read unchanged, and `packed` the
    operands that were derived from constants for kernels. `workspace` holds the values within a run of the largest
    plan. `live` lists for each layer that runs the bytes of the values that are live during it. `whole` names the
    constants that stay float32 in a worker with weights="float16", because their numbers do not fit.
    """

    constants: int
    read: int
    packed: int
    workspace: int
    live: list[tuple[str, int]]
    whole: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepReport:
    """One step of a plan.

    `operator` is "" for a copy or a transfer, which belongs to no layer. A shape is None for an input that is absent,
    and where it depends on values. `bytes` sums up the layer's inputs and outputs in the dtypes that the model gives
    them. `operations` counts the
    multiplications and additions of a product or a convolution; it is None for other layers. Each step of a layer has
    the layer's sizes. `seconds` is the shortest time that was measured, or None.
    """

    layer: str
    operator: str
    backend: BackendType
    inputs: tuple[TensorShape | None, ...]
    outputs: tuple[TensorShape | None, ...]
    bytes: int
    operations: int | None
    seconds: float | None


class Steps(list[StepReport]):
    """The steps of a worker's last run, which print as a table."""

    def __repr__(self) -> str:
        head = ("layer", "operator", "backend", "output", "time")
        rows = [head, *(self._row(step) for step in self)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        if self and all(step.seconds is None for step in self):
            lines.append("report(repeats=5) measures the times")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return preformatted(repr(self))

    @staticmethod
    def _row(step: StepReport) -> tuple[str, ...]:
        shape = "" if not step.outputs or step.outputs[0] is None else "×".join(map(str, step.outputs[0]))
        time = "" if step.seconds is None else f"{step.seconds * 1e3:.3f} ms"
        return step.layer, step.operator or "copy", str(step.backend), shape, time


def steps_of(
    part: Subgraph, input_shapes: Sequence[TensorShape], segments: Sequence[Segment | Transfer], repeats: int
) -> list[StepReport]:
    """The steps of a plan's segments, in the order in which they run, with the times that are measured. No run is under
    way.
    """
    report, found = reporter(part, input_shapes), []
    for segment in segments:
        times = _times(segment, repeats) if isinstance(segment, Segment) else []
        for index, name in enumerate(segment.layers):
            found.append(report(name, segment.backend_type, times[index] if times else None))
    return found


def reporter(
    part: Subgraph, input_shapes: Sequence[TensorShape]
) -> Callable[[str, BackendType, float | None], StepReport]:
    """Return a function that reports a step: from its layer's name, its backend, and its time in seconds."""
    inputs = {
        value: PartialTensor(value.dtype, DynamicTensorShape(shape))
        for value, shape in zip(part.inputs, input_shapes, strict=True)
    }
    known, layers = Inference().specs(part.layers, inputs), {layer.name: layer for layer in part.layers}
    return lambda name, backend, seconds: _step(name, layers.get(name), known, backend, seconds)


def _times(segment: Segment, repeats: int) -> list[float]:
    """The shortest time of each step, or nothing if none was measured. Readbacks and jobs that use what the segment
    writes come before the repeats.
    """
    if not isinstance(segment.program, TimedProgram):
        return []
    for storage in (*segment.access.reads, *segment.access.writes) if repeats else ():
        for fence in storage.fences if isinstance(storage, HostStorage) else ():
            with suppress(Exception):
                fence.wait()
    return segment.program.step_seconds(repeats) or []


def _step(
    name: str, layer: Layer | None, known: Mapping[Value, PartialTensor], backend: BackendType, seconds: float | None
) -> StepReport:
    if layer is None:
        return StepReport(name, "", backend, (), (), 0, None, seconds)
    inputs = [None if value is None else described(value.name, known[value]) for value in layer.inputs]
    outputs = [described(value.name, known[value]) for value in layer.results]
    reads, writes = ([None if value is None else value.shape for value in values] for values in (inputs, outputs))
    size = sum(value.shape.size * value.dtype.numpy.itemsize for value in (*inputs, *outputs) if value is not None)
    given = [value for value, read in zip(inputs, layer.inputs, strict=True) if read]
    has_form = layer.declaration.form_of is not None and None not in (*given, *outputs)
    form = layer.form(inputs, outputs) if has_form else None
    operations = form.operations if isinstance(form, Counted) else None
    return StepReport(name, layer.op, backend, tuple(reads), tuple(writes), size, operations, seconds)


def described(name: str, spec: PartialTensor) -> Operand | None:
    """Describe a value by an operand without storage; None where its shape is not known."""
    if spec.shape is None or not spec.shape.is_static:
        return None
    return Operand(name, spec.shape.to_shape(), spec.dtype, spec.value)
