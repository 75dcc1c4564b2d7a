"""Tiles of products of bytes on arm64, by its instructions for four products at once.

"sudot" multiplies unsigned bytes by signed ones (FEAT_I8MM). "sdot" (FEAT_DotProd) multiplies signed bytes: the left
operand's bytes are made smaller by 128, and each column's sum of 128 times its elements is added at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from perframe.backends.cpu.kernels.emit import loop, number
from perframe.backends.cpu.kernels.sizes import GROUP, LANES, PANEL
from perframe.backends.cpu.kernels.vector import I32, declare, lane_of, splat_of
from perframe.backends.cpu.kernels.whole_vector import INTS

ROWS = 8  # with two vectors of columns, 16 of the 32 registers hold sums, and 8 a step of the panel
FEATURES = {"sdot": "dotprod", "sudot": "i8mm"}
_STEP = 4  # groups that a load of the left operand reads
_BYTES = ir.VectorType(ir.IntType(8), _STEP * GROUP)
_FLIP = ir.Constant(_BYTES, [128] * _STEP * GROUP)
_PRODUCT = {"sdot": "llvm.aarch64.neon.sdot.v4i32.v16i8", "sudot": "llvm.aarch64.neon.usdot.v4i32.v16i8"}


def dot(kind: str, rows: int, vectors: int, builder: Any, values: Sequence[Any]) -> None:
    """Multiply groups of each row by rows of the panel: four groups at a time, and then the rest."""
    a, pitch, b, sums, steps, groups, *_ = values
    # The system says that the processor has the instructions; LLVM may not know. `add` accepts only names.
    set.add(builder.function.attributes, f'"target-features"="+neon,+{FEATURES[kind]}"')
    tile = _DotTile(kind, vectors, builder, [builder.add(a, builder.mul(pitch, number(row))) for row in range(rows)])
    count = builder.mul(steps, groups)
    whole = builder.and_(count, number(-_STEP))
    totals = [ir.Constant(INTS, None)] * (rows + 1) * vectors
    totals = tile.loop(b, number(0), whole, totals, _STEP)
    totals = tile.loop(b, whole, count, totals, 1)
    for index, total in enumerate(totals[vectors:]):
        row, vector = divmod(index, vectors)
        if kind == "sdot":
            total = builder.sub(total, totals[vector])
        place = builder.add(sums, number((row * PANEL + vector * LANES) * 4))
        builder.store(total, builder.inttoptr(place, INTS.as_pointer()), align=4)


class _DotTile:
    """Writes the loops of a tile. Its sums: for each vector of columns what "sdot" lacks, then those of each row."""

    def __init__(self, kind: str, vectors: int, builder: Any, starts: Sequence[Any]) -> None:
        self.kind, self.vectors, self.builder, self.starts = kind, vectors, builder, starts
        self.product = declare(builder.module, _PRODUCT[kind], INTS, [INTS, _BYTES, _BYTES])

    def loop(self, panel: Any, first: Any, end: Any, totals: Sequence[Any], step: int) -> list[Any]:
        """Add the products of the groups from `first` to `end`, several in each round, and return the sums."""
        builder = self.builder

        def add_groups(values: list[Any]) -> list[Any]:
            at, *running = values
            return [builder.add(at, number(step)), *self._products(panel, at, running, step)]

        return loop(builder, "groups", end, [first, *totals], add_groups)[1:]

    def _products(self, panel: Any, at: Any, totals: Sequence[Any], step: int) -> list[Any]:
        builder, vectors, made = self.builder, self.vectors, list(totals)
        line = builder.add(panel, builder.mul(at, number(vectors * LANES * GROUP)))
        right = [
            [self._load(line, (group * vectors + vector) * LANES * GROUP, _BYTES) for vector in range(vectors)]
            for group in range(step)
        ]
        if self.kind == "sdot":
            for columns_of_group in right:
                for vector, columns in enumerate(columns_of_group):
                    made[vector] = builder.call(self.product, [made[vector], columns, _FLIP])
        for row, start in enumerate(self.starts):
            place = builder.add(start, builder.mul(at, number(GROUP)))
            left = self._left(place, step)
            for group, columns_of_group in enumerate(right):
                element = builder.bitcast(lane_of(builder, left, group), _BYTES)
                for vector, columns in enumerate(columns_of_group):
                    index = (row + 1) * vectors + vector
                    pair = [element, columns] if self.kind == "sudot" else [columns, element]
                    made[index] = builder.call(self.product, [made[index], *pair])
        return made

    def _left(self, place: Any, step: int) -> Any:
        """The first groups of a row, in the first lanes of a vector."""
        builder = self.builder
        loaded = splat_of(builder, self._load(place, 0, I32)) if step == 1 else self._load(place, 0, INTS)
        if self.kind == "sudot":
            return loaded
        return builder.bitcast(builder.xor(builder.bitcast(loaded, _BYTES), _FLIP), INTS)

    def _load(self, address: Any, offset: int, kind: Any) -> Any:
        builder = self.builder
        return builder.load(builder.inttoptr(builder.add(address, number(offset)), kind.as_pointer()), align=1)
