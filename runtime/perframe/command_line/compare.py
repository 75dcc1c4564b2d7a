"""`perframe compare`: a model's layers against their definitions, or its values against another model's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perframe.backends.precision import FULL, Precision
from perframe.command_line.progress import progress_bar
from perframe.command_line.sources import input_arrays, likely_arrays, likely_dims, loaded_model
from perframe.execution import comparison as definitions
from perframe.execution.comparison import Comparison
from perframe.inspection.comparing import ONNXRUNTIME, ValueComparison, compare, error_marks, show_values
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

    @property
    def agrees(self) -> bool:
        """Whether all values agree."""
        return all(one.agrees for one in self.found)


def examine(
    name: str,
    against: str,
    given: Sequence[str],
    backend: str,
    dims: Mapping[str, int],
    seed: int,
    precision: Precision = FULL,
) -> Compared:
    """Load the models and compare them. `against` is a model, "onnxruntime", "unoptimized" or "" for the definitions,
    or, with halves, for float32.

    Raises ModelError, InputError and MissingExtraError.
    """
    model = loaded_model(name, seed)
    sizes = likely_dims(model.inputs) | dict(dims)
    arrays = likely_arrays(model, sizes, seed)
    chosen = input_arrays(model.inputs, given, sizes, seed)
    arrays |= {key: chosen[key] for key in (item.partition("=")[0] for item in given)}
    other: Any = None
    if against == UNOPTIMIZED:
        other = loaded_model(name, seed, optimize=False)
    elif against:
        other = against if against == ONNXRUNTIME else loaded_model(against, seed)
    with progress_bar() as step:
        step(f"runs {len(model.layers)} layers on {backend}, and compares them", 0.5)
        found = compare(model, arrays, backend, against=other, **asdict(precision))
        return Compared(name, model, sizes, found)


def as_json(compared: Compared) -> str:
    """The report for a machine."""
    rows = []
    for one in compared.found:
        origin = {"is_origin": one.is_origin} if isinstance(one, ValueComparison) else {}
        rows.append(asdict(one) | origin)
    return json.dumps(rows, indent=2)


def show(compared: Compared, console: Console) -> None:
    """Print the report for a person."""
    values = [one for one in compared.found if isinstance(one, ValueComparison)]
    if values:
        show_values(values, console, compared.model.output_names)
    else:
        definitions.show(compared.found, console)


def write(path: Path, compared: Compared) -> None:
    """Draw the model on a page, coloured by the errors."""
    write_page(path, compared.model, None, error_marks(compared.found), compared.dims, compared.name)
