"""Random numbers on GL, as layers/random.py defines them: a number depends only on its key and its position."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from perframe.backends.gl.families import cumulative, norm
from perframe.backends.gl.lowering.steps import ALL_DTYPES, Binding, Call, Tools
from perframe.backends.operand import Operand
from perframe.layers.cumulative import Cumulation
from perframe.layers.norm import Softmaxing
from perframe.layers.random import Drawing, Key
from perframe.tensor import DataType

DTYPES = ALL_DTYPES  # events are 0 or 1, and of an input that gives the shape no element is read

_DRAWN = {
    "uniform": "numbers.x + numbers.y * unit.x",
    "normal": "numbers.x + numbers.y * normal(unit)",
    "events": "unit.x < X(o)",
}


def supports(call: Call[Drawing]) -> str | None:
    """Supports float32, for the drawn numbers or for the chances."""
    form = call.form
    typed = call.x if form.kind in ("events", "classes") else call.y
    return None if typed.dtype is DataType.FLOAT32 else f"drawing by numbers of {typed.dtype} has no GL kernel"


def lower(call: Call[Drawing], tools: Tools) -> list[Binding]:
    """One kernel, and for classes those of running sums. Without a seed, two more kernels count the runs."""
    if call.form.kind == "classes":
        return _classes(call, tools)
    return drawn(call, call.form, call.y, tools, {"X": call.x} if call.form.kind == "events" else {})


def drawn(
    call: Call[Any], form: Drawing, y: Operand, tools: Tools, given: dict[str, Operand] | None = None
) -> list[Binding]:
    """The kernels that fill `y` with random numbers, for a layer of any family."""
    defines, reads, counting = {"DRAWN": _DRAWN[form.kind]}, dict(given or {}), list[Binding]()
    key = form.key or (secrets.randbits(32), secrets.randbits(32))
    if form.key is None:
        runs, next_ = (tools.constant(np.zeros(1, np.int32)) for _ in range(2))
        counting = [call.bind("count", {"X": runs}, next_), call.copy(next_, runs)]
        defines["COUNTED"], reads["N"] = "1", runs
    params = {"key": _signed(key), "numbers": (form.first, form.second)}
    return [*counting, call.bind("random", reads, y, params, defines)]


def _signed(key: Key) -> tuple[int, int]:
    """The key's bits as two ints, because uniforms are ints."""
    low, high = np.array(key, np.uint32).view(np.int32).tolist()
    return low, high


def _classes(call: Call[Drawing], tools: Tools) -> list[Binding]:
    """Softmax, its running sums, and a search: each sample finds the class whose range of the sums holds its number."""
    (rows, size), y = call.x.shape, call.y
    chances, sums = (tools.scratch(call.x.shape, DataType.FLOAT32) for _ in range(2))
    units = tools.scratch(y.shape, DataType.FLOAT32)
    softmax = Call(call.layer, Softmaxing(rows, size, 1, False), [call.x], [chances])
    running = Call(call.layer, Cumulation("sum", rows, size, 1, False, False), [chances], [sums])
    return [
        *norm.lower(softmax, tools),
        *cumulative.lower(running, tools),
        *drawn(call, Drawing("uniform", call.form.key), units, tools),
        call.bind("search", {"S": sums, "U": units}, y, {"size": size, "samples": y.shape[1]}),
    ]
