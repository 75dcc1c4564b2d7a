"""The table of ONNX's operators in perframe, made from the registry and the standard's own list: it cannot drift."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import onnx

from perframe.importers.adapters import adapters
from perframe.layers.base import registry
from perframe.model import Layer
from perframe.tensor import DataType

Dtypes = Callable[[Layer], frozenset[DataType]]
_NAMES = {DataType.FLOAT32: "float", DataType.FLOAT64: "double"}  # all other names are the same in ONNX


@dataclass(frozen=True)
class Operator:
    """One operator of ai.onnx: the opsets that changed it, how perframe runs it, and the dtypes on CPU and GPU.

    `how` is "layer", "composite" (an adapter replaces it by others), "function" (the standard's body replaces it), or
    "missing". A `planned` operator is computed before a frame runs, from shapes and from values that shapes depend on.
    """

    name: str
    opsets: tuple[int, ...]
    how: str
    family: str
    cpu: tuple[str, ...]
    gpu: tuple[str, ...]
    planned: bool = False

    @property
    def row(self) -> tuple[str, ...]:
        """Its row of the table."""
        opsets = ", ".join(map(str, self.opsets))
        gpu = ", ".join(self.gpu) or {"layer": "on the CPU", "missing": ""}.get(self.how, "by its parts")
        gpu = "while planning" if self.planned else gpu
        return self.name, opsets, self.how, self.family, ", ".join(self.cpu), gpu


HEADERS = ("operator", "opsets", "how", "family", "CPU dtypes", "GPU dtypes, both backends")


@cache
def operators(gpu_dtypes: Dtypes) -> list[Operator]:
    """Return all operators of ai.onnx, by name. `gpu_dtypes` gives the dtypes in which the GL backends run a layer."""
    versions: dict[str, list[onnx.defs.OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated:
            versions.setdefault(schema.name, []).append(schema)
    return [_operator(name, schemas, gpu_dtypes) for name, schemas in sorted(versions.items())]


def _operator(name: str, schemas: list[onnx.defs.OpSchema], gpu_dtypes: Dtypes) -> Operator:
    newest = max(schemas, key=lambda schema: schema.since_version)
    opsets = tuple(sorted(schema.since_version for schema in schemas))
    entry = registry().get(name)
    body = newest.has_function or newest.has_context_dependent_function  # type: ignore[attr-defined]
    if entry is not None:
        types = _types(newest)
        gpu = types & {_NAMES.get(dtype, dtype.value) for dtype in gpu_dtypes(Layer(name, name, [], []))}
        planned = entry.family == "shape" or (bool(entry.inputs) and entry.host >= set(entry.inputs))
        return Operator(name, opsets, "layer", entry.family, tuple(sorted(types)), tuple(sorted(gpu)), planned)
    how = "composite" if name in adapters() else "function" if body else "missing"
    return Operator(name, opsets, how, "", () if how == "missing" else tuple(sorted(_types(newest))), ())


def _types(schema: onnx.defs.OpSchema) -> set[str]:
    """Return the element types that the first input may have, or the output if there are no inputs."""
    parameters = schema.inputs or schema.outputs
    if not parameters:
        return set()
    found = {kind for kind in parameters[0].types if kind.startswith("tensor(")}
    return {kind.removeprefix("tensor(").removesuffix(")") for kind in found}


def markdown(rows: list[Operator]) -> str:
    """Return the table of docs/operators.md."""
    have = sum(row.how != "missing" for row in rows)
    lines = [
        "# Operators",
        "",
        f"perframe has {have} of the {len(rows)} operators of ai.onnx up to opset {onnx.defs.onnx_opset_version()},",
        "in every opset listed. This table is made by `perframe operators --markdown`. A layer whose dtypes a GPU",
        "does not hold runs on the CPU between two transfers, which is reported.",
        "",
        "| " + " | ".join(HEADERS) + " |",
        "|" + "---|" * len(HEADERS),
    ]
    return "\n".join([*lines, *("| " + " | ".join(row.row) + " |" for row in rows), ""])
