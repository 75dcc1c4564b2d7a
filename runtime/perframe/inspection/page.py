"""One self-contained page of HTML that draws a model as a graph. It loads nothing from elsewhere.

The layout is dagre's (https://github.com/dagrejs/dagre, MIT license), which `page/` holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perframe.files.html_page import filled, read
from perframe.files.writing import write
from perframe.inspection.blocks import repeated_blocks
from perframe.inspection.facts import ModelFacts, inspect
from perframe.inspection.statistics import shown_values, statistics_of
from perframe.ir import Array, Model
from perframe.tensor import DataType

_FOLDER = Path(__file__).parent / "page"
SCRIPTS = ("graph.js", "layout.js", "colours.js", "pane.js", "panel.js", "page.js")


@dataclass(frozen=True)
class Mark:
    """A number for each of some layers, by the layer's name, that may color the graph. `unit` is "s" for seconds."""

    layers: Mapping[str, float]
    unit: str = ""


def write_page(
    path: str | Path,
    model: Model,
    as_filed: Model | None = None,
    marks: Mapping[str, Mark] | None = None,
    dims: Mapping[str, int] | None = None,
    title: str = "",
) -> None:
    """Write a page of a model, beside the model before the passes if `as_filed` is given.

    Costs need sizes for open dims: those of `dims`, and likely ones for the others. The first of `marks` colors the
    graph when it opens. Raises ModelError if the file cannot be written; a file of that name is then unchanged.
    """
    write({Path(path): [page_text(model, as_filed, marks, dims, title).encode()]})


def page_text(
    model: Model,
    as_filed: Model | None = None,
    marks: Mapping[str, Mark] | None = None,
    dims: Mapping[str, int] | None = None,
    title: str = "",
) -> str:
    """The page as text."""
    seen: dict[int, dict[str, Any]] = {}
    models = [("in the file", as_filed)] if as_filed is not None else []
    views = [_view(label, one, dims, seen) for label, one in (*models, ("for a run", model)) if one is not None]
    report = model.report
    changed = [] if report is None else [one for one in report.passes if one.changes]
    data = {
        "title": title or model.name,
        "producer": model.producer,
        "opsets": model.opsets,
        "views": views,
        "passes": [{"name": one.name, "layers": [one.before.layers, one.after.layers]} for one in changed],
        "marks": {title: asdict(mark) for title, mark in (marks or {}).items()},
        "first_colour": next(iter(marks or {}), ""),
    }
    return filled(
        _FOLDER / "page.html",
        title or model.name,
        data,
        STYLE=read(_FOLDER / "page.css"),
        LIBRARY=read(_FOLDER / "dagre.min.js").replace("</", "<\\/"),
        SCRIPT="\n".join(read(_FOLDER / name) for name in SCRIPTS),
    )


def _view(label: str, model: Model, dims: Mapping[str, int] | None, seen: dict[int, dict[str, Any]]) -> dict[str, Any]:
    facts: ModelFacts = inspect(model, dims=dims)
    made = dict.fromkeys(v for layer in model.layers for v in (*layer.operands, *layer.results))
    return {
        "label": label,
        "layers": [asdict(layer) for layer in facts.layers],
        "inputs": [asdict(value) for value in facts.inputs],
        "outputs": [asdict(value) for value in facts.outputs],
        "values": {
            value.name: [str(value.spec.dtype), None if value.spec.shape is None else list(value.spec.shape)]
            for value in (*model.inputs, *made)
            if value.constant is None
        },
        "constants": {name: _constant(value, seen) for name, value in model.constants.items()},
        "blocks": [asdict(block) for block in repeated_blocks(model.layers)],
        "parameters": facts.parameters,
        "constant_bytes": facts.constant_bytes,
        "multiply_adds": facts.multiply_adds,
        "sizes": facts.sizes,
    }


def _constant(value: Array, seen: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """The facts about a constant. Both views share most constants, which are looked at once."""
    found = seen.get(id(value))
    if found is None:
        statistics = statistics_of(value)
        found = seen[id(value)] = {
            "dtype": str(DataType.of(value.dtype)),
            "shape": list(value.shape),
            "bytes": value.nbytes,
            "shown": shown_values(value),
            "statistics": None if statistics is None else asdict(statistics),
        }
    return found
