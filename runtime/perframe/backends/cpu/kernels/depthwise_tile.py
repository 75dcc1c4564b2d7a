"""The inner kernel of depthwise convolutions: eight pixels by one vector of channels in registers, as LLVM IR.

A function of its own, so that its addresses stay in registers: inlined into the loops around it they do not.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from perframe.backends.cpu.kernels.sizes import LANES, REGISTERS
from perframe.backends.cpu.kernels.vector import (
    F32,
    I64,
    VECTOR,
    larger,
    load_at,
    mask_of,
    multiply_add_of,
    smaller,
    splat_of,
    store_at,
)

TILE = 8  # output pixels whose sums are in registers at once
# taps across whose inputs neighbouring pixels share, where there are registers for all of them
SHARED = (3, 5) if REGISTERS >= 32 else ()

_pointer = F32.as_pointer()
# x, its step from pixel to pixel, tap to tap, line to line, rows of taps, taps across, w, its pitch, bias, low, high,
# out, its pitch, pixels, channels
_arguments = [_pointer, I64, I64, I64, I64, I64, _pointer, I64, _pointer, F32, F32, _pointer, I64, I64, I64]


def _number(value: int) -> Any:
    return ir.Constant(I64, value)


class _Tile:
    """Emits the function for a number of taps across, or for any (0)."""

    def __init__(self, module: Any, taps: int) -> None:
        kind = ir.FunctionType(ir.VoidType(), _arguments)
        self.function = ir.Function(module, kind, f"perframe_depthwise_{taps}")
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        self.taps = taps
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self._emit()

    def _at(self, base: Any, offset: Any) -> Any:
        return self.builder.gep(base, [offset])

    def _emit(self) -> None:
        builder = self.builder
        x, step, across, down, rows, count, w, pitch, bias, low, high, out, out_pitch, pixels, channels = (
            self.function.args
        )
        self._step, self._across, self._pitch, self._count = step, across, pitch, count
        mask = mask_of(builder, channels)
        start = load_at(builder, bias, mask)
        before = builder.block
        body, after = builder.append_basic_block("row"), builder.append_basic_block("done")
        builder.cbranch(builder.icmp_signed("<", _number(0), rows), body, after)
        builder.position_at_end(body)
        row, line, weights = builder.phi(I64), builder.phi(_pointer), builder.phi(_pointer)
        sums = [builder.phi(VECTOR) for _ in range(TILE)]
        for phi, value in [(row, _number(0)), (line, x), (weights, w), *((total, start) for total in sums)]:
            phi.add_incoming(value, before)
        made, behind = self._shared(line, weights, sums) if self.taps else self._any(line, weights, sums)
        following = builder.add(row, _number(1))
        nexts = [following, self._at(line, down), behind, *made]
        for phi, value in zip([row, line, weights, *sums], nexts, strict=True):
            phi.add_incoming(value, builder.block)
        end = builder.block
        builder.cbranch(builder.icmp_signed("<", following, rows), body, after)
        builder.position_at_end(after)
        totals = [builder.phi(VECTOR) for _ in range(TILE)]
        for total, value in zip(totals, made, strict=True):
            total.add_incoming(start, before)
            total.add_incoming(value, end)
        floor, ceiling = splat_of(builder, low), splat_of(builder, high)
        results = [smaller(builder, ceiling, larger(builder, floor, total)) for total in totals]
        whole, part = builder.append_basic_block("whole"), builder.append_basic_block("part")
        builder.cbranch(builder.icmp_signed("==", channels, _number(LANES)), whole, part)
        for block, written in ((whole, None), (part, mask)):
            builder.position_at_end(block)
            self._store(results, out, out_pitch, pixels, written)

    def _store(self, results: list[Any], out: Any, pitch: Any, pixels: Any, mask: Any) -> None:
        """Write the first pixels."""
        builder = self.builder
        done = builder.append_basic_block("stored")
        for index, value in enumerate(results):
            if index:
                more = builder.append_basic_block("more")
                builder.cbranch(builder.icmp_signed("<", _number(index), pixels), more, done)
                builder.position_at_end(more)
            store_at(builder, value, self._at(out, builder.mul(pitch, _number(index))), mask)
        builder.branch(done)
        builder.position_at_end(done)
        builder.ret_void()

    def _shared(self, line: Any, weights: Any, sums: list[Any]) -> tuple[list[Any], Any]:
        """A row of taps whose step is that of pixels: each input is read once."""
        builder, running, kernel = self.builder, list(sums), []
        for _ in range(self.taps):
            kernel.append(load_at(builder, weights))
            weights = self._at(weights, self._pitch)
        for place in range(TILE + self.taps - 1):
            value = load_at(builder, self._at(line, builder.mul(self._step, _number(place))))
            for tap, weight in enumerate(kernel):
                if 0 <= place - tap < TILE:
                    running[place - tap] = multiply_add_of(builder, weight, value, running[place - tap])
        return running, weights

    def _any(self, line: Any, weights: Any, sums: list[Any]) -> tuple[list[Any], Any]:
        """A row of any number of taps."""
        builder, before = self.builder, self.builder.block
        body, after = builder.append_basic_block("tap"), builder.append_basic_block("taps_done")
        builder.branch(body)
        builder.position_at_end(body)
        tap, at, w = builder.phi(I64), builder.phi(_pointer), builder.phi(_pointer)
        running = [builder.phi(VECTOR) for _ in sums]
        for phi, value in zip([tap, at, w, *running], [_number(0), line, weights, *sums], strict=True):
            phi.add_incoming(value, before)
        weight = load_at(builder, w)
        inputs = [load_at(builder, self._at(at, builder.mul(self._step, _number(p)))) for p in range(TILE)]
        made = [multiply_add_of(builder, weight, value, total) for value, total in zip(inputs, running, strict=True)]
        following, behind = builder.add(tap, _number(1)), self._at(w, self._pitch)
        nexts = [following, self._at(at, self._across), behind, *made]
        for phi, value in zip([tap, at, w, *running], nexts, strict=True):
            phi.add_incoming(value, builder.block)
        builder.cbranch(builder.icmp_signed("<", following, self._count), body, after)
        builder.position_at_end(after)
        return made, behind


@intrinsic
def depthwise_tile(
    typing: Any,
    x: Any,
    step: Any,
    across: Any,
    down: Any,
    rows: Any,
    taps: Any,
    w: Any,
    pitch: Any,
    bias: Any,
    low: Any,
    high: Any,
    out: Any,
    out_pitch: Any,
    pixels: Any,
    channels: Any,
) -> Any:
    """out = clip(bias + taps of x by w) for up to TILE pixels and up to LANES channels; addresses as int64.

    All of TILE pixels and LANES channels are read, of x and of w.
    """
    kinds = [types.float32 if kind is F32 else types.int64 for kind in _arguments]

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = [
            builder.inttoptr(value, _pointer) if kind is _pointer else value
            for value, kind in zip(args, _arguments, strict=True)
        ]
        done, otherwise = builder.append_basic_block("tile_done"), builder.append_basic_block("tile_any")
        shares = builder.icmp_signed("==", values[1], values[2])
        choice = builder.switch(builder.select(shares, values[5], _number(0)), otherwise)
        for count, block in [*((taps, builder.append_basic_block(f"tile_{taps}")) for taps in SHARED), (0, otherwise)]:
            if count:
                choice.add_case(_number(count), block)
            builder.position_at_end(block)
            name = f"perframe_depthwise_{count}"
            builder.call(builder.module.globals.get(name) or _Tile(builder.module, count).function, values)
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(*kinds), codegen
