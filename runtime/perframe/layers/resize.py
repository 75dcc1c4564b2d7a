"""Resampling. Each axis becomes a table of taps (input elements and their weights), so one kernel serves every mode."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from perframe.errors import InferenceError
from perframe.ir.attributes import Flag
from perframe.ir.declaration import Known, layer, normalize_axis
from perframe.ir.shape_arithmetic import is_followed, numbers_of
from perframe.ir.sizes.partial import Dim, PartialTensor, derived, dim_of
from perframe.ir.sizes.size import specialized
from perframe.ir.sizes.tables import remembered
from perframe.safety.records import dataclass

Coordinates = Literal[
    "asymmetric",
    "align_corners",
    "pytorch_half_pixel",
    "tf_half_pixel_for_nn",
    "half_pixel_symmetric",
    "tf_crop_and_resize",
    "half_pixel",
]


_FAR = 2.0**40  # a coordinate beyond this counts as infinite


@dataclass(frozen=True)
class AxisSampling:
    """The sampling of an axis. If `scale` is None, it follows from the sizes."""

    mode: str
    coordinates: str
    nearest: str
    cubic_a: float
    exclude_outside: bool
    antialias: bool
    scale: float | None
    region: tuple[float, float]

    def scale_of(self, size: int, output: int) -> float:
        """Return the number of output elements for each input element."""
        if self.scale is not None:
            return self.scale
        return output / size if size else 1.0

    def stretch(self, size: int, output: int) -> float:
        """Return the factor by which antialiasing widens the kernel of an axis that shrinks."""
        return max(1.0, 1.0 / self.scale_of(size, output)) if self.antialias else 1.0

    def count(self, size: int, output: int) -> int:
        """Return K, the number of input elements for each output element."""
        if self.mode == "nearest":
            return 1
        reach = 1 if self.mode == "linear" else 2
        if not self.antialias:  # K is the same for all sizes
            return 2 * reach
        return 2 * math.ceil(reach * self.stretch(specialized(size), specialized(output)))


@dataclass(frozen=True)
class AxisTaps:
    """One axis from `size` to `output` elements: each output element is a weighted sum of K input elements.

    The tables depend on the sizes. For other sizes call `taps`.
    """

    axis: int
    outer: int
    size: int
    inner: int
    output: int
    sampling: AxisSampling

    @property
    def count(self) -> int:
        """K, the number of input elements for each output element."""
        return self.sampling.count(self.size, self.output)

    @property
    def indices(self) -> NDArray[np.int32]:
        """The indices of the taps, (output, K)."""
        return taps(self.sampling, specialized(self.size), specialized(self.output))[0]

    @property
    def weights(self) -> NDArray[np.float32]:
        """The weights of the taps, (output, K). Output elements for which a crop leaves the input have weights of 0."""
        return taps(self.sampling, specialized(self.size), specialized(self.output))[1]


@layer(host=("roi", "scales", "sizes"), followed=("sizes",))
def Resize(
    x: PartialTensor,
    roi: PartialTensor | None = None,
    scales: PartialTensor | None = None,
    sizes: PartialTensor | None = None,
    *,
    mode: Literal["nearest", "linear", "cubic"] = "nearest",
    coordinate_transformation_mode: Coordinates = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: Flag = 0,
    nearest_mode: Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"] = "round_prefer_floor",
    antialias: Flag = 0,
    axes: Sequence[int] | None = None,
    keep_aspect_ratio_policy: Literal["stretch", "not_larger", "not_smaller"] = "stretch",
) -> PartialTensor:
    if x.shape is None:
        return x.with_shape(None)
    chosen = _chosen(len(x.shape), axes)
    given = sizes if sizes is not None and sizes.shape != (0,) else scales
    if given is None:
        raise InferenceError("Resize needs scales or sizes")
    if given is sizes and keep_aspect_ratio_policy != "stretch" and given.value is not None and x.shape.is_static:
        targets = _targets(x.shape.to_shape(), scales, sizes, axes, keep_aspect_ratio_policy)
        return x.with_shape(size for size, _ in targets)
    dims = list(x.shape)
    numbers = numbers_of(given).tolist() if is_followed(given) else [None] * len(chosen)
    for axis, number in zip(chosen, numbers, strict=True):
        if given is sizes:
            dims[axis] = dim_of(number) if keep_aspect_ratio_policy == "stretch" else None
        else:
            dims[axis] = _scaled(dims[axis], number)
    return x.with_shape(dims)


def _chosen(rank: int, axes: Sequence[int] | None) -> list[int]:
    """Return the axes to which scales, sizes and regions belong."""
    return list(range(rank)) if axes is None else [normalize_axis(axis, rank) for axis in axes]


def _scaled(dim: Dim, scale: float | None) -> Dim:
    if scale == 1:
        return dim
    if scale is not None and not 0 < scale < math.inf:
        raise InferenceError(f"a scale is {scale}, and a number above 0 is expected")
    if scale is None:
        return None
    times, part = float(scale), 1 / float(scale)

    def scaled(size: int) -> int:
        if times.is_integer():
            return size * int(times)
        return size // int(part) if part.is_integer() else math.floor(specialized(size) * times)

    return derived(scaled, dim)


def _targets(
    shape: Sequence[int],
    scales: PartialTensor | Known | None,
    sizes: PartialTensor | Known | None,
    axes: Sequence[int] | None,
    policy: str,
) -> list[tuple[int, float]]:
    """Return the output size and the scale of each axis."""
    chosen = _chosen(len(shape), axes)
    result = [(dim, 1.0) for dim in shape]
    if sizes is not None and sizes.value is not None and sizes.value.size:
        wanted = [int(size) for size in sizes.value.ravel()]
        given = [specialized(shape[axis]) for axis in chosen]
        ratios = [size / dim if dim else 1.0 for dim, size in zip(given, wanted, strict=True)]
        if policy != "stretch":
            ratio = min(ratios) if policy == "not_larger" else max(ratios)
            ratios = [ratio] * len(chosen)
            wanted = [math.floor(ratio * dim + 0.5) for dim in given]
        for axis, size, ratio in zip(chosen, wanted, ratios, strict=True):
            result[axis] = (size, ratio)
    elif scales is not None and scales.value is not None:
        for axis, scale in zip(chosen, scales.value.ravel(), strict=True):
            output = _scaled(shape[axis], float(scale))
            assert isinstance(output, int)
            result[axis] = (output, float(scale))
    return result


def _coordinates(mode: str, size: int, output: int, scale: float, roi: tuple[float, float]) -> NDArray[np.float64]:
    """Return the coordinate in the input of each output element."""
    at = np.arange(output, dtype=np.float64)
    if mode == "asymmetric":
        return at / scale
    if mode == "align_corners":
        length = scale * size  # ONNX's own tests expect this, although it may not be an integer
        return at * (size - 1) / (length - 1) if length > 1 else np.zeros(output)
    if mode == "pytorch_half_pixel":
        return (at + 0.5) / scale - 0.5 if output > 1 else np.zeros(output)
    if mode == "tf_half_pixel_for_nn":
        return (at + 0.5) / scale
    if mode == "half_pixel_symmetric":
        adjustment = output / (scale * size)
        return size / 2 * (1 - adjustment) + (at + 0.5) / scale - 0.5
    if mode == "tf_crop_and_resize":
        first, last = roi
        if output > 1:
            return first * (size - 1) + at * (last - first) * (size - 1) / (output - 1)
        return np.full(output, 0.5 * (first + last) * (size - 1))
    return (at + 0.5) / scale - 0.5  # half_pixel


_ROUNDINGS: dict[str, Callable[[Any], Any]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _kernel(mode: str, distance: NDArray[np.float64], a: float) -> NDArray[np.float64]:
    """Return the weight of an input element at a distance: the triangle, or Keys' cubic (1981)."""
    d = np.abs(distance)
    if mode == "linear":
        return np.asarray(np.maximum(0, 1 - d))
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


@remembered(256)
def taps(how: AxisSampling, size: int, output: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the taps of one axis: indices and weights, (output, K) each.

    Output elements for which a crop leaves the input have weights of 0.
    """
    with np.errstate(all="ignore"):
        where = _coordinates(how.coordinates, size, output, how.scale_of(size, output), how.region)
    where = np.clip(np.nan_to_num(where, nan=-_FAR), -_FAR, _FAR)  # the begin of a region may be any number, or NaN
    rounded = where.astype(np.float32)  # scales have this precision, so rounding restores ties
    outside = (
        (rounded < 0) | (rounded > size - 1) if how.coordinates == "tf_crop_and_resize" else np.zeros(output, bool)
    )
    if how.mode == "nearest":
        indices = np.clip(_ROUNDINGS[how.nearest](rounded), 0, size - 1)[:, None]
        return indices.astype(np.int32), np.where(outside, 0, 1).astype(np.float32)[:, None]
    stretch, count = how.stretch(size, output), how.count(size, output)
    first = np.floor(where).astype(int) - count // 2 + 1
    indices = first[:, None] + np.arange(count)
    weights = _kernel(how.mode, (indices - where[:, None]) / stretch, how.cubic_a)
    if how.exclude_outside:
        weights = np.where((indices < 0) | (indices >= size), 0, weights)
    if how.exclude_outside or how.antialias or how.mode == "cubic":
        total = weights.sum(1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
    weights[outside] = 0
    return np.clip(indices, 0, size - 1).astype(np.int32), weights.astype(np.float32)


def _regions(rank: int, roi: Known | None, axes: Sequence[int] | None) -> dict[int, tuple[float, float]]:
    """Return the begin and the end of the region on each axis that `roi` covers."""
    given = [] if roi is None or roi.value is None else [float(v) for v in np.ravel(roi.value)]
    chosen = _chosen(rank, axes)
    if len(given) < 2 * len(chosen):
        return {}
    return dict(zip(chosen, zip(given, given[len(chosen) :], strict=False), strict=False))


@Resize.form
def _resize(inputs: Sequence[Known | None], outputs: Sequence[Known], **attributes: Any) -> list[AxisTaps]:
    x, roi, scales, sizes = inputs
    assert x is not None
    shape, policy = list(x.shape), attributes["keep_aspect_ratio_policy"]
    targets: list[tuple[int, float | None]]
    if sizes is not None and len(sizes.shape) and sizes.shape[0] and policy == "stretch":
        targets = [
            (output, 1.0 if output == size else None) for output, size in zip(outputs[0].shape, shape, strict=True)
        ]
    else:
        targets = [*_targets(x.shape, scales, sizes, attributes["axes"], policy)]
    regions = _regions(len(x.shape), roi, attributes["axes"])
    result = []
    for axis, (output, scale) in enumerate(targets):
        bounds = regions.get(axis, (0.0, 1.0))
        if output == shape[axis] and scale == 1.0 and bounds == (0.0, 1.0):
            continue
        sampling = AxisSampling(
            attributes["mode"],
            attributes["coordinate_transformation_mode"],
            attributes["nearest_mode"],
            attributes["cubic_coeff_a"],
            bool(attributes["exclude_outside"]),
            bool(attributes["antialias"]),
            scale,
            bounds,
        )
        before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        result.append(AxisTaps(axis, before, shape[axis], after, output, sampling))
        shape[axis] = output
    return result
