"""Recurrent layers on GL: one product for the inputs of all steps, and then one kernel a step, or two."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from perframe.backends.gl.families import matmul
from perframe.backends.gl.families.join import joined
from perframe.backends.gl.lowering.steps import Binding, Call, Functions, Tools, function_of
from perframe.backends.gl.lowering.together import share_products
from perframe.backends.operand import Operand
from perframe.ir.sizes.size import specialized
from perframe.layers.matmul import Product
from perframe.layers.recurrent import Recurrence
from perframe.safety.records import dataclass
from perframe.tensor import DataType

_CELLS = {"RNN": 0, "GATES": 1, "GRU": 2, "LSTM": 3}  # what a kernel computes
_ENDS = {"PACK": 0, "BEGIN": 1, "OUTPUT": 2}  # what the kernels before and after the steps do
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

    def __post_init__(self) -> None:
        form = self.call.form
        self.pitch, self.rows = -(-form.hidden // 4) * 4, len(form.reverse) * form.batch
        self.numbers = 2 if form.cell == "LSTM" else 1  # of a unit: its hidden state, and its cell
        self.reverse = sum(1 << d for d, reverse in enumerate(form.reverse) if reverse)
        self.activations = _activations(form)
        self.gates: Operand | None = None  # of a step; the next one writes to the same storage

    def defines(self, names: dict[str, int], **more: int) -> dict[str, str]:
        """The defines of a kernel, with these names for the values that some of them may have."""
        present = {"BIAS": "B", "PEEPHOLES": "P", "LENGTHS": "L"}
        found = {name: 1 for name, given in present.items() if given in self.inputs}
        return {name: str(value) for name, value in (names | found | {"NUMBERS": self.numbers} | more).items()}

    def units(self, width: int) -> Operand:
        """Scratch storage for `units` units a row."""
        return self.tools.scratch((self.rows * width * self.numbers,), DataType.FLOAT32)

    def cell(self, cell: str, products: int, step: int, state: Operand, **more: Operand) -> Operand:
        """Append the kernel of a step, and return what it makes: the gates, or else a new state."""
        form = self.call.form
        width = 2 * self.pitch if cell == "GATES" else self.pitch
        y = self.gates if cell == "GATES" and self.gates is not None else self.units(width)
        params: dict[str, Any] = {
            "step": step,
            "pitch": self.pitch,
            "reverse": self.reverse,
            "step_stride": 1 if form.batch_first else form.batch,
            "batch_stride": form.steps if form.batch_first else 1,
        }
        given = {**self.inputs, "S": state, **more}
        defines = self.defines(_CELLS, CELL=_CELLS[cell], PRODUCTS=products)
        sharing = share_products(self.rows * width, self.pitch // 4, self.tools)
        bound = sharing.bind(self.call, "recurrent", given, y, params, defines, self.activations)
        self.bindings.append(bound)
        return y

    def end(self, part: str, reads: dict[str, Operand], y: Operand, which: int = 0, **defines: int) -> Operand:
        """Append a kernel before or after the steps, and return its output."""
        directions = len(self.call.form.reverse)
        params = {"pitch": self.pitch, "reverse": self.reverse, "directions": directions, "which": which}
        given = reads | {name: self.inputs[name] for name in "L" if name in self.inputs}
        made = self.defines(_ENDS, **({"PART": _ENDS[part], "WHOLE": 0} | defines))
        self.bindings.append(self.call.bind("recurrent_ends", given, y, params, made))
        return y

    def first_state(self, h: Operand | None, c: Operand | None) -> Operand:
        """The first state; zeros if it is not given."""
        size = specialized(self.rows * self.pitch * self.numbers)
        given = {name: value for name, value in (("H", h), ("C", c)) if value is not None}
        if not given:
            return self.tools.constant(np.zeros(size, np.float32))
        has = {{"H": "HAS_HIDDEN", "C": "HAS_CELL"}[name]: 1 for name in given}
        return self.end("BEGIN", given, self.units(self.pitch), **has)

    def packed(self, r: Operand) -> Operand:
        """The weights of the recurrent products, so that neighboring units lie side by side."""
        form, directions, quads = self.call.form, len(self.call.form.reverse), self.pitch // 4

        def pack(value: Any) -> Any:
            padded = np.pad(value, ((0, 0), (0, 0), (0, self.pitch - form.hidden)))
            parts = padded.reshape(directions, form.gates, form.hidden, quads, 4)
            return np.ascontiguousarray(parts.transpose(0, 3, 1, 2, 4))

        if r.is_constant:
            return r.derived("units side by side", pack)
        size = directions * quads * form.gates * form.hidden * 4
        return self.end("PACK", {"R": r}, self.tools.scratch((size,), DataType.FLOAT32))

    def next_state(self, step: int, state: Operand) -> Operand:
        """Append the kernels of a step. The third product of a GRU may need its gates."""
        form = self.call.form
        if form.cell == "GRU" and not form.linear_before_reset:
            self.gates = self.cell("GATES", 1, step, state)
            return self.cell("GRU", 1, step, state, G=self.gates)
        return self.cell(form.cell, form.gates, step, state)


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


def lower(call: Call[Recurrence], tools: Tools) -> list[Binding]:
    """The products with W, the kernels of each step, and the outputs, which are made of the states of all steps."""
    form, w, r = call.form, call.input(1), call.input(2)
    b, lengths, h, c, p = (call.optional(index) for index in range(3, 8))
    directions, rows, columns = len(form.reverse), form.steps * form.batch, form.gates * form.hidden
    projected = tools.scratch((directions * rows * columns,), DataType.FLOAT32)
    strides = ((0, form.inputs, 1), (columns * form.inputs, 1, form.inputs))
    product = Product((directions,), rows, columns, form.inputs, *strides, (0, 0))
    bindings = matmul.lower(Call(call.layer, product, [call.x, w], [projected]), tools) if rows else []
    shared = {"X": projected, "B": b, "P": p, "L": lengths}
    made = _Lowering(call, tools, {name: value for name, value in shared.items() if value is not None}, bindings)
    made.inputs["R"] = made.packed(r)
    states = [made.first_state(h, c)]
    for step in range(specialized(form.steps)):
        states.append(made.next_state(step, states[-1]))
    whole = joined(call, states[1:], 1, tools, made.bindings) if form.steps else states[0]
    for index, (y, source) in enumerate(zip(call.outputs, (whole, states[-1], states[-1]), strict=False)):
        if y.shape.size:
            made.end("OUTPUT", {"S": source}, y, which=index == 2, WHOLE=int(index == 0))
    return made.bindings
