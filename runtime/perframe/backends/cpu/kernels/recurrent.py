"""Recurrent cells. Each step adds the product with the last state to the inputs' projections, which are given.

Items are (direction, block of the batch). Only a GRU has late weights and a late bias, those of its hidden gate.
Matrices are panels. States are (directions, batch, hidden), and the output is (steps, directions, batch, hidden).
"""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import RECURRENT
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.linking import stages
from perframe.backends.cpu.kernels.memory import floats, int64s
from perframe.backends.cpu.kernels.sizes import LANES, PANEL
from perframe.backends.cpu.kernels.tile import RightPanel, Sums, TileResult, multiply_tile, one_run
from perframe.backends.cpu.kernels.vector import (
    add,
    at_least,
    at_most,
    copy_floats,
    divide,
    load,
    load_first,
    multiply,
    multiply_add,
    splat,
    stack_block,
    store,
    store_first,
    subtract,
)
from perframe.backends.cpu.kernels.whole_vector import ROUNDING

field = RECURRENT.at


@inline
def _multiply_row(a, depth, panels, c, columns, initial):
    """Compute the first columns of c = initial + a @ panels for one row, and return their number. Take four rows of a
    panel at a time: a tile of one row has too few sums to hide the latency of additions.
    """
    x, whole = floats(a), columns // PANEL * PANEL
    for column in range(0, whole, PANEL):
        panel, source, target = panels + column * depth * 4, initial + column * 4, c + column * 4
        zero = splat(float32(0))
        s0, s1, s2, s3, s4, s5, s6, s7 = load(source, 0), load(source, LANES), zero, zero, zero, zero, zero, zero
        for k in range(0, depth - depth % 4, 4):
            at = k * PANEL
            x0, x1, x2, x3 = splat(x[k]), splat(x[k + 1]), splat(x[k + 2]), splat(x[k + 3])
            s0, s1 = multiply_add(x0, load(panel, at), s0), multiply_add(x0, load(panel, at + LANES), s1)
            s2 = multiply_add(x1, load(panel, at + PANEL), s2)
            s3 = multiply_add(x1, load(panel, at + PANEL + LANES), s3)
            s4 = multiply_add(x2, load(panel, at + 2 * PANEL), s4)
            s5 = multiply_add(x2, load(panel, at + 2 * PANEL + LANES), s5)
            s6 = multiply_add(x3, load(panel, at + 3 * PANEL), s6)
            s7 = multiply_add(x3, load(panel, at + 3 * PANEL + LANES), s7)
        for k in range(depth - depth % 4, depth):
            x0, at = splat(x[k]), k * PANEL
            s0, s1 = multiply_add(x0, load(panel, at), s0), multiply_add(x0, load(panel, at + LANES), s1)
        store(add(add(s0, s2), add(s4, s6)), target, 0)
        store(add(add(s1, s3), add(s5, s7)), target, LANES)
    return whole


@inline
def _multiply(rows, a, depth, panels, c, columns, initial, pitch):
    """c = initial + a @ panels, for contiguous rows of a and c."""
    low, high = float32(-math.inf), float32(math.inf)
    done = _multiply_row(a, depth, panels, c, columns, initial) if rows == 1 else 0
    for column in range(done, columns, PANEL):
        wide, panel = min(PANEL, columns - column), panels + column * depth * 4
        first = initial + column * 4
        target = c + column * 4
        left, result = one_run(a, depth, depth), TileResult(target, columns, wide)
        multiply_tile(rows, left, RightPanel(panel, panel, 0, 0), Sums(first, pitch, 0, 0), result, (low, high))


@inline
def _padded(columns):
    return (columns + LANES - 1) // LANES * LANES


@inline
def _begin(n, item, gates):
    """(direction, first of the batch, count of rows, whether it goes backwards, address of the block's projections)."""
    steps, batch, block = n[field.steps], n[field.batch], n[field.block]
    blocks = (batch + block - 1) // block
    direction, first = item // blocks, item % blocks * block
    rows = min(block, batch - first)
    backwards = n[field.goes_backwards] if direction == 0 else 1
    projections = n[field.projected] + (direction * steps * batch + first) * gates * n[field.hidden] * 4
    return direction, first, rows, backwards, projections


@inline
def _end(n, direction, first, rows, h, c):
    """Write the last states that the layer returns."""
    at, count = (direction * n[field.batch] + first) * n[field.hidden] * 4, rows * n[field.hidden]
    if n[field.writes_last_h]:
        copy_floats(n[field.last_h] + at, h, count)
    if n[field.writes_last_c]:
        copy_floats(n[field.last_c] + at, c, count)


@inline
def _matrix(matrix, direction, depth, columns):
    return matrix + direction * depth * _padded(columns) * 4


@inline
def _in_steps(h, count, rounded):
    """Round a state to whole steps: 255 of them span its range, which contains 0."""
    x, low, high = floats(h), float32(0), float32(0)
    for i in range(count):
        low, high = min(low, x[i]), max(high, x[i])
    step = (high - low) / float32(255) if high != low else float32(1)
    zero = round(min(max(-low / step, float32(0)), float32(255)))
    rounding = splat(float32(ROUNDING))
    steps, least, most = splat(step), splat(float32(-zero)), splat(float32(255 - zero))
    for i in range(0, count, LANES):
        size = min(LANES, count - i)
        value = at_most(at_least(divide(load_first(h, i, size), steps), least), most)
        store_first(multiply(subtract(add(value, rounding), rounding), steps), rounded, i, size)


@stages("first")
def rnn(first: Any) -> Any:
    def kernel(numbers, begin, end):
        n = int64s(numbers)
        p = floats(n[field.parameters])
        steps, batch, hidden, directions = n[field.steps], n[field.batch], n[field.hidden], n[field.directions]
        for item in range(begin, end):
            direction, row, rows, backwards, projected = _begin(n, item, 1)
            h = n[field.h] + n[field.has_h] * (direction * batch + row) * hidden * 4
            panels = _matrix(n[field.weights], direction, hidden, hidden)
            for step in range(steps):
                time = steps - 1 - step if backwards else step
                target = n[field.out] + ((time * directions + direction) * batch + row) * hidden * 4
                given = projected + time * batch * hidden * 4
                _multiply(rows, h, hidden, panels, target, hidden, given, hidden)
                out = floats(target)
                for i in range(rows * hidden):
                    out[i] = first(out[i], p)
                h = target
            _end(n, direction, row, rows, h, h)

    return kernel


@stages("first", "second")
def gru(first: Any, second: Any) -> Any:
    def kernel(numbers, begin, end):
        n = int64s(numbers)
        p = floats(n[field.parameters])
        steps, batch, hidden, directions = n[field.steps], n[field.batch], n[field.hidden], n[field.directions]
        after = n[field.resets_after]
        memory = stack_block()
        for item in range(begin, end):
            direction, row, rows, backwards, projected = _begin(n, item, 3)
            h = n[field.h] + n[field.has_h] * (direction * batch + row) * hidden * 4
            gates, made, reset = memory, memory + 2 * rows * hidden * 4, memory + 3 * rows * hidden * 4
            panels = _matrix(n[field.weights], direction, hidden, 2 * hidden)
            last = _matrix(n[field.late_weights], direction, hidden, hidden)
            bias = n[field.late_bias] + direction * hidden * 4
            for step in range(steps):
                time = steps - 1 - step if backwards else step
                target = n[field.out] + ((time * directions + direction) * batch + row) * hidden * 4
                given = projected + time * batch * 3 * hidden * 4
                rest = given + 2 * hidden * 4
                _multiply(rows, h, hidden, panels, gates, 2 * hidden, given, 3 * hidden)
                g, new, old, kept, x, out = (
                    floats(gates),
                    floats(made),
                    floats(h),
                    floats(reset),
                    floats(rest),
                    floats(target),
                )
                for i in range(2 * rows * hidden):
                    g[i] = first(g[i], p)
                if after:
                    _multiply(rows, h, hidden, last, made, hidden, bias, 0)
                    for r in range(rows):
                        a = r * hidden
                        for i in range(hidden):
                            new[a + i] = second(x[3 * a + i] + g[2 * a + hidden + i] * new[a + i], p)
                else:
                    for r in range(rows):
                        a = r * hidden
                        for i in range(hidden):
                            kept[a + i] = g[2 * a + hidden + i] * old[a + i]
                    _multiply(rows, reset, hidden, last, made, hidden, rest, 3 * hidden)
                    for i in range(rows * hidden):
                        new[i] = second(new[i], p)
                for r in range(rows):
                    a = r * hidden
                    for i in range(hidden):
                        update = g[2 * a + i]
                        out[a + i] = (float32(1) - update) * new[a + i] + update * old[a + i]
                h = target
            _end(n, direction, row, rows, h, h)

    return kernel


@stages("first", "second", "third")
def lstm(first: Any, second: Any, third: Any) -> Any:
    def kernel(numbers, begin, end):
        n = int64s(numbers)
        p = floats(n[field.parameters])
        steps, batch, hidden, directions = n[field.steps], n[field.batch], n[field.hidden], n[field.directions]
        memory = stack_block()
        for item in range(begin, end):
            direction, row, rows, backwards, projected = _begin(n, item, 4)
            at = (direction * batch + row) * hidden * 4
            h, gates, state = n[field.h] + n[field.has_h] * at, memory, memory + 4 * rows * hidden * 4
            rounded = state + rows * hidden * 4
            copy_floats(state, n[field.c] + n[field.has_c] * at, rows * hidden)
            panels = _matrix(n[field.weights], direction, hidden, 4 * hidden)
            for step in range(steps):
                time = steps - 1 - step if backwards else step
                target = n[field.out] + ((time * directions + direction) * batch + row) * hidden * 4
                given = projected + time * batch * 4 * hidden * 4
                seen = h
                if n[field.rounds_state]:
                    seen = rounded
                    _in_steps(h, rows * hidden, rounded)
                _multiply(rows, seen, hidden, panels, gates, 4 * hidden, given, 4 * hidden)
                for r in range(rows):
                    g, c, out = (
                        floats(gates + r * hidden * 16),
                        floats(state + r * hidden * 4),
                        floats(target + r * hidden * 4),
                    )
                    for i in range(3 * hidden):
                        g[i] = first(g[i], p)
                    for i in range(hidden):
                        c[i] = g[2 * hidden + i] * c[i] + g[i] * second(g[3 * hidden + i], p)
                    for i in range(hidden):
                        out[i] = g[hidden + i] * third(c[i], p)
                h = target
            _end(n, direction, row, rows, h, state)

    return kernel
