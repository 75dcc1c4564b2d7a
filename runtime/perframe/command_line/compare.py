"""`perframe compare`: a model's layers against their definitions, or its values against another model's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perframe.backends import BackendName
from perframe.backends.precision import FULL, Precision
from perframe.command_line.progress import progress_bar
from perframe.command_line.sources import loaded_model, model_inputs, named_model
from perframe.execution import comparison as definitions
from perframe.execution.comparison import Comparison
from perframe.inspection.bisecting import Culprit, culprit
from perframe.inspection.comparing import (
    ONNXRUNTIME,
    ValueComparison,
    all_values,
    compare,
    error_marks,
    onnxruntime_values,
    show_values,
)
from perframe.inspection.page import write_page

if TYPE_CHECKING:
    from rich.console import Console

    from perframe.model import Model

UNOPTIMIZED = "unoptimized"


@dataclass(frozen=True)
class Compared:
    """A model and the comparisons of its values."""

    name: str
    model: Model
    dims: Mapping[str, int]
    found: Sequence[Comparison]
    culprit: Culprit | None = None  # the pass from which on outputs differ

    @property
    def agrees(self) -> bool:
        """Whether all values agree."""
        return all(one.agrees for one in self.found)


def examine(
    name: str,
    against: str,
    given: Sequence[str],
    backend: BackendName,
    dims: Mapping[str, int],
    seed: int,
    precision: Precision = FULL,
) -> Compared:
    """Load the models and compare them. `against` is a model, "onnxruntime", "unoptimized" or "" for the definitions,
    or, with halves, for float32. If the model's outputs differ, and would not without passes, the pass is found.

    Raises ModelError, InputError and MissingExtraError.
    """
    model = loaded_model(name, seed)
    arrays, chosen = model_inputs(model, given, dims, seed, likely=True)
    sizes = {**dims, **chosen.sizes}
    wanted: Mapping[str, Any] | None = None
    if against == ONNXRUNTIME:
        as_filed, source = loaded_model(name, seed, optimize=False), named_model(name, seed)
        wanted = onnxruntime_values(as_filed, arrays, source)
    elif against:
        other = name if against == UNOPTIMIZED else against
        wanted = all_values(loaded_model(other, seed, optimize=against != UNOPTIMIZED), arrays)
    with progress_bar() as step:
        step(f"runs {len(model.layers)} layers on {backend}, and compares them", 0.5)
        found = compare(model, arrays, backend, against=wanted, **asdict(precision))
    at_fault = None
    wrong = {one.output for one in found if not one.agrees} & set(model.output_names)
    if wanted is not None and wrong and not precision.has_halves:
        at_fault = culprit(partial(loaded_model, name, seed), arrays, wanted, backend)
    return Compared(name, model, sizes, found, at_fault)


def as_json(compared: Compared) -> str:
    """The report for a machine."""
    rows = []
    for one in compared.found:
        more: dict[str, Any] = {"is_origin": one.is_origin} if isinstance(one, ValueComparison) else {}
        if compared.culprit is not None and not one.agrees and one.output in compared.model.output_names:
            more["culprit"] = asdict(compared.culprit)
        rows.append(asdict(one) | more)
    return json.dumps(rows, indent=2)


def show(compared: Compared, console: Console) -> None:
    """Print the report for a person."""
    from rich.text import Text

    values = [one for one in compared.found if isinstance(one, ValueComparison)]
    if values:
        show_values(values, console, compared.model.output_names)
        if compared.culprit is not None:
            console.print(Text(str(compared.culprit), "bold red"))
    else:
        definitions.show(compared.found, console)


def write(path: Path, compared: Compared) -> None:
    """Draw the model on a page, colored by the errors."""
    write_page(path, compared.model, None, error_marks(compared.found), compared.dims, compared.name)
