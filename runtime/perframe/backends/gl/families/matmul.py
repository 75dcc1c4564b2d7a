"""Matrix products on GL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perframe.backends.gl.lowering.steps import Binding, Call, Tools, epilogue_of
from perframe.backends.gl.texels import SHEETS
from perframe.backends.operand import Operand
from perframe.ir.sizes.size import at_most
from perframe.layers.matmul import Product
from perframe.tensor import DataType

GROUPS = 65_535  # the most work groups along an axis of a grid
ROWS, COLUMNS = 8, 8  # of a tile
PARTS, LEAST, FULL = 16, 32, 4096  # of a depth, at most; rounds of a part, at least; invocations that fill a GPU
ACROSS = 32  # tiles in a row: fewer do not fill a work group
_TILES = "3"  # how lib/tile.glsl calls packed weights


def supports(call: Call[Product]) -> str | None:
    """Supports as many products as fit a shader's rounds, and integers if they are not scaled."""
    form = call.form
    if call.y.dtype is not DataType.FLOAT32 and (form.alpha, form.beta) != (1.0, 1.0):
        return "scaled products of integers have no GL kernel"
    fits = form.depth <= call.rounds // 2
    return None if fits else f"{form.depth} products for one element are too many for one shader"


def dims(form: Product) -> list[Sequence[int]]:
    """The dims that the kernel holds in arrays of a fixed length."""
    return [form.batch]


def lower(call: Call[Product], tools: Tools, base: tuple[int, int] = (0, 0)) -> list[Binding]:
    """A kernel with bias and epilogue in it. Products of integers have no epilogue. The factors begin at the elements
    `base` of their operands.
    """
    form, a, b, bias = call.form, call.x, call.input(1), call.optional(2)
    rank = len(form.batch)
    turned, padding = form.b_strides[rank:] == (1, form.depth), -form.columns % 4
    is_plain = turned or form.b_strides[rank:] == (form.columns, 1)
    is_plain = is_plain and b.is_constant and len(b.shape) == 2
    if is_plain and (turned or padding):
        form = replace(form, b_strides=(*(0,) * rank, form.columns + padding, 1))
    is_row = not tools.stores_anywhere and _is_row_of_texels(form) and not base[1] % 4
    is_tiled = call.y.dtype is DataType.FLOAT32 and form.batches <= GROUPS and not is_row
    packs = is_plain and is_tiled and not tools.stores_anywhere and not base[1]
    if packs:
        b = b.derived(f"tiles for columns {turned}", lambda value: _packed(value.T if turned else value))
    elif is_plain and (turned or padding):
        b = b.derived(
            f"rows for columns {turned}, {padding} more columns",
            lambda value: np.ascontiguousarray(np.pad(value.T if turned else value, ((0, 0), (0, padding)))),
        )
    params: dict[str, Any] = {
        "base": base,
        "a_batch": form.a_strides[:rank],
        "b_batch": form.b_strides[:rank],
        "a_step": form.a_strides[rank:],
        "b_step": form.b_strides[rank:],
        "c_step": form.bias_strides,
        "rank": rank,
    }
    given, functions = {"A": a, "B": b, "C": bias or a}, epilogue_of(call.layer, call.y.dtype)
    if not is_tiled:
        kernel = "pixel/matmul_row" if is_row else "matmul"
        return [call.bind(kernel, given, call.y, params | {"has_bias": bias is not None}, functions=functions)]
    defines, whole = _texels(form, b.is_constant, base, packs)
    defines["BIAS"] = str(0 if bias is None else 1 if form.bias_strides[0] == 0 else 2)
    params["whole"] = whole
    scattered = {} if b.is_constant and form.columns % 4 == 0 else {"SCATTERED": "1"}
    if tools.stores_anywhere:
        return [_compute(call, form, given, params, defines | scattered)]
    return _draw(call, form, given, params, defines | scattered, tools)


def _compute(
    call: Call[Product], form: Product, given: dict[str, Operand], params: dict[str, Any], defines: dict[str, str]
) -> Binding:
    """The product in tiles. Known weights have a row of work groups for each row of tiles, if the columns fill it. The
    tiles of a single row are shared by invocations, each of which takes a part of the depth.
    """
    across, chosen, grid = tiling(form.batches, form.rows, form.columns, form.depth, given["B"].is_constant)
    defines |= chosen
    functions = epilogue_of(call.layer, call.y.dtype)
    return call.bind("compute/matmul", given, call.y, params | {"across": across}, defines, functions, grid=grid)


def tiling(
    batches: int, rows: int, columns: int, depth: int, is_fixed: bool
) -> tuple[int, dict[str, str], tuple[int, int, int]]:
    """Return the tiles in a row, and the defines and the grid of a kernel that computes tiles. `is_fixed` says that the
    second factor is constant.
    """
    height, parts = (1 if batches * rows == 1 else ROWS), 1
    across, down = -(-columns // COLUMNS), -(-rows // height)
    while height == 1 and parts < PARTS and across * parts < FULL and depth >= LEAST * parts:
        parts *= 2
    flat = parts == 1 and (not is_fixed or across < ACROSS or down > GROUPS)
    grid = (across * down, 1, batches) if flat else (across * parts, down, batches)
    return across, {"ROWS": str(height), "FLAT": str(int(flat)), "PARTS": str(parts)}, grid


def _draw(
    call: Call[Product],
    form: Product,
    given: dict[str, Operand],
    params: dict[str, Any],
    defines: dict[str, str],
    tools: Tools,
) -> list[Binding]:
    """The product in tiles, as fragments store them, and then the rows of these."""
    rows = SHEETS * 4 // COLUMNS
    across, down = -(-form.columns // COLUMNS), -(-form.rows // rows)
    tiles = tools.scratch((form.batches * down * across * rows * COLUMNS,), call.y.dtype)
    places = {"rows": form.rows, "columns": form.columns, "across": across}
    defines, functions = defines | {"ROWS": str(rows)}, epilogue_of(call.layer, call.y.dtype)
    return [
        call.bind("pixel/matmul", given, tiles, params | {"across": across}, defines, functions),
        call.bind("pixel/untile", {"X": tiles}, call.y, places, defines),
    ]


def _texels(form: Product, fixed: bool, base: tuple[int, int], packs: bool) -> tuple[dict[str, str], int]:
    """The defines that say what texels of the factors hold, and whether they begin where they should, a bit for each.
    If the strides are `fixed`, these bits are a define too. Other sizes must not make another variant, so the bits are
    arithmetic then. `packs` says that the second factor lies in tiles.
    """
    (*_, a_last), (*_, b_first, b_last) = form.a_strides, form.b_strides
    a_by, b_by = int(a_last == 1), 2 if b_last == 1 else int(b_first == 1)
    a_gaps = _gaps((base[0], *form.a_strides), -1) if a_by else 1
    b_gaps = 0 if packs else _gaps((base[1], *form.b_strides), -1 if b_by == 2 else -2) if b_by else 1
    whole = int(a_gaps == 0) + 2 * int(b_gaps == 0) if fixed else 3 - at_most(a_gaps, 1) - 2 * at_most(b_gaps, 1)
    always = whole if fixed else 2 * packs
    return {"A_BY": str(a_by), "B_BY": _TILES if packs else str(b_by), "ALWAYS": str(always)}, whole


def _packed(weights: Any) -> Any:
    """Weights of (depth, columns) as (tile, depth, column in tile). Missing numbers are 0."""
    depth, columns = weights.shape
    padded = np.pad(weights, ((0, -depth % 4), (0, -columns % COLUMNS)))
    tiles = padded.reshape(len(padded), -(-columns // COLUMNS), COLUMNS)
    return np.ascontiguousarray(tiles.transpose(1, 0, 2)).reshape(-1)


def _gaps(strides: Sequence[int], last: int) -> int:
    """The elements by which strides but one are no whole texels; 0 if all are."""
    return sum(step % 4 for axis, step in enumerate(strides) if axis != len(strides) + last)


def _is_row_of_texels(form: Product) -> bool:
    """Whether the result is one row of whole texels, and each row of the second factor too."""
    *steps, last = form.b_strides  # questions about sizes come last: each makes another template
    return form.batches * form.rows == 1 and last == 1 and not any(step % 4 for step in (*steps, form.columns))
