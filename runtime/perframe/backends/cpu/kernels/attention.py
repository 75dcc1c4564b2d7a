"""Attention: the scores of a few queries, their softmax and the sum of values, while the scores are in the cache.

Keys come in blocks. Each block may raise a row's largest score; the sums over earlier blocks are then scaled down to it
(Milakov and Gimelshein, 2018; Dao et al., 2022).
"""

from __future__ import annotations

import math
from typing import Any

from numba import float32

from perframe.backends.cpu.kernels.fields import ATTENTION
from perframe.backends.cpu.kernels.inlining import inline
from perframe.backends.cpu.kernels.math import exp_of_negative, tanh
from perframe.backends.cpu.kernels.memory import add_in_any_order, bools, floats, int64s
from perframe.backends.cpu.kernels.sizes import ATTENTION_ROWS, LANES, PANEL, QUERIES, ROWS, SCORES
from perframe.backends.cpu.kernels.strides import offset_of
from perframe.backends.cpu.kernels.tile import RightPanel, Sums, TileResult, multiply_tile, one_run
from perframe.backends.cpu.kernels.vector import (
    at_least,
    largest_of,
    load,
    load_first,
    multiply_add,
    splat,
    stack_block,
    sum_of,
    zero_floats,
)

field, BATCH = ATTENTION.at, ATTENTION.rest  # BATCH: the index of the batch's first dim
LOWEST = float32(-math.inf)
STATS = ATTENTION_ROWS + 2  # rows with statistics: the largest score, and the total of the weights


@inline
def _at(n, item, operand):
    """The offset of an operand's matrix for this item of the batch."""
    rank = n[field.rank]
    return offset_of(n, BATCH, BATCH + (operand + 1) * rank, rank, item)


@inline
def _scaled(source, row_step, step, target, pitch, rows, size, scale):
    """Copy queries, multiplied by the scale."""
    for r in range(rows):
        x, out = floats(source + r * row_step * 4), floats(target + r * pitch * 4)
        if step == 1:
            for d in range(size):
                out[d] = x[d] * scale
        else:
            for d in range(size):
                out[d] = x[d * step] * scale


@inline
def _multiply(a, pitch, rows, b, b_depth, first, depth, columns, c, c_pitch, row_of):
    """c = c + a @ b, or c = row_of + a @ b unless `row_of` is 0. b is rows `first` to `first + depth` of panels."""
    tiles = (rows + ROWS - 1) // ROWS
    for j in range(0, columns, PANEL):
        count = min(PANEL, columns - j)
        width = (count + LANES - 1) // LANES * LANES
        panel = b + (j * b_depth + first * width) * 4
        following = panel + depth * width * 4
        row = 0
        for i in range(tiles):
            high = (rows + tiles - 1 - i) // tiles
            target = c + (row * c_pitch + j) * 4
            multiply_tile(
                high,
                one_run(a + row * pitch * 4, pitch, depth),
                RightPanel(panel, following, 0, 0),
                Sums(target, c_pitch, 0, 0) if row_of == 0 else Sums(row_of, 0, 0, 0),
                TileResult(target, c_pitch, count),
                (LOWEST, float32(math.inf)),
            )
            row += high


@inline
def _masked(n, scores, count, row, key, added_at, kept_at):
    """Cap and mask `count` scores of a row, from that of `key` on."""
    s, softcap, fill = floats(scores), floats(n[field.parameters])[1], floats(n[field.parameters])[2]
    if softcap != float32(0):
        for i in range(count):
            s[i] = softcap * tanh(s[i] / softcap)
    if n[field.has_added]:
        step = n[field.added_column]
        added = floats(n[field.added] + (added_at + row * n[field.added_row] + key * step) * 4)
        if step == 1:
            for i in range(count):
                s[i] += added[i]
        else:
            for i in range(count):
                s[i] += added[i * step]
    if n[field.has_kept]:
        step, keeps = n[field.kept_column], n[field.keeps]
        kept = bools(n[field.kept] + kept_at + row * n[field.kept_row] + key * step)
        if step == 1:
            for i in range(count):
                s[i] = s[i] if (kept[i] != 0) == (keeps != 0) else fill
        else:
            for i in range(count):
                s[i] = s[i] if (kept[i * step] != 0) == (keeps != 0) else fill


@inline
def _largest(scores, count, whole):
    """The largest score of a row. The rest of its last vector is set to minus infinity, which weighs nothing."""
    s = floats(scores)
    for i in range(count, whole):
        s[i] = LOWEST
    found = splat(LOWEST)
    for i in range(0, whole, LANES):
        found = at_least(found, load(scores, i))
    return largest_of(found)


@inline
def _softmax(scores, pitch, count, row, most, total):
    """Write exp(score - largest) for two rows at once. `most` includes earlier keys; `total` sums these keys alone."""
    other = scores + pitch * 4
    s, t = floats(scores), floats(other)
    whole = (count + LANES - 1) // LANES * LANES
    a, b = _largest(scores, count, whole), _largest(other, count, whole)
    a, b = a if a > most[row] else most[row], b if b > most[row + 1] else most[row + 1]
    first, second = float32(0) if a == LOWEST else a, float32(0) if b == LOWEST else b
    sum_a, sum_b = float32(0), float32(0)
    for i in range(whole):
        weight, other_weight = exp_of_negative(s[i] - first), exp_of_negative(t[i] - second)
        s[i] = weight
        t[i] = other_weight
        sum_a = add_in_any_order(sum_a, weight)
        sum_b = add_in_any_order(sum_b, other_weight)
    most[row], most[row + 1], total[row], total[row + 1] = a, b, sum_a, sum_b


@inline
def _scale_down(out, columns, before, largest):
    """Scale the sums over earlier keys down to the new largest score. Return the factor."""
    factor = float32(1) if largest == before else exp_of_negative(before - largest)
    if factor != float32(1):
        o = floats(out)
        for c in range(columns):
            o[c] *= factor
    return factor


@inline
def _finished(n, out, columns, row, total, dropped_at):
    """Divide a row of the result by its total. A row that is dropped, or has no keys, becomes zeros."""
    o = floats(out)
    empty = n[field.key_count] == 0
    if n[field.has_dropped]:
        empty = empty or bools(n[field.dropped])[dropped_at + row * n[field.dropped_row]] != 0
    if empty:
        zero_floats(out, columns)
    else:
        factor = float32(1) / total
        for c in range(columns):
            o[c] *= factor


def build() -> Any:
    """Items are (batch, block of rows). Keys and values come in panels. The parameters are scale, softcap and fill."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        rows, keys, size, columns = n[field.rows], n[field.key_count], n[field.size], n[field.columns]
        out_pitch = n[field.out_row]
        row_block, key_block, row_items = n[field.row_block], n[field.key_block], n[field.row_items]
        zeros = stack_block()
        scores = zeros + PANEL * 4
        queries = scores + SCORES * 4
        most, total = floats(queries + QUERIES * 4), floats(queries + (QUERIES + STATS) * 4)
        before, sums = floats(queries + (QUERIES + 2 * STATS) * 4), floats(queries + (QUERIES + 3 * STATS) * 4)
        pitch = (size + LANES - 1) // LANES * LANES + LANES
        zero_floats(zeros, PANEL)
        for item in range(begin, end):
            first, batch = item % row_items * row_block, item // row_items
            high = min(row_block, rows - first)
            q = n[field.query] + (n[field.query_offset] + _at(n, batch, field.query) + first * n[field.query_row]) * 4
            k, v = n[field.keys] + _at(n, batch, field.keys) * 4, n[field.values] + _at(n, batch, field.values) * 4
            added_at, kept_at = _at(n, batch, field.added), _at(n, batch, field.kept)
            dropped_at = _at(n, batch, field.dropped)
            out = n[field.out] + (_at(n, batch, field.out) + first * out_pitch) * 4
            _scaled(
                q, n[field.query_row], n[field.query_column], queries, pitch, high, size, floats(n[field.parameters])[0]
            )
            for r in range(high + 1):
                most[r], total[r] = LOWEST, float32(0)
            for key in range(0, keys, key_block):
                many = min(key_block, keys - key)
                _multiply(queries, pitch, high, k + key * size * 4, size, 0, size, many, scores, key_block, zeros)
                for r in range(high):
                    before[r], sums[r] = most[r], total[r]
                    _masked(n, scores + r * key_block * 4, many, first + r, key, added_at, kept_at)
                for r in range(0, high, 2):  # an odd number of rows has a spare row behind it
                    _softmax(scores + r * key_block * 4, key_block, many, r, most, total)
                if key:
                    for r in range(high):
                        total[r] += sums[r] * _scale_down(out + r * out_pitch * 4, columns, before[r], most[r])
                _multiply(scores, key_block, high, v, keys, key, many, columns, out, out_pitch, 0 if key else zeros)
            for r in range(high):
                _finished(n, out + r * out_pitch * 4, columns, first + r, total[r], dropped_at)

    return kernel


@inline
def _scores(n, query, keys, count, scores):
    """Multiply one query by keys that are not packed."""
    size, down, across = n[field.size], n[field.key_row], n[field.key_column]
    s, q = floats(scores), floats(query)
    if down == 1:
        whole = size // LANES * LANES
        for i in range(count):
            key, found = keys + i * across * 4, splat(float32(0))
            for d in range(0, whole, LANES):
                found = multiply_add(load(query, d), load(key, d), found)
            if whole < size:
                rest = size - whole
                found = multiply_add(load_first(query, whole, rest), load_first(key, whole, rest), found)
            s[i] = sum_of(found)
    else:
        for i in range(count):
            s[i] = float32(0)
        for d in range(size):
            key = floats(keys + d * down * 4)
            for i in range(count):
                s[i] += q[d] * key[i * across]


@inline
def _weighed(n, scores, count, values, out):
    """Add values that are not packed, each times its weight, four at a time."""
    columns, down, across = n[field.columns], n[field.value_row], n[field.value_column]
    o, s = floats(out), floats(scores)
    whole = count // 4 * 4
    for i in range(0, whole, 4):
        v0, v1 = floats(values + i * down * 4), floats(values + (i + 1) * down * 4)
        v2, v3 = floats(values + (i + 2) * down * 4), floats(values + (i + 3) * down * 4)
        if across == 1:
            for c in range(columns):
                o[c] += (s[i] * v0[c] + s[i + 1] * v1[c]) + (s[i + 2] * v2[c] + s[i + 3] * v3[c])
        else:
            for c in range(columns):
                at = c * across
                o[c] += (s[i] * v0[at] + s[i + 1] * v1[at]) + (s[i + 2] * v2[at] + s[i + 3] * v3[at])
    for i in range(whole, count):
        v = floats(values + i * down * 4)
        for c in range(columns):
            o[c] += s[i] * v[c * across]


def rows() -> Any:
    """Items are (batch, row). Keys and values are not packed."""

    def kernel(numbers, begin, end):
        n = int64s(numbers)
        rows, keys, size, columns = n[field.rows], n[field.key_count], n[field.size], n[field.columns]
        scores = stack_block()
        query = scores + SCORES * 4
        most, total = floats(query + QUERIES * 4), floats(query + (QUERIES + STATS) * 4)
        for item in range(begin, end):
            row, batch = item % rows, item // rows
            q = n[field.query] + (n[field.query_offset] + _at(n, batch, field.query) + row * n[field.query_row]) * 4
            k = n[field.keys] + (n[field.key_offset] + _at(n, batch, field.keys)) * 4
            v = n[field.values] + (n[field.value_offset] + _at(n, batch, field.values)) * 4
            added_at, kept_at = _at(n, batch, field.added), _at(n, batch, field.kept)
            dropped_at = _at(n, batch, field.dropped)
            out = n[field.out] + (_at(n, batch, field.out) + row * n[field.out_row]) * 4
            _scaled(q, 0, n[field.query_column], query, 0, 1, size, floats(n[field.parameters])[0])
            zero_floats(out, columns)
            before, sums = LOWEST, float32(0)
            for key in range(0, keys, SCORES // 2):
                many = min(SCORES // 2, keys - key)
                _scores(n, query, k + key * n[field.key_column] * 4, many, scores)
                _masked(n, scores, many, row, key, added_at, kept_at)
                most[0], most[1] = before, LOWEST
                _softmax(scores, SCORES // 2, many, 0, most, total)
                sums = total[0] + sums * _scale_down(out, columns, before, most[0])
                before = most[0]
                _weighed(n, scores, many, v + key * n[field.value_row] * 4, out)
            _finished(n, out, columns, row, sums, dropped_at)

    return kernel
