"""Pictures in memory, sampled by a compiled kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.kernels.fields import SAMPLE
from perframe.tensor import Array
from perframe.tensor.storage import address_of

_DTYPES = {np.dtype(np.uint8): "uint8", np.dtype(np.float32): "float32"}
_MOST = 1 << 31  # the kernel counts elements with 32 bits
_NEAREST, _LINEAR = 0, 1


def sample(picture: Array, out: Array, params: Mapping[str, Any]) -> bool:
    """Sample a picture, H x W x C, into a contiguous array of float32, by the parameters of the GL pass.

    Returns False, and does nothing, if the kernel is still being compiled, or does not do this: textures of other
    dtypes, mipmaps, conversions of colors, and the nearest pixels of an upright region, for which NumPy is fast.
    """
    mode, is_warped, item = params["resample"], params["warped"], picture.itemsize
    if params["color_conversion"] or not (mode == _LINEAR or (mode == _NEAREST and is_warped)):
        return False
    dtype, steps = _DTYPES.get(picture.dtype), [step // item for step in picture.strides]
    extent = sum(abs(step) * length for step, length in zip(steps, picture.shape, strict=True))
    is_plain = picture.flags.aligned and not any(step % item for step in picture.strides)
    if dtype is None or not is_plain or extent >= _MOST:
        return False
    address = jit.kernel("sample", f"dtype = {dtype!r}")
    if not jit.is_compiled(address) and not jit.waits():
        return False
    (x, y), (across, down) = params["origin"], params["scale"]
    rows = [(across, 0.0, x), (0.0, down, y), (0.0, 0.0, 1.0)]
    if is_warped:
        rows = [params[name][:3] for name in ("warp_across", "warp_down", "warp_behind")]
    matrix = np.array(rows, np.float64)
    unit = 1 / 255 if picture.dtype == np.uint8 else 1.0
    colors = np.array([unit, *params["padding"], *params["mean"], *params["factor"]], np.float32)
    left, top, wide, high = params["box"]
    numbers = SAMPLE.numbers(
        matrix=address_of(matrix),
        colors=address_of(colors),
        height=picture.shape[0],
        width=picture.shape[1],
        channels=picture.shape[2],
        row_step=steps[0],
        column_step=steps[1],
        channel_step=steps[2],
        left=left,
        top=top,
        wide=wide,
        high=high,
        is_linear=int(mode == _LINEAR),
        has_depth=int(rows[2] != (0.0, 0.0, 1.0)),
        out_width=params["width"],
        out_channels=params["channels"],
        out_column_step=params["steps"][0],
        out_row_step=params["steps"][1],
        out_channel_step=params["steps"][2],
    )
    words = np.array([address_of(picture), address_of(out), *numbers, *params["swizzle"]], np.int64)
    jit.call(int(address), address_of(words), 0, params["height"])
    return True
