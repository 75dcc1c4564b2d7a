"""Makes a failing graph smaller, as long as it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from fuzz.random_graphs.drawing import info, names_read
from fuzz.random_graphs.reference import run_plainly

Feeds = list[dict[str, Any]]
SECONDS = 20.0


@dataclass
class Subject:
    """A graph in parts, which are changed one at a time."""

    model: onnx.ModelProto
    feeds: Feeds

    def copy(self) -> Subject:
        """Return a subject that can be changed."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        return Subject(model, [dict(feed) for feed in self.feeds])


def minimised(
    model: onnx.ModelProto, feeds: Feeds, fails: Callable[[onnx.ModelProto, Feeds], bool], seconds: float = SECONDS
) -> tuple[onnx.ModelProto, Feeds]:
    """Return the smallest graph found that still fails."""
    best, end = Subject(model, feeds), time.monotonic() + seconds
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for step in (
            _fewer_feeds,
            _fewer_outputs,
            _earlier_outputs,
            _later_inputs,
            _without_nodes,
            _fixed_dims,
            _sizes,
            _values,
        ):
            again = True
            while again and time.monotonic() < end:
                again = False
                for trial in step(best):
                    if time.monotonic() > end:
                        break
                    pruned(trial)
                    if _is_valid(trial) and fails(trial.model, trial.feeds):
                        best, again, changed = trial, True, True
                        break
                if step is _values:
                    break
    return best.model, best.feeds


def _is_valid(trial: Subject) -> bool:
    try:
        if not trial.model.graph.node or not trial.model.graph.output:
            return False
        onnx.checker.check_model(trial.model, full_check=True)
        for feed in trial.feeds:
            run_plainly(trial.model, feed)
    except Exception:
        return False
    return True


def pruned(trial: Subject) -> None:
    """Remove what no output needs."""
    graph = trial.model.graph
    needed, kept = {value.name for value in graph.output}, []
    for node in reversed(graph.node):
        if needed & set(node.output):
            kept.append(node)
            needed.update(names_read([node]))
    nodes = kept[::-1]
    del graph.node[:]
    graph.node.extend(nodes)
    for field in (graph.initializer, graph.input):
        stay = [item for item in field if item.name in needed]
        del field[:]
        field.extend(stay)
    del graph.value_info[:]
    names = {value.name for value in graph.input}
    trial.feeds = [{key: value for key, value in feed.items() if key in names} for feed in trial.feeds]


def _fewer_feeds(best: Subject) -> Iterator[Subject]:
    for index in range(len(best.feeds) if len(best.feeds) > 1 else 0):
        trial = best.copy()
        del trial.feeds[index]
        yield trial


def _fewer_outputs(best: Subject) -> Iterator[Subject]:
    for index in range(len(best.model.graph.output) if len(best.model.graph.output) > 1 else 0):
        trial = best.copy()
        del trial.model.graph.output[index]
        yield trial


def _made(subject: Subject, index: int = 0) -> dict[str, Any]:
    """All values that the nodes make, by name."""
    whole = subject.copy().model
    names = [name for node in whole.graph.node for name in node.output if name]
    del whole.graph.output[:]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    try:
        return dict(zip(names, run_plainly(whole, subject.feeds[index]), strict=True))
    except Exception:
        return {}


def _earlier_outputs(best: Subject) -> Iterator[Subject]:
    """One output, which is a value from further up."""
    values = _made(best)
    now = {value.name for value in best.model.graph.output}
    for name, value in values.items():
        if isinstance(value, np.ndarray) and now != {name}:
            trial = best.copy()
            del trial.model.graph.output[:]
            trial.model.graph.output.append(info(name, value, [None] * value.ndim))
            before = len(trial.model.graph.node)
            pruned(trial)
            if len(trial.model.graph.node) < before or name in now:
                yield trial


def _later_inputs(best: Subject) -> Iterator[Subject]:
    """A value that a node makes becomes an input or a constant."""
    made = [_made(best, index) for index in range(len(best.feeds))]
    for node in reversed(best.model.graph.node):
        for name in node.output:
            if not all(isinstance(values.get(name), np.ndarray) for values in made):
                continue
            if name in {value.name for value in best.model.graph.output}:
                continue
            trial = best.copy()
            graph = trial.model.graph
            for other in graph.node:
                for index, output in enumerate(other.output):
                    if output == name:
                        other.output[index] = f"{name}_unused"
            dims: Any = list(made[0][name].shape)
            if len({values[name].shape for values in made}) > 1 or any(
                d.dim_param for v in graph.input for d in v.type.tensor_type.shape.dim
            ):
                dims = [f"{name}_{axis}" for axis in range(made[0][name].ndim)]
            graph.input.append(info(name, made[0][name], dims))
            for feed, values in zip(trial.feeds, made, strict=True):
                feed[name] = values[name]
            yield trial


def _without_nodes(best: Subject) -> Iterator[Subject]:
    """A node's first output is one of its inputs."""
    outputs = {value.name for value in best.model.graph.output}
    for at, node in enumerate(best.model.graph.node):
        if node.output[0] in outputs:
            continue
        for name in node.input:
            trial = best.copy()
            graph = trial.model.graph
            del graph.node[at]
            for other in graph.node:
                for index, read in enumerate(other.input):
                    if read == node.output[0]:
                        other.input[index] = name
            yield trial


def _fixed_dims(best: Subject) -> Iterator[Subject]:
    """Inputs with the sizes that they have."""
    for at, value in enumerate(best.model.graph.input):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value"):
                sizes = {feed[value.name].shape[axis] for feed in best.feeds if value.name in feed}
                if len(sizes) == 1:
                    trial = best.copy()
                    trial.model.graph.input[at].type.tensor_type.shape.dim[axis].dim_value = sizes.pop()
                    yield trial


def _sizes(best: Subject) -> Iterator[Subject]:
    """One size everywhere, or along one axis, becomes 1 or less."""
    arrays = {x.name: numpy_helper.to_array(x) for x in best.model.graph.initializer}
    given = {**arrays, **best.feeds[0]}
    sizes = {size for array in given.values() for size in array.shape if size > 1}
    for size in sorted(sizes, reverse=True):
        for smaller in dict.fromkeys((1, 2, size // 2, size - 1)):
            if smaller < size:
                yield _with_size(best, size, smaller, None)
    if len(best.feeds) == 1:
        for name, array in given.items():
            for axis, size in enumerate(array.shape):
                for smaller in (1, 2):
                    if size > smaller:
                        yield _with_size(best, size, smaller, (name, axis))


def _with_size(best: Subject, size: int, smaller: int, only: tuple[str, int] | None) -> Subject:
    trial = best.copy()

    def cut(name: str, array: Any) -> Any:
        for axis, have in enumerate(array.shape):
            if (only is None and have == size) or only == (name, axis):
                array = np.take(array, range(smaller), axis)
        if only is None and array.dtype == np.int64 and array.ndim == 1 and array.size < 8:
            array = np.where(array == size, smaller, array)
        return np.ascontiguousarray(array)

    graph = trial.model.graph
    for tensor in graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(cut(tensor.name, numpy_helper.to_array(tensor)), tensor.name))
    trial.feeds = [{name: cut(name, array) for name, array in feed.items()} for feed in trial.feeds]
    for value in graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value") and ((only is None and dim.dim_value == size) or only == (value.name, axis)):
                dim.dim_value = smaller
    return trial


def _values(best: Subject) -> Iterator[Subject]:
    """Simpler numbers."""
    for simple in (np.ones_like, lambda x: np.round(x), lambda x: np.round(x, 2)):
        for name in list(best.feeds[0]):
            if best.feeds[0][name].dtype.kind == "f" and len(best.feeds) == 1:
                trial = best.copy()
                with np.errstate(all="ignore"):
                    made = simple(trial.feeds[0][name])
                if not np.array_equal(made, trial.feeds[0][name], equal_nan=True):
                    trial.feeds[0][name] = made
                    yield trial
        for index, tensor in enumerate(best.model.graph.initializer):
            array = numpy_helper.to_array(tensor)
            if array.dtype.kind == "f":
                trial = best.copy()
                with np.errstate(all="ignore"):
                    made = np.asarray(simple(array), array.dtype)
                if not np.array_equal(made, array, equal_nan=True):
                    trial.model.graph.initializer[index].CopyFrom(numpy_helper.from_array(made, tensor.name))
                    yield trial


def one_line(model: onnx.ModelProto) -> str:
    """The graph in a line: its operators, with shapes."""
    shapes = {
        v.name: [d.dim_param or d.dim_value or "?" for d in v.type.tensor_type.shape.dim] for v in model.graph.input
    }
    fixed = {x.name: list(x.dims) for x in model.graph.initializer}

    def said(name: str) -> str:
        return f"{name}{shapes[name]}" if name in shapes else f"const{fixed[name]}" if name in fixed else name

    return "; ".join(f"{','.join(n.output)} = {n.op_type}({', '.join(map(said, n.input))})" for n in model.graph.node)
