"""Runs a random graph, optimised and as it is, at all its sizes, and compares it with onnxruntime."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx

import perframe as pf
from fuzz.random_graphs.reference import run_plainly, spread
from perframe.execution.machine import downloaded

KINDS = ("wrong", "untyped", "refused")
FAST = 2e-5  # relative error that needs no explanation
ROUNDING = 4e-6  # relative error of a last step
TIMES = 8.0  # what rounding may do, in spreads of noise of its size
SUMS = frozenset(
    [
        "Conv",
        "ConvTranspose",
        "MatMul",
        "Gemm",
        "Einsum",
        "ReduceSum",
        "ReduceMean",
        "ReduceSumSquare",
        "ReduceL2",
        "ReduceL1",
        "LayerNormalization",
        "InstanceNormalization",
        "BatchNormalization",
        "LSTM",
        "GRU",
        "RNN",
        "AveragePool",
        "GlobalAveragePool",
        "LpPool",
        "LRN",
        "LpNormalization",
        "ReduceLogSumExp",
        "Softmax",
        "LogSoftmax",
        "CumSum",
        "Resize",
        "ReduceProd",
    ]
)
TINY = 2e-38  # numbers below are 0 to some processors


class Verdict(NamedTuple):
    """One of KINDS or "ok"; `where` says optimised or not, and `what` is what came."""

    kind: str
    where: str = ""
    what: str = ""
    culprit: str = ""  # the pass, where it is known

    @property
    def key(self) -> tuple[str, str]:
        """What stays the same while a graph is made smaller."""
        return self.kind, self.what.split(":")[0].split("[")[0][:60] if self.kind != "wrong" else ""


def judged(
    model: onnx.ModelProto, feeds: Sequence[dict[str, Any]], backend: str, ctx: Any = None, both: bool = True
) -> Verdict:
    """The first fault of the optimised model, else of the model as it is."""
    wanted = [run_plainly(model, feed) for feed in feeds]
    names = [output.name for output in model.graph.output]
    data = model.SerializeToString()
    for optimize in (True, False) if both else (True,):
        found = _judged(data, model, names, feeds, wanted, backend, ctx, optimize)
        if found.kind != "ok":
            return found
    return Verdict("ok")


def _judged(
    data: bytes,
    model: onnx.ModelProto,
    names: Sequence[str],
    feeds: Sequence[dict[str, Any]],
    wanted: Sequence[Sequence[Any]],
    backend: str,
    ctx: Any,
    optimize: bool,
) -> Verdict:
    where = "optimised" if optimize else "as it is"
    try:
        results = outcome(pf.load(data, optimize=optimize), names, feeds, backend, ctx)
    except pf.PerframeError as error:
        return Verdict("refused", where, f"{type(error).__name__}: {str(error)[:400]}")
    except Exception as error:
        return Verdict("untyped", where, place(error))
    for feed, made, want in zip(feeds, results, wanted, strict=True):
        wrong = difference(model, feed, names, made, want, ctx is not None)
        if wrong and not _reference_agrees(model, feed, names, made, ctx is not None):
            return Verdict("wrong", where, wrong)
    return Verdict("ok")


def outcome(
    model: pf.Model, names: Sequence[str], feeds: Sequence[dict[str, Any]], backend: str, ctx: Any
) -> list[list[Any]]:
    """The outputs of one worker for each feed."""
    made = []
    with pf.Worker(model, backend, ctx) as worker:
        for feed in feeds:
            worker.schedule({key: value for key, value in feed.items()})
            made.append([np.array(downloaded(worker.peek_output(name))) for name in names])
    return made


def difference(
    model: onnx.ModelProto,
    feed: dict[str, Any],
    names: Sequence[str],
    made: Sequence[Any],
    want: Sequence[Any],
    on_gpu: bool = False,
) -> str:
    """Describe the first difference that rounding does not explain; "" if there is none."""
    moved: list[Any] | None = None
    sums = any(node.op_type in SUMS for node in model.graph.node)
    for index, name in enumerate(names):
        got, other = made[index], np.asarray(want[index])
        if got.shape != other.shape:
            text, wrong = f"{name}: shape {got.shape}, not {other.shape}", None
        elif got.dtype != other.dtype:
            return f"{name}: dtype {got.dtype}, not {other.dtype}"
        else:
            wrong = _apart(got, other, sums) > FAST * _size(other) + TINY
            if not wrong.any():
                continue
            text = ""
        moved = spread(model, feed, want, on_gpu) if moved is None else moved
        if wrong is None:
            if np.isinf(moved[index]).all() and other.size:
                continue
            return text
        wrong = _apart(got, other, sums) > TIMES * moved[index] + ROUNDING * _size(other) + TINY
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            return f"{name}: {int(wrong.sum())} of {other.size} differ; at {at} {got[at]!s} for {other[at]!s}"
    return ""


def _reference_agrees(
    model: onnx.ModelProto, feed: dict[str, Any], names: Sequence[str], made: Sequence[Any], on_gpu: bool = False
) -> bool:
    """Whether ONNX's own evaluator gives what was made: onnxruntime takes liberties, too."""
    from onnx.reference import ReferenceEvaluator

    if 18 <= model.opset_import[0].version < 21:  # it has no DequantizeLinear of these opsets
        newer = onnx.ModelProto()
        newer.CopyFrom(model)
        newer.opset_import[0].version, model = 21, newer
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = [np.asarray(value) for value in ReferenceEvaluator(model).run(None, dict(feed))]
    except Exception:  # it supports less
        return False
    return not difference(model, feed, names, made, wanted, on_gpu)


def _size(value: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(value), np.abs(value.astype(np.float64)), 0.0)


def _apart(got: Any, want: Any, sums: bool) -> Any:
    """The distance of each element; 0 for equal ones, NaN among them, and infinite where only one is finite. A sum in
    another order may be NaN for infinite, so that behind `sums` one is as good as the other.
    """
    if want.dtype.kind not in "fiub":
        return (got != want).astype(np.float64)
    with np.errstate(all="ignore"):
        apart = np.abs(got.astype(np.float64) - want.astype(np.float64))
        same = got == want
        if want.dtype.kind == "f":
            same |= np.isnan(got) & np.isnan(want)
            if sums:
                same |= ~np.isfinite(got) & ~np.isfinite(want)
        elif want.dtype.kind in "iu":
            apart = np.where(same, 0.0, np.maximum(apart, 1.0))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def place(error: BaseException) -> str:
    """An exception, and the last lines of ours that it came through."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "perframe" in f.filename]
    places = [f"{Path(f.filename).parent.name}/{Path(f.filename).name}:{f.lineno} {f.name}" for f in frames[-3:]]
    return f"{type(error).__name__}: [{' < '.join(reversed(places))}] {str(error)[:300]}"


def culprit(model: onnx.ModelProto, feeds: Sequence[dict[str, Any]], backend: str, ctx: Any = None) -> str:
    """The pass after whose run the graph fails: the first that does, found by halving."""
    wanted = [run_plainly(model, feed) for feed in feeds]
    names, data = [output.name for output in model.graph.output], model.SerializeToString()

    def fails(runs: int) -> bool:
        try:
            made = outcome(pf.load(data, stop_after=runs), names, feeds, backend, ctx)
        except Exception:
            return True
        runs = zip(feeds, made, wanted, strict=True)
        return any(
            difference(model, feed, names, got, want, ctx is not None)
            and not _reference_agrees(model, feed, names, got, ctx is not None)
            for feed, got, want in runs
        )

    if fails(0):
        return "no pass: it fails with none"
    low, high = 0, 64
    if not fails(high):
        return "no pass alone"
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    try:
        report = pf.load(data, stop_after=high).report
        ran = [run.name for run in report.passes if run.changes] if report else []
        return ran[-1] if ran and len(ran) >= high else "the run after " + ", ".join(ran[-2:])
    except Exception as error:
        before = pf.load(data, stop_after=low).report
        ran = [run.name for run in before.passes if run.changes] if before else []
        return f"{place(error)} (after {', '.join(ran[-2:])})"
