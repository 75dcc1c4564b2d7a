"""Reductions on GL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from perframe.backends.gl.lowering.steps import ALL_DTYPES, SMALL_DTYPES, Binding, Call, Functions, Tools, kind_of
from perframe.backends.gl.lowering.together import LaneSharing, share
from perframe.backends.operand import Operand
from perframe.ir.formula import translate
from perframe.layers.quantize import WHOLE_RANGES
from perframe.layers.reduce import Reduction
from perframe.tensor import DataType

DTYPES = ALL_DTYPES  # of small integers only the largest and the smallest, which never overflow

_JOIN = {
    "sum": "((a) + (b))",
    "product": "((a) * (b))",
    "largest": "maximum(a, b)",
    "smallest": "minimum(a, b)",
    "log_sum_exp": "log_sum_exp(a, b)",
}
_NOTHING = {"sum": "0", "product": "1", "largest": "0", "smallest": "1"}  # the results for no bools at all
_START = {
    ("sum", "float"): "0.0",
    ("sum", "int"): "0",
    ("product", "float"): "1.0",
    ("product", "int"): "1",
    ("largest", "float"): "(-1.0 / 0.0)",
    ("largest", "int"): "(-2147483647 - 1)",
    ("smallest", "float"): "(1.0 / 0.0)",
    ("log_sum_exp", "float"): "(-1.0 / 0.0)",
    ("smallest", "int"): "2147483647",
}


def supports(call: Call[Reduction]) -> str | None:
    """Supports integers only for reductions without a quotient or a logarithm, and small ones only for max and min."""
    form = call.form
    kind = kind_of(call.y.dtype)
    if call.y.dtype in SMALL_DTYPES and form.combine not in ("largest", "smallest"):
        return f"this reduction of {call.y.dtype} has no GL kernel"
    if kind == "int" and (form.finish.__name__ != "keep" or (form.combine, kind) not in _START):
        return f"this reduction of {call.y.dtype} has no GL kernel"
    return None


def dims(form: Reduction) -> list[Sequence[int]]:
    """The dims that the kernel holds in arrays of a fixed length."""
    return [form.kept, form.reduced]


def lower(call: Call[Reduction], tools: Tools) -> list[Binding]:
    """One kernel. A long reduction is done in parts, and the parts are reduced again."""
    form, x, bindings = call.form, call.x, list[Binding]()
    results, more = math.prod(form.kept), {"divisor": form.count, "prepared": 0}
    while True:
        sharing = share(results, form.count, form.reduced_strides[-1:] == (1,), tools)
        parts, stride = sharing.parts, sharing.stride
        y = call.y if parts == 1 else tools.scratch((parts * stride,), x.dtype)
        more["finished"] = parts == 1
        bindings.append(_binding(call, x, y, _numbers(form) | more, sharing))
        if parts == 1:
            return bindings
        form = replace(form, kept=(results,), kept_strides=(1,), reduced=(parts,), reduced_strides=(stride,))
        x, more["prepared"] = y, 1


def _numbers(form: Reduction) -> dict[str, Any]:
    """The dims and strides, and whether elements of four results are always a texel."""
    steps = [*form.kept_strides[:-1], *form.reduced_strides, *form.kept[-1:]]
    return {
        "kept": form.kept,
        "kept_strides": form.kept_strides,
        "reduced": form.reduced,
        "reduced_strides": form.reduced_strides,
        "kept_rank": len(form.kept),
        "blocks_rank": len(form.reduced) - 1,
        "inner": form.reduced[-1] if form.reduced else 1,
        "apart": form.reduced_strides[-1] if form.reduced else 0,
        "results": math.prod(form.kept),
        "count": form.count,
        "whole": form.kept_strides[-1:] == (1,) and not any(step % 4 for step in steps),
    }


def _binding(call: Call[Reduction], x: Operand, y: Operand, params: dict[str, Any], sharing: LaneSharing) -> Binding:
    """One pass. The kernel text serves any length; formulas and combination make its variants."""
    form = call.form
    kind = kind_of(x.dtype)
    prepare, _ = translate(form.prepare, [kind], "glsl")
    end, _ = translate(form.finish, [kind, kind], "glsl")
    text = f"{prepare}\n{end}\n#define formula {form.prepare.__name__}\n#define epilogue {form.finish.__name__}"
    start = _NOTHING[form.combine] if x.dtype is DataType.BOOL else _START[form.combine, kind]
    if x.dtype in WHOLE_RANGES and form.combine in ("largest", "smallest"):  # the result for no elements
        start = str(WHOLE_RANGES[x.dtype][form.combine == "smallest"])
    defines = {"JOIN(a, b)": _JOIN[form.combine], "START": start}
    return sharing.bind(call, "reduce", {"X": x}, y, params, defines, Functions(text))
