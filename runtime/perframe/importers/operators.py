"""The table of ONNX's operators in perframe, made from the registry and the standard's own list: it cannot drift."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import onnx

from perframe.importers.adapters import adapters_of
from perframe.ir import Layer
from perframe.ir.declaration import registry
from perframe.safety.records import dataclass
from perframe.tensor import DataType

Dtypes = Callable[[Layer], frozenset[DataType]]
_NAMES = {DataType.FLOAT32: "float", DataType.FLOAT64: "double"}  # all other names are the same in ONNX
# names of sets of dtypes, the largest first; ONNX calls float32 "float" and float64 "double"
_FLOATS = ("bfloat16", "double", "float", "float16")
_GPU_FLOATS = ("bfloat16", "float", "float16")
_GPU_INTEGERS = ("int16", "int32", "int64", "int8", "uint16", "uint8")
_FLOAT8 = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
_SMALL_INTEGERS = ("int2", "int4", "uint2", "uint4")
_SETS = {
    "all": ("bool", "complex128", "complex64", *_FLOATS, *_GPU_INTEGERS, "uint32", "uint64", "string"),
    "floats": _FLOATS,
    "GPU floats": _GPU_FLOATS,
    "integers": (*_GPU_INTEGERS, "uint32", "uint64"),
    "GPU integers": _GPU_INTEGERS,
    "small floats": (*_FLOAT8, "float4e2m1", "float8e8m0"),
    "float8": _FLOAT8,
    "small integers": _SMALL_INTEGERS,
}


@dataclass(frozen=True)
class OnnxOperator:
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
        return self.name, opsets, self.how, self.family, ", ".join(self.cpu), self.where(", ".join(self.gpu))

    def where(self, dtypes: str) -> str:
        """Where a GPU backend runs it: `dtypes`, or the reason why there are none."""
        if self.planned:
            return "while planning"
        return dtypes or {"layer": "on the CPU", "missing": ""}.get(self.how, "by its parts")


HEADERS = ("operator", "opsets", "how", "family", "CPU dtypes", "GPU dtypes, both backends")


@cache
def operators(gpu_dtypes: Dtypes) -> list[OnnxOperator]:
    """Return all operators of ai.onnx, by name. `gpu_dtypes` gives the dtypes in which the GL backends run a layer."""
    versions: dict[str, list[onnx.defs.OpSchema]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated:
            versions.setdefault(schema.name, []).append(schema)
    return [_operator(name, schemas, gpu_dtypes) for name, schemas in sorted(versions.items())]


def _operator(name: str, schemas: list[onnx.defs.OpSchema], gpu_dtypes: Dtypes) -> OnnxOperator:
    newest = max(schemas, key=lambda schema: schema.since_version)
    opsets = tuple(sorted(schema.since_version for schema in schemas))
    entry = registry().get(name)
    body = newest.has_function or newest.has_context_dependent_function  # type: ignore[attr-defined]
    if entry is not None:
        types = _types(newest)
        gpu = types & {_NAMES.get(dtype, dtype.value) for dtype in gpu_dtypes(Layer(name, name, [], []))}
        planned = entry.family == "shape" or (bool(entry.inputs) and entry.host >= set(entry.inputs))
        return OnnxOperator(name, opsets, "layer", entry.family, tuple(sorted(types)), tuple(sorted(gpu)), planned)
    how = "composite" if adapters_of(name) else "function" if body else "missing"
    return OnnxOperator(name, opsets, how, "", () if how == "missing" else tuple(sorted(_types(newest))), ())


def _types(schema: onnx.defs.OpSchema) -> set[str]:
    """Return the element types that the first input may have, or the output if there are no inputs."""
    parameters = schema.inputs or schema.outputs
    if not parameters:
        return set()
    found = {kind for kind in parameters[0].types if kind.startswith("tensor(")}
    return {kind.removeprefix("tensor(").removesuffix(")") for kind in found}


def _short(dtypes: tuple[str, ...]) -> str:
    """Dtypes in words, with the names of sets in place of their members."""
    left, said = set(dtypes), []
    for name, members in _SETS.items():
        if left.issuperset(members):
            said.append(name)
            left.difference_update(members)
    return ", ".join([*said, *sorted(left)])


def markdown(rows: list[OnnxOperator]) -> str:
    """Return the page docs/operators.md: operators with the same dtypes share a row."""
    have = sum(row.how != "missing" for row in rows)
    lines = [
        "# Operators",
        "",
        f"perframe supports {have} of the {len(rows)} operators of ai.onnx, in every opset up to",
        f"{onnx.defs.onnx_opset_version()}. `perframe operators NAME` shows one of them, with its opsets and its",
        "family of kernels. A layer with a dtype that the GPU lacks runs on the CPU between two transfers, and the log",
        "names it.",
        "",
        "| GPU column | meaning |",
        "|---|---|",
        "| dtypes | `gpu_compute` and `gpu_pixel` run the layer with these dtypes |",
        "| by its parts | the operator becomes other layers when a model is loaded |",
        "| while planning | computed from shapes before a frame runs |",
        "| on the CPU | runs between two transfers on every backend; layers in If, Loop and Scan run on the backend |",
        "",
        "Dtypes are those of the first input, in ONNX's names: `float` is float32, `double` is float64. int64 values",
        "are int32 on a GPU; a layer whose values might not fit runs on the CPU.",
        "",
        "| set | dtypes |",
        "|---|---|",
        *(f"| {name} | {', '.join(sorted(members))} |" for name, members in _SETS.items()),
        "",
        "| operators | CPU dtypes | GPU dtypes |",
        "|---|---|---|",
    ]
    shared: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        cpu = "" if row.how == "missing" else _short(row.cpu) or "sequences"
        shared.setdefault((cpu, row.where(_short(row.gpu))), []).append(row.name)
    groups = sorted(shared.items(), key=lambda group: -len(group[1]))
    return "\n".join([*lines, *(f"| {', '.join(names)} | {' | '.join(key)} |" for key, names in groups), ""])
