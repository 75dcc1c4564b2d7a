"""Comparison of a model's values: with the definitions of its layers, another model, or another runtime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from perframe.backends import BackendName, backend_type, evaluator, waiting_for_kernels
from perframe.backends.precision import FULL, Precision
from perframe.errors import BackendError, InferenceError, InputError, MissingExtraError
from perframe.execution.layer_check import (
    FLOATS,
    Comparison,
    LayerCheck,
    apart,
    distances,
    largest_of,
    limit_of,
    with_all_copies,
    with_all_values,
)
from perframe.execution.once import by_name
from perframe.execution.worker import Worker
from perframe.exporters.saving import save
from perframe.graphics import GLContext
from perframe.importers.loading import load
from perframe.inspection.bisecting import outputs_of
from perframe.inspection.page import Mark
from perframe.ir import Array, Model
from perframe.safety.notebooks import preformatted
from perframe.safety.records import dataclass
from perframe.tensor import BackendType, DataType, Tensor

if TYPE_CHECKING:
    from rich.console import Console


ONNXRUNTIME = "onnxruntime"
PROVIDERS = ["CPUExecutionProvider"]
NO_STATES: Mapping[str, str] = MappingProxyType({})
COLUMNS = 100  # of a table in an interpreter or a notebook
INTRODUCED = 10  # times the largest error of its inputs: then a layer's error is its own


@dataclass(frozen=True)
class ValueComparison(Comparison):
    """The comparison of a value with the value of the same name in another model. `inherited` is the largest relative
    error of the layer's inputs.
    """

    inherited: float = 0.0

    @property
    def is_origin(self) -> bool:
        """Whether the error begins at this layer: its inputs agree much better than its output."""
        return not self.agrees and self.relative > INTRODUCED * self.inherited


class Comparisons(list[Comparison]):
    """The comparisons of a model's values, which print as a table: the largest errors first."""

    def __init__(self, comparisons: Iterable[Comparison], outputs: Sequence[str] = ()) -> None:
        super().__init__(comparisons)
        self._outputs = outputs

    def __repr__(self) -> str:
        from perframe.safety.console import SafeConsole

        text = StringIO()
        show(self, SafeConsole(file=text, width=COLUMNS), self._outputs)
        return text.getvalue().rstrip()

    def _repr_html_(self) -> str:
        return preformatted(repr(self))


def compare(
    model: Model | str | Path | bytes | IO[bytes] | Any,
    inputs: Mapping[str, Any] | Any,
    backend: BackendName = BackendType.CPU,
    ctx: GLContext | None = None,
    against: Model | str | Path | bytes | IO[bytes] | Any = None,
    weights: str = DataType.FLOAT32,
    activations: str = DataType.FLOAT32,
    carry: Mapping[str, str] = NO_STATES,
    runs: int = 1,
) -> Comparisons:
    """Run once, and compare values. Blocks. `inputs` are those of `pf.run`.

    With `carry`, the run reads the states that `runs - 1` runs before it have made on the same inputs and backend.

    Without `against`, each layer's outputs are compared with its NumPy definition on the same inputs. Fused layers
    count as one layer, and the layers of a loop's body are compared once for each run of the body.

    `against` is another model, or anything that `load` takes, or "onnxruntime", or the model before its passes, or
    arrays by the names of values. Then all values that both have by name are compared, in run order, as
    ValueComparison. The outputs come from an ordinary run, with everything that a backend fuses. `is_origin` marks the
    layers where an error begins. Raises InputError if there is no value to compare, and MissingExtraError without
    onnxruntime.

    `weights` and `activations` are those of a Worker. If one is not "float32", and without `against`, all values are
    compared with those of a run in float32 on the same backend.
    """
    precision, backend = Precision(weights, activations), backend_type(backend, ctx)
    loaded = model if isinstance(model, Model) else load(model)
    inputs = by_name(loaded, inputs, "pf.compare")
    if runs != 1 and not carry:
        raise InputError("runs= is for carry={output: input}: without states all runs are alike")
    if carry:
        inputs |= states_after(runs - 1, loaded, inputs, carry, backend, ctx, weights, activations)
    if against is None and precision == FULL:
        check = LayerCheck(evaluator(), backend, strict=False)
        with Worker(loaded, backend, ctx, check=check) as worker:
            worker.schedule(inputs)
        return Comparisons(check.comparisons)
    limit, names = limit_of(precision), loaded.output_names
    if precision.has_halves:
        found = all_halved_values(loaded, inputs, backend, ctx, precision)
    else:
        found = all_values(loaded, inputs, backend, ctx, precision)
        found |= outputs_of(loaded, inputs, backend, ctx, precision)
    if against is None:
        return Comparisons(compared_values(loaded, found, all_values(loaded, inputs, backend, ctx), limit), names)
    wanted: Mapping[str, Array]
    if isinstance(against, Mapping):
        wanted = against
    elif isinstance(against, str) and against == ONNXRUNTIME:
        source = loaded if isinstance(model, Model) else load(model, optimize=False)
        wanted = onnxruntime_values(source, inputs, None if isinstance(model, Model) else model)
    else:
        wanted = all_values(against if isinstance(against, Model) else load(against), inputs, BackendType.CPU)
    return Comparisons(compared_values(loaded, found, wanted, limit), names)


def all_values(
    model: Model,
    inputs: Mapping[str, Any],
    backend: BackendName = BackendType.CPU,
    ctx: GLContext | None = None,
    precision: Precision = FULL,
) -> dict[str, Array]:
    """Run a model once, and return the tensors that its layers make, by name."""
    whole = with_all_values(model)
    with waiting_for_kernels(), Worker(whole, backend, ctx, **asdict(precision)) as runner:
        runner.schedule(dict(inputs))
        return _arrays({name: runner.peek_output(name) for name in whole.output_names})


def all_halved_values(
    model: Model, inputs: Mapping[str, Any], backend: BackendName, ctx: GLContext | None, precision: Precision
) -> dict[str, Array]:
    """Run a model with halves, and return the tensors that its layers make, by name. They come from a run with copies:
    what a run keeps to the end has no halves. The model's outputs come from a run without copies.
    """
    whole, copies = with_all_copies(model)
    chosen = asdict(precision)
    with (
        waiting_for_kernels(),
        Worker(whole, backend, ctx, **chosen) as runner,
        Worker(model, backend, ctx, **chosen) as plain,
    ):
        runner.schedule(dict(inputs))
        plain.schedule(dict(inputs))
        values = {name: runner.peek_output(copy) for name, copy in copies.items()}
        return _arrays(values | {name: plain.peek_output(name) for name in model.output_names})


def _arrays(values: Mapping[str, Any]) -> dict[str, Array]:
    return {name: value.download_to_array() for name, value in values.items() if isinstance(value, Tensor)}


def onnxruntime_values(model: Model, inputs: Mapping[str, Any], file: Any = None) -> dict[str, Array]:
    """Run a model once in onnxruntime, without its optimizations, and return all values, by name.

    The outputs are those of `file`, if that is the path or the bytes of an ONNX file: onnxruntime then reads what the
    user wrote, and not what perframe writes.
    """
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("onnxruntime", "bench", "a comparison with onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    # Windows keeps files that the session has mapped
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "model.onnx"
        save(with_all_values(model), path)
        try:
            made = _run(onnxruntime.InferenceSession(path, options, providers=PROVIDERS), inputs)
            if isinstance(file, bytes) or str(file).endswith(".onnx"):
                whole = file if isinstance(file, bytes) else str(file)
                made |= _run(onnxruntime.InferenceSession(whole, options, providers=PROVIDERS), inputs)
            return made
        except Exception as error:  # onnxruntime's exceptions have no common class
            raise InferenceError(f"onnxruntime cannot run {model.name}: {error}") from error


def _run(session: Any, inputs: Mapping[str, Any]) -> dict[str, Array]:
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def states_after(
    runs: int,
    model: Model,
    inputs: Mapping[str, Any],
    carry: Mapping[str, str],
    backend: BackendName,
    ctx: GLContext | None,
    weights: str,
    activations: str,
) -> dict[str, Array]:
    """Return the states after some runs on the same inputs. They begin with those among the inputs, or else with zeros.
    Raises InputError.
    """
    if runs < 0:
        raise InputError(f"runs is a number of at least 1, and got {runs + 1}")
    begin = {name: inputs[name] for name in carry.values() if name in inputs}
    given = {name: value for name, value in inputs.items() if name not in begin}
    with Worker(model, backend, ctx, weights=weights, activations=activations, carry=carry) as worker:
        worker.reset(begin)
        for _ in range(runs):
            worker.schedule(given)
        return {name: worker.state(name).numpy() for name in carry.values()}


def compared_values(
    model: Model, found: Mapping[str, Array], wanted: Mapping[str, Array], limit: float = FLOATS
) -> list[ValueComparison]:
    """Compare the values that both have, in the run order of `model`: they agree within `limit` of the largest. Raises
    InputError if they have none in common.
    """
    made, errors = list[ValueComparison](), dict[str, float]()
    for layer in model.layers:
        inherited = max((errors.get(name, 0.0) for name in layer.input_names), default=0.0)
        for name in layer.output_names:
            if name not in found or name not in wanted or found[name].shape != wanted[name].shape:
                errors[name] = inherited  # unknown: what came in continues
                continue
            one, other = found[name], wanted[name]
            if one.dtype != other.dtype and one.dtype.kind == other.dtype.kind:
                one, other = one.astype(np.float64), other.astype(np.float64)
            if one.dtype != other.dtype:
                errors[name] = inherited
                continue
            comparison = apart(layer, name, one, other, limit)
            errors[name] = comparison.relative
            made.append(
                ValueComparison(**{**comparison.__dict__, "dtype": str(found[name].dtype)}, inherited=inherited)
            )
    if not made:
        raise InputError(f"{model.name} has no value in common with the other model: their values have other names")
    return made


def error_marks(comparisons: Sequence[Comparison]) -> dict[str, Mark]:
    """The largest relative error of each layer, as a mark for `write_page`."""
    errors: dict[str, float] = {}
    for one in comparisons:
        errors[one.layer] = max(errors.get(one.layer, 0.0), min(one.relative, 1e30))
    return {"error": Mark(errors)}


def show(comparisons: Sequence[Comparison], console: Console, outputs: Sequence[str] = (), most: int = 20) -> None:
    """Print the largest errors, the errors of the model's outputs, and the layer where errors begin."""
    from rich.text import Text

    values = [one for one in comparisons if isinstance(one, ValueComparison)]
    origins = [one for one in values if one.is_origin]
    _show_rows(sorted(comparisons, key=lambda one: -one.relative)[:most], console)
    wrong = [one for one in comparisons if not one.agrees]
    if not values:
        count = f"{len(comparisons)} outputs of layers"
        console.print(f"\n{count}, {len(wrong)} further from their definitions than rounding explains")
        if wrong:
            console.print(Text(f"the first: {wrong[0]}", "bold red"))
        return
    console.print(f"\n{len(values)} values in common, {len(wrong)} further apart than rounding explains")
    for one in values:
        if one.output in outputs:
            console.print(Text(f"output {one.output!r}: {one.apart:.3g} apart, {one.relative:.2g} of the largest"))
    if origins:
        first = origins[0]
        where = f"layer {first.layer!r} ({first.op}), in {first.output!r}"
        console.print(Text(f"the difference begins at {where}", "bold red"))


def _show_rows(comparisons: Sequence[Comparison], console: Console) -> None:
    """Print comparisons, one line each. A name that is too long for that gets another line."""
    from rich.text import Text

    rows = [(one, _figures(one)) for one in comparisons]
    heads = ("apart", "of the largest", "inputs")[: len(rows[0][1]) if rows else 2]
    widths = [max(len(one) for one in column) for column in zip(heads, *(figures for _, figures in rows), strict=True)]
    left = max(console.width - sum(widths) - 2 * len(widths), 0)

    def line(text: str, figures: Sequence[str], style: str) -> Text:
        numbers = "".join(f"  {figure:>{width}}" for figure, width in zip(figures, widths, strict=True))
        return Text(f"{text:<{left}}{numbers}", style)

    console.print(line("layer, operator and output", heads, "dim"))
    for one, figures in rows:
        begins = one.is_origin if isinstance(one, ValueComparison) else not one.agrees
        style = "" if one.agrees else "bold red" if begins else "red"
        name = one.layer if one.layer == one.output else f"{one.layer} → {one.output}"
        text = f"{name}  {one.op} {one.dtype} {one.shape}"
        if len(text) > left:
            console.print(Text(name, style))
            text = f"  {one.op} {one.dtype} {one.shape}"
        if len(text) > left:
            console.print(Text(text, style))
            text = ""
        console.print(line(text, figures, style))


def _figures(one: Comparison) -> Sequence[str]:
    figures = (f"{one.apart:.3g}", f"{one.relative:.2g}")
    return (*figures, f"{one.inherited:.2g}") if isinstance(one, ValueComparison) else figures


def relative_difference(ours: Array, theirs: Array) -> float:
    """The largest difference between two outputs, relative to the largest of theirs.

    Equal infinities do not differ, and NaN in one of the outputs alone is an infinite difference. Raises BackendError
    if the shapes differ.
    """
    if ours.shape != theirs.shape:
        raise BackendError(f"shape {ours.shape}, the peer's {theirs.shape}")
    a, b = ours.astype(float), theirs.astype(float)
    return float(np.max(distances(a, b), initial=0)) / (largest_of(b) or 1)


def relative_differences(ours: Sequence[Array], theirs: Sequence[Array]) -> list[float]:
    """The relative difference of each output. Raises BackendError if their number or their shapes differ."""
    if len(ours) != len(theirs):
        raise BackendError(f"{len(ours)} outputs, the peer has {len(theirs)}")
    return [relative_difference(a, b) for a, b in zip(ours, theirs, strict=True)]
