"""Products with weights of 4 or 8 bits, and tables of them, on GL."""

from __future__ import annotations

from typing import Any

from perframe.backends.gl.families.matmul import COLUMNS, tiling
from perframe.backends.gl.lowering.steps import Binding, Call, Tools, epilogue_of
from perframe.backends.gl.texels import SHEETS
from perframe.layers.packed import WORD, PackedProduct, PackedTable, words_of

_STRIP = 4 * SHEETS  # elements that one pixel shader computes


def supports(call: Call[PackedProduct | PackedTable]) -> str | None:
    """Supports tables, and as many products as fit a shader's rounds."""
    form = call.form
    if isinstance(form, PackedTable):
        return None
    fits = form.words + form.blocks <= call.rounds // 2
    return None if fits else f"{form.depth} products for one element are too many for one shader"


def lower(call: Call[PackedProduct | PackedTable], tools: Tools) -> list[Binding]:
    """A kernel with bias and epilogue in it; two where fragments store tiles."""
    form = call.form
    if isinstance(form, PackedTable):
        return _table(call, form)
    x, w = call.x, call.input(1)
    zeros, bias = call.optional(3), call.optional(4)
    given = {"X": x, "W": w, "S": call.input(2), "C": bias or x}
    params: dict[str, Any] = {"has_bias": bias is not None, "zero_words": words_of(form.blocks, form.bits)}
    defines = {"EACH": str(WORD // form.bits)}
    if form.depth % 4 == 0:
        defines["WHOLE"] = "1"
    if zeros is not None:
        given["Z"], defines["ZEROS"] = zeros, "1"
    scattered = {"SCATTERED": "1"} if form.columns % 4 else {}
    functions = epilogue_of(call.layer, call.y.dtype)
    if tools.stores_anywhere:
        across, chosen, grid = tiling(1, form.rows, form.columns, form.depth, True)
        defines |= chosen | scattered
        params["across"] = across
        return [call.bind("compute/packed", given, call.y, params, defines, functions, grid=grid)]
    if form.rows == 1 and form.columns % 4 == 0:
        return [call.bind("pixel/packed_row", given, call.y, params, defines, functions)]
    rows = _STRIP // COLUMNS
    across, down = -(-form.columns // COLUMNS), -(-form.rows // rows)
    tiles = tools.scratch((down * across * rows * COLUMNS,), call.y.dtype)
    defines["ROWS"] = str(rows)
    places = {"rows": form.rows, "columns": form.columns, "across": across}
    return [
        call.bind("pixel/packed", given, tiles, params | {"across": across}, defines, functions),
        call.bind("pixel/untile", {"X": tiles}, call.y, places, {"ROWS": str(rows)} | scattered),
    ]


def _table(call: Call[Any], form: PackedTable) -> list[Binding]:
    zeros = call.optional(3)
    given, defines = {"W": call.x, "S": call.input(1), "I": call.input(2)}, {"EACH": str(WORD // form.bits)}
    if zeros is not None:
        given["Z"], defines["ZEROS"] = zeros, "1"
    params = {"zero_words": words_of(form.blocks, form.bits)}
    return [call.bind("packed_table", given, call.y, params, defines)]
