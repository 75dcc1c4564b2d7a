"""How the invocations of a GPU share the work on results that join many values (shaders/lib/together.glsl)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perframe.backends.gl.compile.program import Numbers, load_kernel
from perframe.backends.gl.lowering.steps import NO_FUNCTIONS, Binding, Call, Functions, Tools
from perframe.backends.operand import Operand
from perframe.ir.family_files import own_shader
from perframe.safety.records import dataclass
from perframe.tensor import DataType

GROUP = 64  # invocations of a work group
FULL = 4096  # invocations that fill a GPU
LEAST = 4  # reads of a lane, at least
LEAST_ALONE = 128  # reads of a part, at least: a part costs a launch that joins it
MOST = 1024  # reads of an invocation, at most: it must not take long
FEW = 128  # elements of a row, from which on it is read alone; of shorter rows four are read at once
_NUMBERS = ("lanes", "across", "run", "stride", "by_rows")  # of a LaneSharing, if a kernel reads them


@dataclass(frozen=True)
class LaneSharing:
    """Each of `results` is made by `lanes` of a work group, side by side or `across` apart. It is made in `parts` of
    `run` elements, and the results of the next part lie `stride` further on.
    """

    walks: int  # results, or fours of them
    lanes: int
    across: int
    parts: int
    run: int
    stride: int
    by_rows: bool
    tools: Tools

    def bind(
        self,
        call: Call[Any],
        kernel: str,
        inputs: dict[str, Operand],
        output: Operand,
        params: Mapping[str, Numbers],
        defines: Mapping[str, str] | None = None,
        functions: Functions = NO_FUNCTIONS,
    ) -> Binding:
        """Bind a kernel that includes `together`."""
        declared = {parameter.name for parameter in load_kernel(own_shader(call.layer.family, kernel)).parameters}
        own = {name: getattr(self, name) for name in _NUMBERS if name in declared}
        numbers = {**own, **params}
        if not self.tools.stores_anywhere:
            return call.bind(kernel, inputs, output, numbers, defines, functions)
        variant = {"SCATTERED": "1"} | ({"TOGETHER": "1"} if _most_lanes(self.tools) > 1 else {})
        groups = -(-self.walks * self.parts * self.lanes // GROUP)
        grid = (groups * GROUP, 1, 1)
        return call.bind(kernel, inputs, output, numbers, {**(defines or {}), **variant}, functions, grid=grid)


def _most_lanes(tools: Tools) -> int:
    return int(tools.choices["lanes"]) if tools.stores_anywhere else 1


def _lanes(walks: int, reads: int, tools: Tools, always: bool = False) -> int:
    """Lanes per walk: enough to fill the GPU, or (`always`) as many as the reads keep busy."""
    lanes = 1
    while lanes < _most_lanes(tools) and reads >= 2 * LEAST * lanes and (always or walks * lanes < FULL):
        lanes *= 2
    return lanes


def share_products(results: int, reads: int, tools: Tools) -> LaneSharing:
    """Share the work on `results` results, each of `reads` reads that neighbors do side by side."""
    lanes = _lanes(results, reads, tools)
    return LaneSharing(results, lanes, GROUP // lanes, 1, 0, 0, False, tools)


def share(results: int, count: int, adjacent: bool, tools: Tools) -> LaneSharing:
    """Share the work on `results` results, each of `count` elements. If those of a result are `adjacent` and not few,
    four of them are read at once. Otherwise those of four results are.
    """
    by_rows = adjacent and count >= FEW
    reads = -(-count // 4) if by_rows else count
    walks = results if by_rows else -(-results // 4)
    parts = 1
    lanes = _lanes(walks, reads, tools, by_rows)
    while (walks * lanes * parts < FULL and reads >= 2 * LEAST_ALONE * lanes * parts) or (reads > MOST * lanes * parts):
        parts *= 2
    run = max(1, -(-count // (4 * parts))) * 4
    across, stride = (1, results) if by_rows else (GROUP // lanes, 4 * walks)
    return LaneSharing(walks, lanes, across, max(1, -(-count // run)), run, stride, by_rows, tools)


def pairs(
    call: Call[Any], kernel: str, rows: int, size: int, inner: int, tools: Tools, **more: Numbers
) -> tuple[Operand, list[Binding]]:
    """A pair of numbers for each row of `size` elements, `inner` apart, and the kernels that compute it."""
    source, bindings, count, weight, is_whole = call.x, list[Binding](), size, 1, inner % 4 == 0
    while True:
        sharing = share(rows, count, inner == 1 and not bindings, tools)
        made = tools.scratch((2 * sharing.parts * sharing.stride,), DataType.FLOAT32)
        params = {"size": count, "inner": inner, "results": rows, "whole": is_whole, "paired": bool(bindings), **more}
        if "total" in params:
            params["weight"] = weight
        bindings.append(sharing.bind(call, kernel, {"X": source}, made, params))
        if sharing.parts == 1:
            return made, bindings
        source, count, inner, weight, is_whole = made, sharing.parts, sharing.stride, weight * sharing.run, False
