"""The outcome of a case: a perframe error, another error, or results, and whether onnxruntime's results are equal."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

import perframe as pf
from fuzz.cases import Case
from perframe.execution.machine import downloaded
from perframe.files.reading import is_own
from perframe.importers.formats import is_litert, is_sentis

FAILURES = ("other", "signal", "hang", "memory", "differs")
RANDOM = ("Random", "Bernoulli", "Multinomial", "Dropout")
REFERENCE = "ONNX's reference evaluator gives what perframe gives"
OUTCOMES = (*FAILURES, "explained", "typed", "agrees", "ran")


class Outcome(NamedTuple):
    """One of OUTCOMES, with details."""

    kind: str
    detail: str = ""


def run(
    case: Case, backend: str, ctx: Any, precision: str = "float32"
) -> tuple[Outcome, list[tuple[dict[str, Any], dict[str, Any]]]]:
    """Load and run a case; the outcome is "ran" where it gave results, which follow with their inputs."""
    runs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    try:
        with case.source() as source:
            model = pf.load(source, optimize=case.optimize, key=case.key)
        halves: Any = {} if precision == "float32" else {"weights": precision, "activations": precision}
        with pf.Worker(model, backend, ctx, **halves) as worker:
            by_chance = any(word in op for word in RANDOM for op in _layers(model))
            for inputs in feeds(model, case.inputs):
                for _ in range(2):
                    made = outputs(worker, model, inputs)
                    runs.append((inputs, made))
                wrong = difference(made, runs[-2][1], exact=True)
                if wrong and not by_chance:
                    return Outcome("differs", f"from run to run: {wrong}"), runs
    except pf.PerframeError as error:
        if runs:  # other sizes are refused where they do not fit
            return Outcome("ran"), runs
        return Outcome("typed", f"{type(error).__name__}: {error}"), []
    except MemoryError as error:
        return Outcome("memory", _where(error)), []
    except Exception as error:
        return Outcome("other", _where(error)), []
    return Outcome("ran"), runs


def _layers(model: pf.Model) -> Iterator[str]:
    """The operators of a model and its bodies."""
    for layer in model.layers:
        yield layer.op
        for body in layer.attributes.get("bodies", {}).values():
            yield from _layers(body)


def outputs(worker: Any, model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """One run's, on the host."""
    worker.schedule(dict(inputs))
    return {name: _copied(downloaded(worker.peek_output(name))) for name in model.output_names}


def _copied(value: Any) -> Any:
    return [_copied(item) for item in value] if isinstance(value, list) else None if value is None else np.array(value)


def feeds(model: Any, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The inputs as they are, and with other sizes of the dims that have names."""
    yield given
    names = {dim for value in model.inputs for dim in value.shape or () if isinstance(dim, str)}
    if not names or any(not isinstance(x, np.ndarray) for x in given.values()):
        return
    for more in (1, 2):
        other = dict(given)
        for value in model.inputs:
            array = given.get(value.name)
            if array is not None and value.shape is not None and len(value.shape) == array.ndim and array.size:
                shape = [s + more * isinstance(d, str) for s, d in zip(array.shape, value.shape, strict=True)]
                other[value.name] = np.resize(array, shape)
        yield other


def _where(error: BaseException) -> str:
    """An exception, and the last lines of ours that it came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "perframe" in f.filename]
    places = [f"{Path(f.filename).parent.name}/{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames[-3:]]
    return f"{type(error).__name__}: {str(error)[:300]} [{' < '.join(reversed(places))}]"


def compared(case: Case, runs: list[tuple[dict[str, Any], dict[str, Any]]], precision: str = "float32") -> Outcome:
    """Our results next to onnxruntime's; "ran" where it has none."""
    if case.key or is_litert(case.data) or is_sentis(case.data) or is_own(case.data):
        return Outcome("ran", "a format that onnxruntime does not read")
    import onnxruntime

    if any(word in _operators(case) for word in RANDOM):
        return Outcome("ran", "numbers by chance")
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    agreed = False
    try:
        with case.source() as source:
            session = onnxruntime.InferenceSession(
                source if isinstance(source, bytes) else str(source), options, providers=["CPUExecutionProvider"]
            )
        names, wanted = [o.name for o in session.get_outputs()], {i.name for i in session.get_inputs()}
    except Exception as error:
        return Outcome("ran", f"onnxruntime: {str(error)[:200]}")
    for inputs, made in runs[::2]:
        try:
            results = session.run(None, {name: x for name, x in inputs.items() if name in wanted})
        except Exception as error:
            return Outcome("agrees") if agreed else Outcome("ran", f"onnxruntime: {str(error)[:200]}")
        wrong = difference(made, dict(zip(names, results, strict=True)), rounded=precision == "float16")
        if wrong:
            text = f"{case.name} {_operators(case)}: {wrong}"
            if _reference_agrees(case, inputs, made):
                return Outcome("explained", f"{REFERENCE} | {text}")
            return explained(Outcome("differs", text), (*case.done, *(["extreme"] if _is_extreme(case) else [])))
        agreed = True
    return Outcome("agrees")


def _reference_agrees(case: Case, inputs: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    """Whether ONNX's own evaluator agrees with perframe. It supports less; its errors do not count."""
    from onnx.reference import ReferenceEvaluator

    try:
        with case.source() as source:
            evaluator = ReferenceEvaluator(onnx.load(source) if not isinstance(source, bytes) else source)
        with np.errstate(all="ignore"):
            results = evaluator.run(None, dict(inputs))
    except Exception:
        return False
    names: Any = evaluator.output_names
    return not difference(made, dict(zip(names, results, strict=True)))


def _is_extreme(case: Case) -> bool:
    """Whether it was given numbers that are not finite, or whose squares are not in float32."""
    model = onnx.ModelProto.FromString(case.data)
    nodes = [node for graph in _graphs(model) for node in graph.node]
    attributes = [attribute for node in nodes for attribute in node.attribute]
    tensors = [tensor for graph in _graphs(model) for tensor in getattr(graph, "initializer", ())]
    tensors += [attribute.t for attribute in attributes if attribute.type == onnx.AttributeProto.TENSOR]
    given = [np.array([attribute.f, *attribute.floats]) for attribute in attributes]
    given += [x for value in case.inputs.values() for x in (value if isinstance(value, list) else [value])]
    with suppress(Exception):  # tensors may be damaged
        given += [onnx.numpy_helper.to_array(tensor) for tensor in tensors]
    return any(_are_extreme(np.asarray(numbers)) for numbers in given)


def _are_extreme(numbers: Any) -> bool:
    return numbers.dtype.kind in "fc" and not bool((np.abs(numbers) < 1e18).all())


def explained(outcome: Outcome, done: Sequence[str] = ()) -> Outcome:
    """A known difference, with its reason. A pattern may also match the mutations of the seed."""
    text = "; ".join((outcome.detail, *done))
    for pattern, reason in known_differences():
        if re.search(pattern, text):
            return Outcome("explained", f"{reason} | {outcome.detail}")
    return outcome


@cache
def known_differences() -> list[tuple[str, str]]:
    """(pattern, reason), from known_differences.txt."""
    found, reason = [], ""
    for line in (Path(__file__).parent / "known_differences.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            found.append((line, reason))
    return found


def _operators(case: Case) -> str:
    """All operators of a case that is an ONNX model."""
    model = onnx.ModelProto.FromString(case.data)
    return ",".join(sorted({node.op_type for graph in _graphs(model) for node in graph.node}))


def _graphs(model: onnx.ModelProto) -> list[Any]:
    """The model's graph, its functions, and all graphs within their nodes."""
    graphs: list[Any] = [model.graph, *model.functions]
    for graph in graphs:
        for node in graph.node:
            graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return graphs


def difference(made: Mapping[str, Any], wanted: Mapping[str, Any], exact: bool = False, rounded: bool = False) -> str:
    """Describe the first difference; "" if there is none. Where values between layers were rounded to halves, whole
    numbers may differ, and so may what comes from numbers that no half holds.
    """
    for name, want in wanted.items():
        if name in made:
            wrong = _different(made[name], want, exact, rounded)
            if wrong:
                return f"{name} {wrong}"
    return ""


def _different(got: Any, want: Any, exact: bool, rounded: bool) -> str:
    if isinstance(want, list) or want is None or got is None or isinstance(got, list):
        if want is None or got is None:
            return "" if want is None and got is None else f"is {type(got).__name__} for {type(want).__name__}"
        if not isinstance(got, list) or not isinstance(want, list) or len(got) != len(want):
            return "is another sequence"
        return next(filter(None, (_different(a, b, exact, rounded) for a, b in zip(got, want, strict=True))), "")
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape} for {want.shape}"
    if want.dtype.kind in "OUS":
        return "" if np.array_equal(got.astype(str), want.astype(str)) else "texts"
    if got.dtype != want.dtype:
        return f"dtype {got.dtype} for {want.dtype}"
    if got.dtype.kind not in "biufc":
        got, want = got.astype(np.float32), want.astype(np.float32)
    if exact:
        return "" if np.array_equal(got, want, equal_nan=got.dtype.kind in "fc") else "values"
    if want.dtype.kind in "biu":
        wrong = (got != want) & (not rounded)
    else:
        with np.errstate(all="ignore"):
            finite = np.abs(want[np.isfinite(want)])
            most = float(finite.max()) if finite.size else 0.0
            loose = 2e-2 if want.dtype == np.float16 or rounded else 2e-3
            least = 2e-2 if rounded else 1e-4
            wrong = ~np.isclose(got, want, loose, 1e-5 + least * most, equal_nan=True)
            if rounded and not (np.isfinite(got) & np.isfinite(want) & (np.abs(want) < 65504)).all():
                wrong[:] = False
    if not wrong.any():
        return ""
    at = tuple(int(index[0]) for index in np.nonzero(wrong))
    return f"values {want.dtype}: {int(wrong.sum())} of {want.size}, at {at} {got[at]} for {want[at]}"
