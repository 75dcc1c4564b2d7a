"""Recurrent layers on GL: one product for the inputs of all steps, and then one to three kernels a step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perframe.backends.gl.families import matmul
from perframe.backends.gl.families.join import joined
from perframe.backends.gl.steps import NO_FUNCTIONS, Binding, Call, Functions, Tools, function_of
from perframe.backends.operand import Operand
from perframe.layers.matmul import Product
from perframe.layers.recurrent import Recurrence
from perframe.tensor import DataType

_PARTS = ("GATES", "GRU", "CELL", "HIDDEN", "OUTPUT")
_STEPS = 4096  # the most steps; each takes a few launches


def supports(call: Call[Recurrence]) -> str | None:
    """Supports a limited number of steps, because each takes launches, and states that fit a shader's rounds."""
    form = call.form
    if form.rounds_state:
        return "the range of a state is not known before it is computed"
    if form.steps > _STEPS:
        return f"{form.steps} steps are too many launches"
    fits = 4 * max(form.hidden, form.inputs) <= call.rounds
    return None if fits else f"a state of {form.hidden} is too long for one shader"


@dataclass
class _Lowering:
    """One layer while its bindings are made."""

    call: Call[Recurrence]
    tools: Tools
    inputs: dict[str, Operand]  # products, weights, biases and lengths, for all kernels
    bindings: list[Binding] = field(default_factory=list)
    states: dict[str, Operand] = field(default_factory=dict)  # scratch storage that steps share, by name

    def kernel(self, part: str, step: int, reads: dict[str, Operand], y: Operand, **more: Any) -> Operand:
        """Append one kernel, and return its output."""
        form = self.call.form
        wanted = {"GATES": "XRBL", "GRU": "XRBL", "CELL": "PL", "HIDDEN": "PL", "OUTPUT": "L"}[part]
        given = {name: value for name, value in self.inputs.items() if name in wanted} | reads
        defines = {name: str(index) for index, name in enumerate(_PARTS)}
        defines |= {"PART": part, "KEPT": "0.0", "ACTIVATE(d, x)": "(x)", "WHOLE": "0", **more.pop("defines", {})}
        for name, present in (("BIAS", "B"), ("PEEPHOLES", "P"), ("LENGTHS", "L")):
            if present in given:
                defines[name] = "1"
        params: dict[str, Any] = {
            "step": step,
            "first": 0,
            "used": form.hidden,
            "reverse": sum(1 << d for d, reverse in enumerate(form.reverse) if reverse),
            "step_stride": 1 if form.batch_first else form.batch,
            "batch_stride": form.steps if form.batch_first else 1,
            **more,
        }
        functions = NO_FUNCTIONS if part == "OUTPUT" else _activations(form)
        self.bindings.append(self.call.bind("recurrent", given, y, params, defines, functions))
        return y

    def state(self, columns: int = 0) -> Operand:
        """Scratch storage for the state of all directions, with `columns` or `hidden` elements a row."""
        form = self.call.form
        rows = len(form.reverse) * form.batch
        return self.tools.scratch((rows * (columns or form.hidden),), DataType.FLOAT32)

    def reused(self, name: str, columns: int = 0) -> Operand:
        """A `state` of this name, which all steps share."""
        if name not in self.states:
            self.states[name] = self.state(columns)
        return self.states[name]

    def initial_state(self, given: Operand | None) -> Operand:
        """The initial state as (direction, batch, hidden); zeros if it is not given."""
        form, directions = self.call.form, len(self.call.form.reverse)
        if given is None:
            return self.tools.constant(np.zeros(directions * form.batch * form.hidden, np.float32))
        if not form.batch_first:
            return given
        plane = (form.hidden, directions * form.hidden, 1)
        params: dict[str, Any] = {
            "shape": (directions, form.batch, form.hidden),
            "strides": plane,
            "rank": 3,
            "offset": 0,
        }
        turned = self.state()
        self.bindings.append(self.call.bind("move", {"X": given}, turned, params))
        return turned


def _activations(form: Recurrence) -> Functions:
    """`float activation_<k>(int d, float x)` for each activation of the cell, in the direction d."""
    texts, numbers = list[str](), list[float]()
    for d, chains in enumerate(form.activations):
        for k, chain in enumerate(chains):
            made = function_of(chain, f"activation_{k}_{d}", len(numbers))
            texts.append(made.text)
            numbers += made.numbers
    last = len(form.activations) - 1
    for k in range(len(form.activations[0])):
        choice = f"d == 0 ? activation_{k}_0(x) : activation_{k}_{last}(x)"
        texts.append(f"float activation_{k}(int d, float x) {{ return {choice}; }}")
    return Functions("\n".join(texts), tuple(numbers))


def _rnn(made: _Lowering, step: int, h: Operand, c: Operand) -> tuple[Operand, Operand]:
    defines = {"ACTIVATE(d, x)": "activation_0(d, x)", "KEPT": "H(o)"}
    return made.kernel("GATES", step, {"H": h}, made.state(), defines=defines), c


def _gru(made: _Lowering, step: int, h: Operand, c: Operand) -> tuple[Operand, Operand]:
    used = 2 * made.call.form.hidden
    defines = {"ACTIVATE(d, x)": "activation_0(d, x)"}
    gates = made.kernel("GATES", step, {"H": h}, made.reused("gates", used), used=used, defines=defines)
    return made.kernel("GRU", step, {"H": h, "G": gates}, made.state()), c


def _lstm(made: _Lowering, step: int, h: Operand, c: Operand) -> tuple[Operand, Operand]:
    used = 4 * made.call.form.hidden
    gates = made.kernel("GATES", step, {"H": h}, made.reused("gates", used), used=used)
    cell = made.kernel("CELL", step, {"G": gates, "C": c}, made.reused(f"cell {step % 2}"))
    return made.kernel("HIDDEN", step, {"H": h, "G": gates, "D": cell}, made.state()), cell


_CELLS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


def lower(call: Call[Recurrence], tools: Tools) -> list[Binding]:
    """The products with W, the kernels of each step, and the outputs, which are made of the states of all steps."""
    form, w, r = call.form, call.input(1), call.input(2)
    b, lengths, h, c, p = (call.optional(index) for index in range(3, 8))
    directions, rows, columns = len(form.reverse), form.steps * form.batch, form.gates * form.hidden
    projected = tools.scratch((directions * rows * columns,), DataType.FLOAT32)
    strides = ((0, form.inputs, 1), (columns * form.inputs, 1, form.inputs))
    product = Product((directions,), rows, columns, form.inputs, *strides, (0, 0))
    bindings = matmul.lower(Call(call.layer, product, [call.x, w], [projected]), tools) if rows else []
    shared = {"X": projected, "R": r, "B": b, "P": p, "L": lengths}
    made = _Lowering(call, tools, {name: value for name, value in shared.items() if value is not None}, bindings)
    state, cell, states = made.initial_state(h), made.initial_state(c), []
    for step in range(form.steps):
        state, cell = _CELLS[form.cell](made, step, state, cell)
        states.append(state)
    whole = joined(call, states, 1, tools, made.bindings) if states else state
    for y, source, all_steps in zip(call.outputs, (whole, state, cell), (1, 0, 0), strict=False):
        if y.shape.size:
            defines = {"WHOLE": str(all_steps)}
            made.kernel("OUTPUT", 0, {"H": source}, y, used=directions, defines=defines)
    return made.bindings
