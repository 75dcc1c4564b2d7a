"""Padding: elements are added around a tensor, or left out at its borders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from perframe.errors import InferenceError
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.geometry import Ints
from perframe.ir.shape_arithmetic import listed_of
from perframe.ir.sizes.partial import Dim, PartialTensor, dim_sum
from perframe.safety.records import dataclass


@dataclass(frozen=True)
class Padding:
    """Output coordinate c reads input coordinate c - before. Outside of the input, `mode` selects the element
    ("constant" gives `value`).
    """

    mode: str
    input_shape: Ints
    output_shape: Ints
    before: Ints
    value: float

    def collapsed(self) -> Padding:
        """Return this padding with as few dims as possible, but one: neighbors that nothing is added to are one dim."""
        dims = list[tuple[int, int, int]]()  # of the input, of the output, and before it
        alone = True
        for size, whole, before in zip(self.input_shape, self.output_shape, self.before, strict=True):
            changes = bool(before) or size != whole
            if dims and not changes and not alone:
                dims[-1] = (dims[-1][0] * size, dims[-1][1] * whole, 0)
            else:
                dims.append((size, whole, before))
            alone = changes
        sizes, wholes, added = zip(*dims or [(1, 1, 0)], strict=True)
        return Padding(self.mode, sizes, wholes, added, self.value)


@layer(host=("pads", "value", "axes"), followed=("pads",))
def Pad(
    x: PartialTensor,
    pads: PartialTensor,
    value: PartialTensor | None = None,
    axes: PartialTensor | None = None,
    *,
    mode: Literal["constant", "reflect", "edge", "wrap"] = "constant",
) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    chosen = None if axes is None else axes.ints()
    if axes is not None and chosen is None:
        return x.with_shape((None,) * len(x.shape))
    count = len(x.shape) if chosen is None else len(chosen)
    before, after = pad_amounts(len(x.shape), listed_of(pads, 2 * count), chosen)
    return x.with_shape(map(dim_sum, x.shape, before, after))


def pad_amounts(rank: int, amounts: Sequence[Dim], axes: Sequence[int] | None) -> tuple[list[Dim], list[Dim]]:
    """Return what is added before and after each dim."""
    chosen = range(rank) if axes is None else [normalize_axis(axis, rank) for axis in axes]
    if len(amounts) != 2 * len(chosen):
        raise InferenceError(f"{len(amounts)} pads do not fit {len(chosen)} axes")
    before: list[Dim] = [0] * rank
    after: list[Dim] = [0] * rank
    for index, axis in enumerate(chosen):
        before[axis], after[axis] = amounts[index], amounts[index + len(chosen)]
    return before, after


@Pad.form
def _pad(inputs: Sequence[Known | None], outputs: Sequence[Known], *, mode: str) -> Padding:
    x, pads, value, axes = inputs
    amounts = None if pads is None else pads.ints()
    assert x is not None and amounts is not None
    before, _ = pad_amounts(len(x.shape), amounts, None if axes is None else axes.ints())
    number = 0.0 if value is None or value.value is None else float(value.value.ravel()[0])
    known = tuple(amount for amount in before if isinstance(amount, int))
    return Padding(mode, tuple(x.shape), tuple(outputs[0].shape), known, number)
