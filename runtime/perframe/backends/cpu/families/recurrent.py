"""Recurrent layers on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels.fields import BATCH_STEPS, RECURRENT
from perframe.backends.cpu.kernels.sizes import BLOCK, ROWS
from perframe.backends.cpu.lowering import gemm
from perframe.backends.cpu.lowering.lowering import all_float32, float_array, step
from perframe.backends.cpu.program.program import NativeStep
from perframe.backends.cpu.threads.helpers import thread_count
from perframe.backends.operand import Operand, Scratch
from perframe.backends.protocol import LayerLike
from perframe.ir.epilogue import apply, parameters
from perframe.ir.sizes.size import at_least, at_most, is_less
from perframe.layers.recurrent import Recurrence
from perframe.safety.records import dataclass


@dataclass
class _Weights:
    """The recurrent weights, bias, peepholes and activations of one direction."""

    form: Recurrence
    recurrent: Any  # (hidden, gates * hidden)
    bias: Any  # of the recurrent product, (gates * hidden)
    peepholes: Any  # of an LSTM's input, output and forget gates, (3, hidden)
    chains: Sequence[Any]

    def activate(self, which: int, x: Any) -> Any:
        """One of the cell's activations."""
        return apply(self.chains[which], x)


def _rnn(w: _Weights, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
    return w.activate(0, x + h @ w.recurrent + w.bias), c


def _gru(w: _Weights, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
    n = w.form.hidden
    gates = w.activate(0, x[:, : 2 * n] + h @ w.recurrent[:, : 2 * n] + w.bias[: 2 * n])
    update, reset = gates[:, :n], gates[:, n:]
    matrix, bias = w.recurrent[:, 2 * n :], w.bias[2 * n :]
    if w.form.linear_before_reset:
        new = w.activate(1, x[:, 2 * n :] + reset * (h @ matrix + bias))
    else:
        new = w.activate(1, x[:, 2 * n :] + (reset * h) @ matrix + bias)
    return (1 - update) * new + update * h, c


def _lstm(w: _Weights, x: Any, h: Any, c: Any) -> tuple[Any, Any]:
    into, out, forget, cell = np.split(x + h @ w.recurrent + w.bias, 4, axis=1)
    into = w.activate(0, into + w.peepholes[0] * c)
    forget = 1 - into if w.form.input_forget else w.activate(0, forget + w.peepholes[2] * c)
    c = forget * c + into * w.activate(1, cell)
    return w.activate(0, out + w.peepholes[1] * c) * w.activate(2, c), c


def _in_steps(h: Any) -> Any:
    """Round a state to whole steps of its range, which contains 0."""
    low, high = h.min(initial=0), h.max(initial=0)
    step = (high - low) / h.dtype.type(255) or h.dtype.type(1)
    zero = np.rint(np.clip(-low / step, 0, 255))
    return (np.clip(np.rint(h / step) + zero, 0, 255) - zero) * step


_CELLS: dict[str, Callable[[_Weights, Any, Any, Any], tuple[Any, Any]]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


def _along(w: _Weights, x: Any, h: Any, c: Any, lengths: Any, reverse: bool) -> tuple[Any, Any, Any]:
    """Run one direction. Return its outputs (steps, batch, hidden) and the last states. A sequence that has ended keeps
    its state; the state of an empty sequence is zero.
    """
    cell, rows = _CELLS[w.form.cell], np.arange(len(lengths))
    whole = np.zeros((len(x), *h.shape), h.dtype)
    for turn in range(len(x)):
        alive = turn < lengths
        time = np.where(alive, lengths - 1 - turn if reverse else turn, 0)
        new_h, new_c = cell(w, x[time, rows], _in_steps(h) if w.form.rounds_state else h, c)
        h, c = np.where(alive[:, None], new_h, h), np.where(alive[:, None], new_c, c)
        whole[time[alive], rows[alive]] = h[alive]
    empty = lengths[:, None] == 0
    return whole, np.where(empty, 0, h), np.where(empty, 0, c)


def compute(layer: LayerLike, form: Recurrence, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Multiply all inputs at once, then go step by step. Short floats compute in float32."""
    dtype = outputs[0].dtype.numpy
    wide = np.float64 if dtype == np.float64 else np.float32
    x, w, r, b, lengths, h, c, p = (*inputs, *(None,) * 8)[:8]
    directions, total = len(form.reverse), form.gates * form.hidden
    if form.batch_first:
        x, h, c = (None if value is None else np.swapaxes(value, 0, 1) for value in (x, h, c))
    state = np.zeros((directions, form.batch, form.hidden), wide)
    hs, cs = (state if value is None else value.astype(wide) for value in (h, c))
    biases = np.zeros((directions, 2 * total), wide) if b is None else b.astype(wide)
    peepholes = np.zeros((directions, 3 * form.hidden), wide) if p is None else p.astype(wide)
    lengths = np.full(form.batch, form.steps) if lengths is None else np.clip(lengths.astype(np.int64), 0, form.steps)
    made = []
    for d, reverse in enumerate(form.reverse):
        peephole = peepholes[d].reshape(3, form.hidden)
        weights = _Weights(form, r[d].astype(wide).T, biases[d, total:], peephole, form.activations[d])
        projected = x.astype(wide) @ w[d].astype(wide).T + biases[d, :total]
        made.append(_along(weights, projected, hs[d], cs[d], lengths, reverse))
    whole, last_h, last_c = (np.stack(values) for values in zip(*made, strict=True))
    if form.batch_first:
        results = [whole.transpose(2, 1, 0, 3), last_h.swapaxes(0, 1), last_c.swapaxes(0, 1)]
    else:
        results = [whole.transpose(1, 0, 2, 3), last_h, last_c]
    return [value.astype(dtype) for value in results[: len(outputs)]]


# --- native ---

_SPACE = {"RNN": 0, "GRU": 4, "LSTM": 5}  # elements on the stack for each element of a row's state
_WORDS = ("first", "second", "third")


def lower(
    layer: LayerLike, form: Recurrence, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
) -> list[NativeStep] | None:
    """Native steps for float32 with constant weights: one product with all inputs, then a kernel for the time steps.

    NumPy computes sequences of different lengths, peepholes, and data with the batch first.
    """
    x, w, r, b, lengths, h, c, peepholes = (*inputs, *(None,) * 8)[:8]
    if x is None or w is None or r is None or not all(value is None or value.is_constant for value in (w, r, b)):
        return None
    if lengths or peepholes or form.batch_first or form.input_forget or not all_float32([*inputs, *outputs]):
        return None
    hidden, directions, gates = form.hidden, len(form.reverse), form.gates
    space = (_SPACE[form.cell] + form.rounds_state) * hidden
    if form.rounds_state and is_less(min(ROWS, BLOCK // at_least(space, 1)), form.batch):
        return None  # the range is that of the whole batch
    if space > BLOCK or not form.inputs or layer.epilogue or len(set(form.activations)) != 1:
        return None
    text, parameters = _activations(form)
    rows, width = form.steps * form.batch, gates * hidden
    apart = bool(form.linear_before_reset)
    bias = _bias(b, form, layer)
    projected = scratch((directions, rows, width), x.dtype)
    product = gemm.Multiplication(
        images=1,
        columns=width,
        x_pitch=form.inputs,
        out_pitch=width,
        addend_pitch=0,
        window=gemm.window_of_rows(rows),
        channels=form.inputs,
        batch=(directions,),
        steps=BATCH_STEPS.operands(
            x=(0,), weights=(form.inputs * gemm.padded(width),), bias=(width,), out=(rows * width,), addend=(0,)
        ),
    )
    panels = w.derived("panels of a recurrent layer", lambda value: gemm.pack(value.swapaxes(1, 2)))
    projection = gemm.multiply(layer, product, x, panels, bias, None, projected)
    cut = 2 * hidden if form.cell == "GRU" else width
    matrix = r.derived(f"panels up to {cut}", lambda value: gemm.pack(value[:, :cut].swapaxes(1, 2)))
    second, late = matrix, bias
    if form.cell == "GRU":
        second = r.derived(f"panels from {cut}", lambda value: gemm.pack(value[:, cut:].swapaxes(1, 2)))
        late = _stored_bias(b, directions, hidden, slice(width + cut, 2 * width))
    zeros = Operand.stored(np.zeros((ROWS, hidden), np.float32))  # all items read the same
    shares = 1 if form.rounds_state else thread_count()
    block = at_most(-(-form.batch // shares), min(ROWS, BLOCK // space if space else ROWS))
    ends = [*outputs[1:3], outputs[0], outputs[0]][:2]
    extents = {"steps": form.steps, "batch": form.batch, "hidden": hidden, "directions": directions, "block": block}
    numbers = RECURRENT.numbers(
        parameters=parameters.ctypes.data,
        **extents,
        goes_backwards=int(form.reverse[0]),
        writes_last_h=int(len(outputs) > 1),
        writes_last_c=int(len(outputs) > 2),
        resets_after=int(apart),
        rounds_state=int(form.rounds_state),
        has_h=int(h is not None),
        has_c=int(c is not None),
    )
    h, c = h or zeros, c or zeros
    given = {"projected": projected, "weights": matrix, "late_weights": second, "late_bias": late, "h": h, "c": c}
    operands = RECURRENT.operands(**given, out=outputs[0], last_h=ends[0], last_c=ends[1])
    items = directions * -(-form.batch // block)
    kernel = f"recurrent.{form.cell.lower()}"
    return [projection, step(layer, kernel, operands, numbers, items, text, [parameters], grain=1)]


def _activations(form: Recurrence) -> tuple[str, Any]:
    """The text of the cell's activations as functions of (x, p), and their parameters."""
    texts, numbers = [], list[float]()
    for word, stages in zip(_WORDS, form.activations[0], strict=False):
        texts.append(jit.epilogue_text(stages, word, len(numbers)))
        numbers += parameters(stages)
    return "\n".join(texts), float_array(numbers)


def _bias(b: Operand | None, form: Recurrence, layer: LayerLike) -> Operand:
    """The bias of the projections: the sum of both biases, without the recurrent bias that a reset gate scales."""
    width = form.gates * form.hidden
    if b is None:
        return _stored_bias(None, len(form.reverse), width, slice(0, width))
    kept = 2 * form.hidden if form.linear_before_reset else width

    def both(value: Any) -> Any:
        total = value[:, :width].copy()
        total[:, :kept] += value[:, width : width + kept]
        return total

    return b.derived(f"sum of biases up to {kept}", both)


def _stored_bias(b: Operand | None, directions: int, size: int, part: slice) -> Operand:
    if b is None:
        return Operand.stored(np.zeros((directions, size), np.float32))
    return b.derived(f"bias {part}", lambda value: np.ascontiguousarray(value[:, part]))
