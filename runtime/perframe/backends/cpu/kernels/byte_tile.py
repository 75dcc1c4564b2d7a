"""Products of bytes: a tile of int32 sums in registers, by this CPU's own instructions for four products at once.

A tile has at most `TILE_ROWS` rows, and one or two vectors of columns. The left operand's rows are unsigned bytes,
`pitch` apart, and its depth is read in groups of four. The right operand is signed, and packed in panels of `PANEL`
columns: for each group (columns in whole vectors, 4). The sums go to rows of `PANEL` int32.

Products of bfloat16 have the same layout, with two numbers in a group of four bytes, and sums of float32.

The kinds: "amx" has tiles of 16 rows as registers, and always reads all 16 rows; "vnni", and on arm64 "sudot" and
"sdot", multiply vectors; "plain" multiplies pairs of 16 bits, for every other CPU. Those of bfloat16 are "bfloat_amx"
and "bfloat_pairs"; tests compare them with "bfloat_plain", which every CPU has. AMX takes its depth in equal steps of
up to 16 groups, and it alone takes several runs of steps, with `skip` bytes of the left operand between two.
`begin_tiles` sets the registers up for them, and `end_tiles` gives the registers back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from perframe.backends.cpu.kernels import dot_tile
from perframe.backends.cpu.kernels.emit import function_of, loop, number
from perframe.backends.cpu.kernels.inlining import emitted, inline
from perframe.backends.cpu.kernels.memory import bools
from perframe.backends.cpu.kernels.sizes import AMX_ROWS, GROUP, LANES, PANEL, REGISTERS
from perframe.backends.cpu.kernels.vector import I32, I64, VECTOR, declare, multiply_add_of, splat_of
from perframe.backends.cpu.kernels.whole_vector import INTS

TILE_ROWS = {"amx": 2 * AMX_ROWS, "vnni": min(14, (REGISTERS - 3) // 2), "plain": 4}
TILE_ROWS |= dict.fromkeys(dot_tile.FEATURES, dot_tile.ROWS)
TILE_ROWS |= {"bfloat_amx": TILE_ROWS["amx"], "bfloat_pairs": TILE_ROWS["vnni"], "bfloat_plain": (REGISTERS - 6) // 2}
# the least rows that a tile reads, even if it computes fewer
READ_ROWS = dict.fromkeys(TILE_ROWS, 1) | dict.fromkeys(("amx", "bfloat_amx"), AMX_ROWS)

VECTORS = PANEL // LANES
ROW_BYTES = LANES * GROUP  # bytes of one vector of a panel
_VOID = ir.VoidType()
_PAIRS = ir.VectorType(ir.IntType(16), 2 * LANES)
_EIGHT = ir.Constant(_PAIRS, [8] * 2 * LANES)
_HALF = ir.Constant(INTS, [16] * LANES)  # the bits of half a lane
# Tiles of up to FEW_ROWS rows wait for memory. They ask for each part of a panel AHEAD bytes before they read it.
FEW_ROWS, AHEAD = 4, 8192
SUMS_AT_ONCE = 8  # that run side by side, so that each waits for no other: a power of two
_NAME = "zmm" if LANES == 16 else "ymm"
_PREFIX = "" if LANES == 16 else "{vex} "  # AVX-VNNI

Emit = Callable[[int, int, Any, Sequence[Any]], None]


def _assembly(builder: Any, lines: list[str], values: list[Any], changed: int, clobbered: list[str]) -> None:
    """Emit lines of assembly. They read `values` as $0 and so on, and overwrite the first `changed` of them."""
    result = ir.LiteralStructType([I64] * changed) if changed else _VOID
    kind = ir.FunctionType(result, [value.type for value in values])
    outputs = ["=&r"] * changed
    inputs = [str(index) for index in range(changed)] + ["r"] * (len(values) - changed)
    ends = [f"~{{{name}}}" for name in ("memory", "flags", *clobbered)]
    builder.asm(kind, "\n\t".join(lines), ",".join([*outputs, *inputs, *ends]), values, True)


def _amx(instruction: str, blocks: int, vectors: int, builder: Any, values: Sequence[Any]) -> None:
    """Multiply blocks of 16 rows: each register of the left operand by each of the right."""
    a, pitch, b, sums, steps, groups, runs, skip = values
    width = number(vectors * ROW_BYTES)
    step, panel = builder.mul(groups, number(GROUP)), builder.mul(groups, width)
    second = builder.add(a, builder.mul(pitch, number(AMX_ROWS)))
    # the first five change: two addresses of rows, the panel's address, and two counters
    given = [a, second, b, steps, runs, pitch, width, step, panel, sums, number(PANEL * 4), steps, skip]
    names = ["a", "second", "b", "left", "runs", "pitch", "width", "step", "panel", "sums", "line", "steps", "skip"]
    # operands that change have two numbers, as outputs and as inputs; these come before the numbers of the others
    at = {name: f"${index + (5 if index > 4 else 0)}" for index, name in enumerate(names)}
    tiles = [(block, vector, f"%tmm{2 * block + vector}") for block in range(blocks) for vector in range(vectors)]
    rows = [at["a"], at["second"]]
    lines = [f"tilezero {tile}" for *_, tile in tiles]
    lines.append("1:")
    lines += [
        f"tileloadd {vector * ROW_BYTES}({at['b']},{at['width']},1), %tmm{6 + vector}" for vector in range(vectors)
    ]
    for block in range(blocks):
        lines.append(f"tileloadd ({rows[block]},{at['pitch']},1), %tmm{4 + block}")
        mine = [(vector, tile) for row, vector, tile in tiles if row == block]
        lines += [f"{instruction} %tmm{6 + vector}, %tmm{4 + block}, {tile}" for vector, tile in mine]
    lines += [f"addq {at['step']}, {row}" for row in rows]
    lines += [f"addq {at['panel']}, {at['b']}", f"decq {at['left']}", "jnz 1b"]
    lines += [*(f"addq {at['skip']}, {row}" for row in rows), f"movq {at['steps']}, {at['left']}"]
    lines += [f"decq {at['runs']}", "jnz 1b"]
    for block, vector, tile in tiles:
        lines.append(
            f"tilestored {tile}, {(block * AMX_ROWS * PANEL + vector * LANES) * 4}({at['sums']},{at['line']},1)"
        )
    _assembly(builder, lines, given, 5, [])


def _by_vectors(instruction: str, add: str, rows: int, vectors: int, builder: Any, values: Sequence[Any]) -> None:
    """Multiply a broadcast group of each row by a row of the panel."""
    a, pitch, b, sums, steps, groups, *_ = values
    bases = [builder.add(a, builder.mul(pitch, number(first))) for first in range(0, rows, 4)]
    count = builder.mul(steps, groups)
    changed = [*bases, b, count]
    given = [*changed, pitch, builder.mul(pitch, number(3)), sums]
    panel, left = f"${len(bases)}", f"${len(bases) + 1}"
    once, thrice, result = (f"${2 * len(changed) + index}" for index in range(3))
    places = ["(%s)", f"(%s,{once},1)", f"(%s,{once},2)", f"(%s,{thrice},1)"]
    size = rows * vectors
    phases = max(1, SUMS_AT_ONCE // size)  # groups side by side, each with sums of its own
    total = [f"%{_NAME}{k}" for k in range(phases * size)]
    right = [f"%{_NAME}{phases * size + vector}" for vector in range(vectors)]
    element = f"%{_NAME}{phases * size + vectors}"

    def group(phase: int) -> list[str]:
        at = phase * vectors
        lines = [f"vmovups {(at + vector) * ROW_BYTES}({panel}), {name}" for vector, name in enumerate(right)]
        if rows <= FEW_ROWS:
            lines += [f"prefetcht0 {AHEAD + (at + vector) * ROW_BYTES}({panel})" for vector in range(vectors)]
        for row in range(rows):
            lines.append(f"vpbroadcastd {phase * GROUP}{places[row % 4] % f'${row // 4}'}, {element}")
            mine = total[at * rows + row * vectors :]
            lines += [f"{instruction} {b}, {element}, {mine[vector]}" for vector, b in enumerate(right)]
        return lines

    def step_on(count: int) -> list[str]:
        lines = [f"addq $${count * GROUP}, ${index}" for index in range(len(bases))]
        return [*lines, f"addq $${count * vectors * ROW_BYTES}, {panel}", f"subq $${count}, {left}"]

    lines = [
        f"vpxor %xmm{k}, %xmm{k}, %xmm{k}" if k < 16 else f"vpxorq %zmm{k}, %zmm{k}, %zmm{k}" for k in range(len(total))
    ]
    if phases > 1:
        lines += [f"cmpq $${phases}, {left}", "jb 2f", "1:"]
        lines += [line for phase in range(phases) for line in group(phase)]
        lines += [*step_on(phases), f"cmpq $${phases}, {left}", "jae 1b", "2:", f"testq {left}, {left}", "jz 4f"]
    lines += ["3:", *group(0), *step_on(1), "jnz 3b", "4:"]
    while phases > 1:  # half of the sums are added to the others
        phases //= 2
        lines += [f"{add} {total[phases * size + k]}, {total[k]}, {total[k]}" for k in range(phases * size)]
    for row in range(rows):
        for vector in range(vectors):
            lines.append(f"vmovups {total[row * vectors + vector]}, {(row * PANEL + vector * LANES) * 4}({result})")
    _assembly(builder, lines, given, len(changed), [*(name[1:] for name in (*total, *right)), element[1:]])


def _plain(rows: int, vectors: int, builder: Any, values: Sequence[Any]) -> None:
    """Widen bytes to pairs of 16 bits, the even and the odd bytes of a group, and add up the products of pairs."""
    a, pitch, b, sums, steps, groups, *_ = values
    starts = [builder.add(a, builder.mul(pitch, number(row))) for row in range(rows)]

    def add_group(values: list[Any]) -> list[Any]:
        at, *totals = values
        panel = builder.add(b, builder.mul(at, number(vectors * ROW_BYTES)))
        right = []
        for vector in range(vectors):
            pairs = builder.load(_at(builder, panel, vector * ROW_BYTES, _PAIRS), align=1)
            right.append((builder.ashr(builder.shl(pairs, _EIGHT), _EIGHT), builder.ashr(pairs, _EIGHT)))
        for row, start in enumerate(starts):
            group = builder.load(_at(builder, builder.add(start, builder.mul(at, number(GROUP))), 0, I32), align=1)
            odd = builder.lshr(group, ir.Constant(I32, 8))
            left = [splat_of(builder, builder.and_(part, ir.Constant(I32, 0x00FF00FF))) for part in (group, odd)]
            for index, halves in enumerate(right, row * vectors):
                for one, other in zip(left, halves, strict=True):
                    product = _multiply_pairs(builder, one, builder.bitcast(other, INTS))
                    totals[index] = builder.add(totals[index], product)
        return [builder.add(at, number(1)), *totals]

    zeros = [ir.Constant(INTS, None)] * rows * vectors
    _, *running = loop(builder, "group", builder.mul(steps, groups), [number(0), *zeros], add_group, runs_once=True)
    for index, total in enumerate(running):
        offset = (index // vectors * PANEL + index % vectors * LANES) * 4
        builder.store(total, _at(builder, sums, offset, INTS), align=4)


def _bfloat_plain(rows: int, vectors: int, builder: Any, values: Sequence[Any]) -> None:
    """Widen pairs of bfloat16 to float32: these are their upper halves."""
    a, pitch, b, sums, steps, groups, *_ = values
    starts = [builder.add(a, builder.mul(pitch, number(row))) for row in range(rows)]
    upper = ir.Constant(INTS, [-(1 << 16)] * LANES)

    def widened(pairs: Any) -> list[Any]:
        return [builder.bitcast(part, VECTOR) for part in (builder.shl(pairs, _HALF), builder.and_(pairs, upper))]

    def add_group(values: list[Any]) -> list[Any]:
        at, *totals = values
        panel = builder.add(b, builder.mul(at, number(vectors * ROW_BYTES)))
        right = [
            widened(builder.load(_at(builder, panel, vector * ROW_BYTES, INTS), align=1)) for vector in range(vectors)
        ]
        for row, start in enumerate(starts):
            group = builder.load(_at(builder, builder.add(start, builder.mul(at, number(GROUP))), 0, I32), align=1)
            left = widened(splat_of(builder, group))
            for index, halves in enumerate(right, row * vectors):
                for one, other in zip(left, halves, strict=True):
                    totals[index] = multiply_add_of(builder, one, other, totals[index])
        return [builder.add(at, number(1)), *totals]

    zeros = [ir.Constant(VECTOR, [0.0] * LANES)] * rows * vectors
    _, *running = loop(builder, "group", builder.mul(steps, groups), [number(0), *zeros], add_group, runs_once=True)
    for index, total in enumerate(running):
        offset = (index // vectors * PANEL + index % vectors * LANES) * 4
        builder.store(total, _at(builder, sums, offset, VECTOR), align=4)


def _at(builder: Any, address: Any, offset: int, kind: Any) -> Any:
    return builder.inttoptr(builder.add(address, number(offset)), kind.as_pointer())


def _multiply_pairs(builder: Any, left: Any, right: Any) -> Any:
    """The sum of two products of 16 bits in each lane."""
    if _MULTIPLY_PAIRS:
        function = declare(builder.module, _MULTIPLY_PAIRS, INTS, [_PAIRS, _PAIRS])
        return builder.call(function, [builder.bitcast(left, _PAIRS), builder.bitcast(right, _PAIRS)])
    low = [builder.ashr(builder.shl(value, _HALF), _HALF) for value in (left, right)]
    high = [builder.ashr(value, _HALF) for value in (left, right)]
    return builder.add(builder.mul(*low), builder.mul(*high))


def _find_multiply_pairs() -> str:
    """The instruction that multiplies pairs; "" if this CPU has none."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    if LANES == 16:
        return "llvm.x86.avx512.pmaddw.d.512" if features.get("avx512bw") else ""
    if LANES == 8:
        return "llvm.x86.avx2.pmadd.wd"
    return "llvm.x86.sse2.pmadd.wd" if features.get("sse2") else ""


_MULTIPLY_PAIRS = _find_multiply_pairs()


def _tile(kind: str, emit: Emit, sizes: dict[int, int]) -> Any:
    """An intrinsic that calls the function for its rows and columns. `sizes` maps rows to those of the function."""

    @intrinsic
    def multiply(
        typing: Any,
        rows: Any,
        columns: Any,
        a: Any,
        pitch: Any,
        b: Any,
        sums: Any,
        steps: Any,
        groups: Any,
        runs: Any,
        skip: Any,
    ) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            done, start = builder.append_basic_block("tile_done"), builder.block
            blocks = [builder.append_basic_block(f"tile_{vectors}") for vectors in range(1, VECTORS + 1)]
            for vectors, block in enumerate(blocks, 1):
                builder.position_at_end(block)
                cases = builder.switch(args[0], done)
                for rows, size in sizes.items():
                    case = builder.append_basic_block(f"tile_{rows}_{vectors}")
                    cases.add_case(number(rows), case)
                    builder.position_at_end(case)
                    body = functools.partial(emit, size, vectors)
                    tile = function_of(builder.module, f"perframe_{kind}_{size}_{vectors}", [I64] * 8, body)
                    builder.call(tile, args[2:])
                    builder.branch(done)
            builder.position_at_end(start)
            wide = builder.icmp_signed(">", args[1], number(LANES))
            builder.cbranch(wide, blocks[1], blocks[0])
            builder.position_at_end(done)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 10), codegen

    return multiply


@emitted(types.void, types.int64)
def _load_tile_config(builder: Any, address: Any) -> None:
    _assembly(builder, ["ldtilecfg ($0)"], [address], 0, [])


@emitted(types.void)
def _release_tiles(builder: Any) -> None:
    _assembly(builder, ["tilerelease"], [], 0, [])


@inline
def _configure(memory, groups):
    """Set up the registers: sums of 16 rows of 64 bytes, and operands with four bytes or a row for each group."""
    config = bools(memory)
    for index in range(64):
        config[index] = 0
    config[0] = 1
    for tile in range(8):
        config[16 + 2 * tile] = groups * GROUP if tile in (4, 5) else 64
        config[48 + tile] = groups if tile >= 6 else AMX_ROWS
    _load_tile_config(memory)


@inline
def _no_configuration(memory, groups):
    pass


@inline
def _nothing():
    pass


def tile_of(kind: str) -> tuple[Any, Any, Any]:
    """(begin_tiles, multiply, end_tiles) of one kind."""
    if READ_ROWS[kind] > 1:
        sizes = {rows: -(-rows // AMX_ROWS) for rows in range(1, 2 * AMX_ROWS + 1)}
        instruction = "tdpbusd" if kind == "amx" else "tdpbf16ps"
        return _configure, _tile(kind, functools.partial(_amx, instruction), sizes), _release_tiles
    emit: Emit = _VECTORS.get(kind) or functools.partial(dot_tile.dot, kind)
    return _no_configuration, _tile(kind, emit, {rows: rows for rows in range(1, TILE_ROWS[kind] + 1)}), _nothing


_VECTORS: dict[str, Emit] = {
    "vnni": functools.partial(_by_vectors, f"{_PREFIX}vpdpbusd", "vpaddd"),
    "plain": _plain,
    "bfloat_pairs": functools.partial(_by_vectors, "vdpbf16ps", "vaddps"),
    "bfloat_plain": _bfloat_plain,
}
