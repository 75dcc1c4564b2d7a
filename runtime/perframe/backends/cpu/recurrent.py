"""Recurrent layers on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perframe.backends.base import LayerLike, Operand
from perframe.layers.epilogue import apply
from perframe.layers.recurrent import Recurrence


@dataclass
class _Weights:
    """What one direction multiplies with, and its activations."""

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


_CELLS: dict[str, Callable[[_Weights, Any, Any, Any], tuple[Any, Any]]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


def _along(w: _Weights, x: Any, h: Any, c: Any, lengths: Any, reverse: bool) -> tuple[Any, Any, Any]:
    """One direction: (steps, batch, hidden) and the last states. A sequence that has ended keeps its state; one
    without elements has none, which is zero.
    """
    cell, rows = _CELLS[w.form.cell], np.arange(len(lengths))
    whole = np.zeros((len(x), *h.shape), h.dtype)
    for step in range(len(x)):
        alive = step < lengths
        time = np.where(alive, lengths - 1 - step if reverse else step, 0)
        new_h, new_c = cell(w, x[time, rows], h, c)
        h, c = np.where(alive[:, None], new_h, h), np.where(alive[:, None], new_c, c)
        whole[time[alive], rows[alive]] = h[alive]
    empty = lengths[:, None] == 0
    return whole, np.where(empty, 0, h), np.where(empty, 0, c)


def compute(layer: LayerLike, form: Recurrence, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Step by step, the products with the inputs all at once; short floats compute in float32."""
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
