"""One self-contained page of HTML that draws a model as a graph. It loads nothing from elsewhere.

The layout is dagre's (https://github.com/dagrejs/dagre, MIT license), which `page/` holds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perframe.files.html_page import filled, read
from perframe.files.writing import write
from perframe.inspection.facts import ModelFacts, inspect
from perframe.ir import Array, Layer, Model
from perframe.tensor import DataType

_FOLDER = Path(__file__).parent / "page"
SCRIPTS = ("graph.js", "layout.js", "colours.js", "pane.js", "panel.js", "page.js")
BINS = 32
SHOWN = 8  # elements of a small constant that are shown
LONGEST, SHORTEST = 24, 3  # layers of one repetition
COVERED = 0.3  # the share of layers that names must put into blocks
_INDEXED = re.compile(r"(.*?\D)[._]?(\d+)$")


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


@dataclass(frozen=True)
class Statistics:
    """The finite values of a constant: smallest, largest, mean, standard deviation, and the share of zeros.

    `others` counts NaN and infinities. `counts` has the elements in each of `BINS` bins of equal width.
    """

    smallest: float
    largest: float
    mean: float
    deviation: float
    zeros: float
    others: int
    counts: tuple[int, ...]


def statistics_of(value: Array) -> Statistics | None:
    """The statistics of a constant; None if it has no finite numbers."""
    if value.dtype.kind not in "fiub" and value.dtype.name not in ("bfloat16", "int4", "uint4"):
        return None
    numbers = value.reshape(-1)
    numbers = numbers.astype(np.float32 if value.dtype.kind not in "iu" or value.dtype.itemsize < 4 else np.float64)
    finite = np.isfinite(numbers)
    kept = numbers if finite.all() else numbers[finite]
    if not kept.size:
        return None
    low, high = float(kept.min()), float(kept.max())
    counts = np.histogram(kept, BINS, (low, high))[0] if low < high else np.array([kept.size])
    return Statistics(
        low,
        high,
        float(kept.mean(dtype=np.float64)),
        float(kept.std(dtype=np.float64)),
        float((kept == 0).mean()),
        int(numbers.size - kept.size),
        tuple(counts.tolist()),
    )


def shown_values(value: Array) -> str:
    """The first elements of a constant as text."""
    flat = value.reshape(-1)
    text = ", ".join(f"{one:.6g}" if value.dtype.kind == "f" else str(one) for one in flat[:SHOWN].tolist())
    return text + (", …" if flat.size > SHOWN else "")


@dataclass(frozen=True)
class Block:
    """One of several parts of a model that are alike: `length` layers from `first` on. `title` names it."""

    title: str
    first: int
    length: int


def repeated_blocks(layers: Sequence[Layer]) -> list[Block]:
    """The repetitions, in run order. Names decide if they are paths with indices, such as "encoder/layer.3/Add"; the
    order of operators decides otherwise.
    """
    return _by_names(layers) or _by_operators(layers)


def _by_names(layers: Sequence[Layer]) -> list[Block]:
    paths = [_path(layer.name) for layer in layers]
    found, at = list[Block](), 0
    while at < len(paths):
        end = at + 1
        while end < len(paths) and paths[end] == paths[at]:
            end += 1
        if paths[at] and end - at >= SHORTEST:
            found.append(Block(paths[at].strip("/"), at, end - at))
        at = end
    stems = Counter(_INDEXED.sub(r"\1", block.title) for block in found)
    kept = [block for block in found if stems[_INDEXED.sub(r"\1", block.title)] > 1]
    return kept if sum(block.length for block in kept) >= COVERED * len(layers) else []


def _path(name: str) -> str:
    """A name up to its first part with an index; "" if only the last part has one."""
    parts = name.split("/")
    at = next((at for at, part in enumerate(parts[:-1]) if _INDEXED.match(part) or part.isdigit()), None)
    return "" if at is None else "/".join(parts[: at + 1])


def _by_operators(layers: Sequence[Layer]) -> list[Block]:
    kinds: dict[Hashable, int] = {}
    tokens = [kinds.setdefault(_kind(layer), len(kinds)) for layer in layers]
    found, at = list[Block](), 0
    while at < len(tokens):
        length, count = _run(tokens, at)
        for index in range(count):
            found.append(Block(f"repetition {index + 1} of {count}", at + index * length, length))
        at += max(1, length * count)
    return found


def _kind(layer: Layer) -> Hashable:
    """The key of a layer in repetitions: operators and the attributes that name no value or size."""
    kept = ("kernel_shape", "strides", "perm", "axis")
    attributes = tuple((name, str(layer.attributes[name])) for name in kept if name in layer.attributes)
    return layer.op, tuple(stage.op for stage in layer.epilogue), attributes, len(layer.inputs)


def _run(tokens: Sequence[int], at: int) -> tuple[int, int]:
    """The length and count of the shortest repetitions that begin here; (0, 0) if there are none."""
    for length in range(SHORTEST, min(LONGEST, (len(tokens) - at) // 2) + 1):
        pattern = tokens[at : at + length]
        if len(set(pattern)) < 2 or tokens[at + length] != pattern[0]:
            continue
        count = 1
        while tokens[at + count * length : at + (count + 1) * length] == pattern:
            count += 1
        if count > 1:
            return length, count
    return 0, 0
