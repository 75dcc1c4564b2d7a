"""Control flow: branches and loops whose bodies are models, run on the worker's backend.

States go from one run of a body to the next without leaving the backend. Scanned inputs are cut on the backend, and
outputs are joined on the backend. Conditions are read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from perframe.errors import InputError
from perframe.execution.machine import Machine, Values, downloaded
from perframe.execution.planned_part import PlannedPart
from perframe.ir import Layer, Model, Subgraph, Value
from perframe.ir.sizes.partial import DynamicTensorShape
from perframe.layers.control import Branching, Looping, Scanning
from perframe.tensor import DataType, Tensor

MAX_FITTING = 256  # sets of input shapes that a control layer remembers as accepted by its bodies
MAX_JOINS = 8  # counts of rows that an output is joined from without a new plan


class Body(Protocol):
    """The parts of a branch or of a loop's body."""

    model: Model
    outputs: tuple[Value, ...]

    def run(self, inputs: Mapping[str, Any]) -> list[Any]:
        """Run all parts, and return the body's outputs in order."""

    def planned_parts(self) -> Iterator[PlannedPart]:
        """Yield all parts with plans."""

    def releasing(self) -> Iterator[None]:
        """Free all parts, a bit at each step."""


class ControlPart:
    """One control layer. Its first inputs are the operator's; the rest are captures, outer values that bodies read."""

    def __init__(self, layer: Layer, machine: Machine, bodies: Mapping[str, Body]) -> None:
        self.layer, self._machine = layer, machine
        self.form = layer.form([None] * len(layer.inputs), [None] * len(layer.outputs))
        self._joins: dict[tuple[str, int, int], PlannedPart] = {}
        self._cuts: dict[tuple[int, int], PlannedPart] = {}
        self._captures: Sequence[str] = layer.captures
        self._bodies = bodies
        self._own = {
            name: [value for value in body.model.inputs if value.name not in self._captures]
            for name, body in bodies.items()
        }
        self._fitting: set[Any] = set()  # (body, input shapes) that passed the check

    def run_whole(self, values: Values) -> None:
        """Run the bodies that the conditions choose, and add the outputs."""
        own = len(self.layer.inputs) - len(self._captures)
        given = [values[name] if name else None for name in self.layer.input_names]
        captured = dict(zip(self._captures, given[own:], strict=True))
        made = _RUN[type(self.form)](self, given[:own], captured)
        values.update([(name, value) for name, value in zip(self.layer.output_names, made, strict=False) if name])

    def advance(self, values: Values) -> Iterator[str]:
        """Run the whole layer, and yield its name."""
        self.run_whole(values)
        yield self.layer.name

    def planned_parts(self) -> Iterator[PlannedPart]:
        """Yield the parts of the bodies that have plans."""
        for body in self._bodies.values():
            yield from body.planned_parts()

    def body(self, name: str) -> Body:
        """Return the body that an attribute of this name holds."""
        return self._bodies[name]

    def run(self, name: str, inputs: Sequence[Any], captured: Values) -> list[Any]:
        """Run a body and return its outputs. Raises InputError where an input does not have the declared shape."""
        own = self._own[name]
        if not inputs:
            return self._bodies[name].run(dict(captured))
        key = (name, *[getattr(value, "shape", None) for value in inputs])
        if key not in self._fitting:
            self._check(name, inputs)
            if len(self._fitting) >= MAX_FITTING:
                self._fitting.clear()
            self._fitting.add(key)
        return self._bodies[name].run({**captured, **{value.name: x for value, x in zip(own, inputs, strict=True)}})

    def number(self, value: Any, what: str) -> Any:
        """Read back a value of one element. Raises InputError where the value has no element or several."""
        array = downloaded(value)
        if type(array) is np.ndarray and not array.shape:
            return array  # the common case, taken early because a frame waits
        if not isinstance(array, np.ndarray) or array.size != 1:
            found = f"of shape {array.shape}" if isinstance(array, np.ndarray) else "no tensor"
            raise InputError(f"{self.layer.op} {self.layer.name!r}: its {what} is {found}, and must be one number")
        return array.reshape(())

    def _check(self, name: str, inputs: Sequence[Any]) -> None:
        for value, given in zip(self._own[name], inputs, strict=True):
            shape = getattr(given, "shape", None)
            if value.shape is not None and shape is not None and not value.shape.accepts(shape):
                raise InputError(
                    f"{self.layer.op} {self.layer.name!r}: its body declares {value}, and gets {tuple(shape)}: "
                    "declare no shape for a state that changes its own"
                )

    def local(self, value: Any) -> Any:
        """Return a value unchanged if it is on this backend, else as an array."""
        here = isinstance(value, Tensor) and self._machine.backend.owns(value.data_on_backend)
        return value if here else downloaded(value)

    def keep(self, value: Any) -> Any:
        """Copy an output of a body, since the body's next run overwrites it. Tensors are copied on the backend, without
        waiting.
        """
        backend, value = self._machine.backend, self.local(value)
        if not isinstance(value, Tensor):
            return value
        storage = backend.alloc(value.shape, value.dtype)
        backend.copy(value.data_on_backend, storage, value.shape, value.dtype)
        return Tensor.over(storage, value.shape, value.dtype, value.name)

    def slice_of(self, value: Any, index: int, axis: int, slot: int = 0) -> Any:
        """Return a slice of a local value, without the axis. The next slice of this slot overwrites it."""
        if not isinstance(value, Tensor):
            return np.take(value, index, axis)
        part = self._cuts.get((slot, axis))
        if part is None:
            whole, at = Value("whole", value.dtype, None), Value("at", DataType.INT64, DynamicTensorShape(()))
            cut = Layer("Gather", f"slices of {self.layer.name}", ["whole", "at"], ["slice"], {"axis": axis})
            part = _planned([whole, at], cut, self._machine)
            self._cuts[slot, axis] = part
        made: Values = {"whole": value, "at": np.array(index, np.int64)}
        part.run_whole(made)
        return made["slice"]

    def stack(self, rows: Sequence[Any], output: Value, axis: int = 0) -> Any:
        """Stack the rows of a body's output along a new axis, on the backend if the rows lie there."""
        if not rows:
            return _no_rows(output, axis)
        dtype = output.dtype
        alike = {(tuple(row.shape), row.dtype) for row in rows if isinstance(row, Tensor)}
        if len(alike) != 1 or not all(isinstance(row, Tensor) for row in rows) or not rows[0].shape.size:
            return self._stacked([downloaded(row) for row in rows], axis)
        at = axis % (rows[0].shape.rank + 1)
        grown = [row.reshape((*row.shape[:at], 1, *row.shape[at:])) for row in rows]
        names = [f"row {index}" for index in range(len(rows))]
        key = (output.name, len(rows), at)  # one part for each output: the joined rows live until the layer runs again
        part = self._joins.pop(key, None)
        if part is None:
            values = [Value(name, dtype, None) for name in names]
            join = Layer("Concat", f"rows of {self.layer.name}", names, ["rows"], {"axis": at})
            part = _planned(values, join, self._machine)
            others = [known for known in self._joins if (known[0], known[2]) == (output.name, at)]
            for oldest in others[: 1 - MAX_JOINS]:
                del self._joins[oldest]
        self._joins[key] = part
        made: Values = dict(zip(names, grown, strict=True))
        part.run_whole(made)
        return made["rows"]

    def _stacked(self, rows: Sequence[Any], axis: int) -> Any:
        shapes = {np.shape(row) for row in rows}
        if len(shapes) != 1:
            raise InputError(f"{self.layer.op} {self.layer.name!r}: a body's output has the shapes {sorted(shapes)}")
        return np.stack(rows, axis)

    def releasing(self) -> Iterator[None]:
        """Free the bodies, the joins and the cuts, a bit at each step."""
        for body in self._bodies.values():
            yield from body.releasing()
        for part in (*self._joins.values(), *self._cuts.values()):
            yield from part.releasing()


def _planned(inputs: Sequence[Value], layer: Layer, machine: Machine) -> PlannedPart:
    """Return a part of one layer, which names its inputs."""
    return PlannedPart(Subgraph.of(Model(inputs, layer.results, [layer])), machine)


def _no_rows(output: Value, axis: int) -> Any:
    """Return the empty output of a body that never ran. Unknown dims of its rows are 0, as in onnxruntime."""
    dims = [dim if isinstance(dim, int) else 0 for dim in output.shape or ()]
    dims.insert(axis % (len(dims) + 1), 0)
    return np.zeros(dims, output.dtype.numpy)


def _if(part: ControlPart, given: Sequence[Any], captured: Values) -> list[Any]:
    body_for = part.layer.declaration.body_for
    assert body_for is not None
    return part.run(body_for(part.number(given[0], "condition")), [], captured)


def _loop(part: ControlPart, given: Sequence[Any], captured: Values) -> list[Any]:
    """Iterate while the condition holds, at most as often as the trip count says."""
    trips = None if given[0] is None else int(part.number(given[0], "trip count"))
    going = given[1] is None or bool(part.number(given[1], "condition"))
    carried = list(given[2:])
    collected: list[list[Any]] = [[] for _ in part.body("body").outputs[1 + len(carried) :]]
    count = 0
    while going and (trips is None or count < trips):
        results = part.run("body", [np.array(count, np.int64), np.array(True), *carried], captured)
        going = bool(part.number(results[0], "condition"))
        carried = results[1 : 1 + len(carried)]
        for rows, value in zip(collected, results[1 + len(carried) :], strict=True):
            rows.append(part.keep(value))
        count += 1
    outputs = part.body("body").outputs[1 + len(carried) :]
    return [*carried, *(part.stack(rows, value) for rows, value in zip(collected, outputs, strict=True))]


def _scan(part: ControlPart, given: Sequence[Any], captured: Values) -> list[Any]:
    """Iterate over slices of the scanned inputs; states go from one iteration to the next."""
    values = [part.local(value) for value in given]
    if not part.form.batched:
        return _scan_one(part, values, captured)
    lengths, values = downloaded(values[0]), values[1:]
    batched = values if lengths is None else [lengths, *values]
    counts = {value.shape[0] if len(value.shape) else 0 for value in batched}
    if len(counts) != 1:
        raise InputError(f"{part.layer.op} {part.layer.name!r}: its inputs are of different batches: {sorted(counts)}")
    batches = []
    for index in range(counts.pop()):
        row = [part.slice_of(value, index, 0, slot) for slot, value in enumerate(values)]
        length = None if lengths is None else int(lengths[index])
        batches.append([part.keep(value) for value in _scan_one(part, row, captured, length)])
    outputs = part.body("body").outputs
    return [part.stack(column, value) for column, value in zip(zip(*batches, strict=True), outputs, strict=True)]


def _scan_one(part: ControlPart, values: Sequence[Any], captured: Values, length: int | None = None) -> list[Any]:
    """Scan one sequence, or its first `length` slices."""
    form: Scanning = part.form
    scanned = len(form.axes)
    states, inputs = list(values[: len(values) - scanned]), list(values[len(values) - scanned :])
    outputs = part.body("body").outputs[len(states) :]
    lengths = {int(value.shape[axis]) for value, axis in zip(inputs, form.axes, strict=True)}
    if len(lengths) != 1:
        raise InputError(f"Scan's inputs have different lengths along their axes: {sorted(lengths)}")
    total = lengths.pop() if length is None else length
    collected: list[list[Any]] = [[] for _ in outputs]
    first = len(values)  # slots of slices begin behind those of a batch's rows
    for step in range(total):
        at = [total - 1 - step if backward else step for backward in form.backward]
        cuts = zip(inputs, at, form.axes, range(first, first + scanned), strict=True)
        results = part.run("body", [*states, *(part.slice_of(*cut) for cut in cuts)], captured)
        states = results[: len(states)]
        for rows, value in zip(collected, results[len(states) :], strict=True):
            rows.append(part.keep(value))
    made = []
    for rows, axis, backward, value in zip(collected, form.output_axes, form.output_backward, outputs, strict=True):
        made.append(part.stack(rows[::-1] if backward else rows, value, axis))
    return [*states, *made]


_RUN: dict[type, Callable[[ControlPart, Sequence[Any], Values], list[Any]]] = {
    Branching: _if,
    Looping: _loop,
    Scanning: _scan,
}
