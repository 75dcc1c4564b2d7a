"""Concatenation on GL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from perframe.backends.gl.lowering.steps import ALL_DTYPES, APPENDS, Binding, Call, Tools
from perframe.backends.operand import Operand
from perframe.layers.join import Joining

DTYPES = ALL_DTYPES  # elements are only moved

_AT_ONCE = 6


def lower(call: Call[Joining], tools: Tools) -> list[Binding]:
    """Each kernel joins up to six inputs. Its result is the first input of the next kernel.

    An input that lies at the begin of the output stays there, and a kernel appends the others.
    """
    form = call.form
    if call.x.lies_in(call.y, 0):
        return _appended(call, tools)
    parts = [(value, run) for value, run in zip(call.inputs, form.runs, strict=True) if value is not None and run]
    bindings = []
    while True:
        now, parts = parts[:_AT_ONCE], parts[_AT_ONCE:]
        runs = [run for _, run in now]
        total = sum(runs)
        target = tools.scratch((form.outer * total,), call.y.dtype) if parts else call.y
        bindings.append(_binding(call, [value for value, _ in now], runs, target))
        if not parts:
            return bindings
        parts.insert(0, (target, total))


def _appended(call: Call[Joining], tools: Tools) -> list[Binding]:
    """Join all inputs but the first, and write them after it."""
    bindings = list[Binding]()
    first, *runs = call.form.runs
    parts = [value for value, run in zip(call.inputs[1:], runs, strict=True) if value is not None and run]
    if not parts:
        return []
    whole = joined(call, parts, 1, tools, bindings)
    binding = _binding(call, [whole], [sum(runs)], call.y, first)
    return [*bindings, replace(binding, tiles=first // 4, defines={**binding.defines, APPENDS: "1", "LONG": "1"})]


def joined(call: Call[Any], parts: Sequence[Operand], outer: int, tools: Tools, bindings: list[Binding]) -> Operand:
    """Join many parts of `outer` rows each, row by row: six parts at once, and then the results in the same way."""
    while len(parts) > 1:
        groups = [parts[at : at + _AT_ONCE] for at in range(0, len(parts), _AT_ONCE)]
        made = []
        for group in groups:
            runs = [part.shape.size // outer for part in group]
            target = tools.scratch((outer * sum(runs),), group[0].dtype) if len(group) > 1 else group[0]
            if len(group) > 1:
                bindings.append(_binding(call, group, runs, target))
            made.append(target)
        parts = made
    return parts[0]


def _binding(
    call: Call[Any], parts: Sequence[Operand], runs: Sequence[int], target: Operand, begin: int = 0
) -> Binding:
    """The parts follow each other from element `begin` of each row on."""
    defines = {"OPERANDS": str(len(parts))}
    if not any(run % 4 for run in (begin, *runs)):
        begin, runs, defines = begin // 4, [run // 4 for run in runs], defines | {"WHOLE": "1"}
    first, total = [begin + sum(runs[:k]) for k in range(len(runs))], begin + sum(runs)
    params: dict[str, Any] = {"first": first, "run": runs, "total": total}
    given = {f"X{k}": value for k, value in enumerate(parts)}
    return call.bind("join", given, target, params, defines)
