"""A transposed convolution becomes a convolution whose channels are then spread over the image, or the line.

Output pixels whose coordinates have the same remainders by the stride are a phase. Each phase is a convolution with
the weights of taps a stride apart; together they are one convolution with more channels. If the stride is 1, there is
one phase, and nothing to spread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perframe.ir import Layer, Model, Value
from perframe.ir.geometry import NOT_SET, in_dims
from perframe.layers.blocks import BLOCK
from perframe.layers.conv import transposed_pads
from perframe.passes.match import all_float32, constant_of
from perframe.passes.patterns import Op, Rules

_MOST = 3  # times as many products as before: a convolution of blocks is faster by more


run = Rules()


@run.rule(Op("ConvTranspose", epilogue=True))
def _replace(model: Model, root: Layer) -> int:
    made = _split(model, root)
    if made is not None:
        model.replace(root, *made)
    return int(made is not None)


def _split(model: Model, layer: Layer) -> list[Layer] | None:
    """The convolution of all phases and the layers after it; None if there is none, or it would compute too much."""
    w, bias = layer.w.constant, constant_of(layer.b)
    if w is None or w.ndim not in (3, 4) or not w.size or not all_float32(layer):
        return None
    if layer.b is not None and bias is None:
        return None
    dims = w.ndim - 2
    steps = layer.strides or (1,) * dims
    plain = layer.group == 1 and set(layer.dilations or (1,)) == {1}
    borders = _borders(layer, w.shape[2:])
    if not plain or len(set(steps)) > 1 or borders is None:
        return None
    step, outputs, kernel = steps[0], w.shape[1], w.shape[2:]
    taps, phases = [-(-size // step) for size in kernel], step**dims
    if np.prod(taps) * phases > _MOST * np.prod(kernel):
        return None
    around, cut = list[tuple[int, int]](), list[tuple[int, int]]()
    for size, count, (begin, end) in zip(kernel, taps, borders, strict=True):
        end += step * count - size  # the convolution computes whole windows of all phases
        around.append((count - 1 - begin // step, count - 1 - end // step))
        cut.append((begin % step, end % step))
    if min(min(pair) for pair in around) < 0:
        return None
    in_blocks = dims == 2 and (outputs % BLOCK == 0 or step % 2 == 1)
    weights = _weights(w, step, taps, phases_first=in_blocks)
    constants = [model.add_constant(f"{layer.name} in phases", weights)]
    if bias is not None:
        repeated = np.tile(bias, phases) if in_blocks else np.repeat(bias, phases)
        constants.append(model.add_constant(f"{layer.name} in phases: bias", repeated))
    padding = tuple(pair[side] for side in (0, 1) for pair in around)
    made: list[Layer] = []

    def then(op: str, *inputs: Value, **given: Any) -> None:
        source = made[-1].output if made else layer.input(0)
        name = f"{layer.name}/{op}" if made else layer.name
        made.append(Layer(op, name, [source, *inputs], [f"{layer.output.name}/{op}"], given))

    then("Conv", *constants, kernel_shape=tuple(taps), pads=padding)
    made[0].epilogue = layer.epilogue
    if step > 1 and dims == 2:
        then("DepthToSpace", blocksize=step, mode="DCR" if in_blocks else "CRD")
    elif step > 1:
        then("Reshape", model.add_constant(f"{layer.name}: phases", np.array([0, outputs, step, -1])))
        then("Transpose", perm=[0, 1, 3, 2])
        then("Reshape", model.add_constant(f"{layer.name}: line", np.array([0, outputs, -1])))
    if any(map(any, cut)):
        most = np.iinfo(np.int64).max
        bounds = {
            "starts": [begin for begin, _ in cut],
            "ends": [-end if end else most for _, end in cut],
            "axes": [*range(2, w.ndim)],
        }
        then("Slice", *(model.add_constant(f"{layer.name}: {what}", np.array(v)) for what, v in bounds.items()))
    made[-1].outputs = layer.outputs
    return made


def _borders(layer: Layer, kernel: Sequence[int]) -> list[tuple[int, int]] | None:
    """The pixels at the begin and at the end of each axis that the result lacks, less than none if it has more; None if
    that depends on sizes that are not known.
    """
    dims, shape = len(kernel), layer.x.spec.shape
    ones = (1,) * dims
    pads, more, auto_pad = layer.pads, layer.output_padding or (0,) * dims, layer.auto_pad
    if shape is None:
        return None
    steps, wanted, depends = layer.strides or ones, layer.output_shape, auto_pad.startswith("SAME")
    if not wanted and not depends:  # the same for pictures of all sizes
        around = pads if pads and auto_pad in NOT_SET else (0,) * (2 * dims)
        return [(around[axis], around[axis + dims] - more[axis]) for axis in range(dims)]
    sizes = [dim for dim in shape[2:] if isinstance(dim, int)]
    if len(sizes) < dims:
        return None
    begins, made = transposed_pads(sizes, kernel, steps, ones, pads, auto_pad, more, wanted)
    borders = list[tuple[int, int]]()
    for step, dim, size, begin, length in zip(steps, sizes, kernel, begins, made, strict=True):
        assert isinstance(length, int)
        borders.append((begin, step * (dim - 1) + size - begin - length))
    return borders


def _weights(w: NDArray[Any], step: int, taps: list[int], phases_first: bool) -> NDArray[Any]:
    """The weights of a convolution to (phase row, phase column, output), or to (output, phase row, phase column)."""
    channels, outputs = w.shape[:2]
    image = w if w.ndim == 4 else w[:, :, None]  # a line is a picture of one row
    (rows, columns), (down, across) = in_dims(taps, 2), in_dims((step,) * len(taps), 2)
    whole = np.zeros((channels, outputs, rows * down, columns * across), w.dtype)
    whole[:, :, : image.shape[2], : image.shape[3]] = image
    split = whole.reshape(channels, outputs, rows, down, columns, across)[:, :, ::-1, :, ::-1]
    order = (3, 5, 1, 0, 2, 4) if phases_first else (1, 3, 5, 0, 2, 4)
    return np.ascontiguousarray(split.transpose(order)).reshape(-1, channels, *taps)
