"""Einstein summation on GL: one kernel that walks the reduced dims, or the matrix product if the layer is one."""

from __future__ import annotations

from typing import Any

from perframe.backends.gl.families import matmul
from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools, ints, kind_of, wrapped
from perframe.layers.einsum import Contraction
from perframe.layers.matmul import Product

DTYPES = ALL_DTYPES  # results that do not fit wrap around

_OPERANDS, _RANK = 4, 8


def supports(call: Call[Contraction]) -> str | None:
    """Supports up to four operands, and sums that fit a shader's rounds."""
    form = call.form
    if len(call.inputs) > _OPERANDS:
        return f"products of {len(call.inputs)} operands have no GL kernel"
    if max(len(form.kept), len(form.reduced)) > _RANK:
        return f"more than {_RANK} dims have no GL kernel"
    rounds = 4 * form.count * (1 + len(form.reduced) * (len(form.reduced) > 1))
    return None if rounds <= call.rounds else f"{form.count} products for one element are too many for one shader"


def lower(call: Call[Contraction], tools: Tools) -> list[Binding]:
    """One kernel."""
    form, product = call.form, _product(call.form)
    if product is not None and kind_of(call.y.dtype) == "float":
        return matmul.lower(Call(call.layer, product, call.inputs, call.outputs), tools)
    params: dict[str, Any] = {
        "kept_strides": [number for strides in form.kept_strides for number in ints(strides)],
        "reduced_strides": [number for strides in form.reduced_strides for number in ints(strides)],
        "kept_rank": len(form.kept),
        "reduced_rank": len(form.reduced),
    }
    given = {f"X{k}": value for k, value in enumerate(call.inputs) if value is not None}
    defines = {"OPERANDS": str(len(given)), "WRAPPED(x)": wrapped("x", call.y.dtype)}
    return [call.bind("einsum", given, call.y, params, defines)]


def _product(form: Contraction) -> Product | None:
    """The contraction as a product of batches of matrices; None if the output's last two dims are not rows of the one
    operand and columns of the other.
    """
    if len(form.kept_strides) != 2 or len(form.reduced) != 1 or len(form.kept) < 2:
        return None
    a, b = form.kept_strides
    if b[-2] or a[-1] or not a[-2] or not b[-1]:
        return None
    depth = (form.reduced_strides[0][0], form.reduced_strides[1][0])
    return Product(
        form.kept[:-2],
        form.kept[-2],
        form.kept[-1],
        form.count,
        (*a[:-1], depth[0]),
        (*b[:-2], depth[1], b[-1]),
        (0, 0),
    )
