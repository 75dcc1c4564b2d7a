"""`perframe compare`: a model's layers against their definitions, or its values against another model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perframe.command_line import options
from perframe.command_line.options import takes_key
from perframe.command_line.terminal import console, progress_bar, say_json

if TYPE_CHECKING:
    from perframe.backends import BackendName
    from perframe.backends.precision import Precision
    from perframe.execution.layer_check import Comparison
    from perframe.inspection.bisecting import Culprit
    from perframe.ir import Model

UNOPTIMIZED = "unoptimized"


@takes_key
def compare(
    model: options.ModelName,
    given: options.GivenInputs = None,
    backend: options.BackendOption = "auto",
    against: Annotated[
        str,
        typer.Option(
            metavar="onnxruntime|unoptimized|MODEL", help="Reference to compare with. Default: each layer's definition."
        ),
    ] = "",
    html: options.HtmlPage = None,
    as_json: options.AsJson = False,
    seed: options.Seed = 0,
    dims: options.Dims = "",
    weights: options.Weights = "float32",
    activations: options.Activations = "float32",
    carry: options.Carry = "",
    runs: Annotated[
        int, typer.Option(min=1, metavar="N", help="With --carry: compare this run; those before make the states.")
    ] = 1,
    signature: options.Signature = None,
) -> None:
    """Run a model layer by layer, and compare each layer with its definition, or with another model that has the same
    values, or, for float16 and bfloat16, with a run in float32; exit status 1 if one differs.
    """
    from rich.text import Text

    from perframe.backends.precision import Precision
    from perframe.command_line.sources import parse_carry, parse_dims
    from perframe.inspection.comparison import error_marks, show
    from perframe.inspection.page import write_page

    (place,) = options.check_backends([backend])
    precision, carried = Precision(weights, activations), (parse_carry(carry), runs)
    found = examine(model, against, given or (), place, parse_dims(dims), seed, precision, carried, signature)
    if html is not None:
        write_page(html, found.model, None, error_marks(found.comparisons), found.dims, model)
    if as_json:
        say_json(rows_of(found))
    else:
        show(found.comparisons, console(), found.model.output_names)
        if found.culprit is not None:
            console().print(Text(str(found.culprit), "bold red"))
    if not all(one.agrees for one in found.comparisons):
        raise typer.Exit(1)


@dataclass(frozen=True)
class Compared:
    """A model and the comparisons of its values."""

    model: Model
    dims: Mapping[str, int]
    comparisons: Sequence[Comparison]
    culprit: Culprit | None = None  # the pass from which on outputs differ


def examine(
    name: str,
    against: str,
    given: Sequence[str],
    backend: BackendName,
    dims: Mapping[str, int],
    seed: int,
    precision: Precision,
    carried: tuple[Mapping[str, str], int],
    signature: str | None = None,
) -> Compared:
    """Load the models and compare them. `against` is a model, "onnxruntime", "unoptimized" or "" for the definitions,
    or, with halves, for float32. `carried` are the pairs of states, and the number of the run to compare. If the
    model's outputs differ, and would not without passes, the pass is found.

    Raises ModelError, InputError and MissingExtraError.
    """
    from perframe.backends.precision import FULL
    from perframe.command_line.sources import loaded_model, model_inputs, named_model
    from perframe.inspection.bisecting import culprit
    from perframe.inspection.comparison import ONNXRUNTIME, all_values, compare, onnxruntime_values, states_after

    model = loaded_model(name, seed, signature=signature)
    arrays, chosen = model_inputs(model, given, dims, seed, likely=True)
    sizes = {**dims, **chosen.sizes}
    if carried[0]:
        arrays = arrays | states_after(carried[1] - 1, model, arrays, carried[0], backend, None, **asdict(precision))
    wanted: Mapping[str, Any] | None = None
    if against == ONNXRUNTIME:
        as_filed, source = loaded_model(name, seed, optimize=False, signature=signature), named_model(name, seed)
        wanted = onnxruntime_values(as_filed, arrays, source)
    elif against:
        itself = against == UNOPTIMIZED
        other = loaded_model(name if itself else against, seed, not itself, signature=signature if itself else None)
        wanted = all_values(other, arrays)
    with progress_bar() as step:
        step(f"runs {len(model.layers)} layers on {backend}, and compares them", 0.5)
        found = compare(model, arrays, backend, against=wanted, **asdict(precision))
    at_fault = None
    wrong = {one.output for one in found if not one.agrees} & set(model.output_names)
    if wanted is not None and wrong and precision == FULL:
        at_fault = culprit(partial(loaded_model, name, seed, signature=signature), arrays, wanted, backend)
    return Compared(model, sizes, found, at_fault)


def rows_of(compared: Compared) -> list[dict[str, Any]]:
    """The comparisons for a machine."""
    from perframe.inspection.comparison import ValueComparison

    rows = []
    for one in compared.comparisons:
        more: dict[str, Any] = {"is_origin": one.is_origin} if isinstance(one, ValueComparison) else {}
        if compared.culprit is not None and not one.agrees and one.output in compared.model.output_names:
            more["culprit"] = asdict(compared.culprit)
        rows.append(asdict(one) | more)
    return rows
