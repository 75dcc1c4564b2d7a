"""The variants of kernels between textures and tensors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from perframe.backends.gl.texels import SHEETS
from perframe.backends.gl.textures.steps import layer_of, layered_define
from perframe.safety.records import dataclass

_RESAMPLING = {0: "NEAREST", 2: "MIPMAP"}  # else linear


@dataclass(frozen=True)
class Variant:
    """Numbers and defines of a kernel. What seldom changes is a define: llvmpipe computes both sides of an if."""

    numbers: Mapping[str, Any]
    defines: Mapping[str, str]

    @property
    def key(self) -> Hashable:
        """The defines, as a part of a key."""
        return tuple(self.defines.items())

    @classmethod
    def of(cls, params: Mapping[str, Any], texture: Any = None, has_regions: bool = False) -> Variant:
        """The variant that fills a tensor from a texture or from regions of it (see shaders/lib/picture.glsl)."""
        numbers = dict(params)
        resample, conversion = numbers.pop("resample", None), numbers.pop("color_conversion")
        if texture is not None:
            numbers["layer"] = layer_of(texture)
        defines = layered_define(texture)
        if resample in _RESAMPLING:
            defines[_RESAMPLING[resample]] = "1"
        if conversion:
            defines["CONVERTS"] = str(conversion)
        across, down, along, _ = numbers["steps"]
        high, wide, channels = (numbers[name] for name in ("height", "width", "channels"))
        if (across, down, along) == (1, wide, high * wide):
            defines["PLANAR"] = "1"
        elif (across, down, along) == (channels, channels * wide, 1) and channels in (3, 4):
            defines["TOGETHER"] = str(channels)
        else:
            return cls(numbers, defines)
        if has_regions and (numbers["items"] == 1 or high * wide * channels % (4 * SHEETS) == 0):
            defines["ONE_ITEM"] = "1"
        return cls(numbers, defines)

    @classmethod
    def drawing(cls, params: Mapping[str, Any]) -> Variant:
        """The variant that draws a tensor (see shaders/convert/tensor_to_texture.glsl)."""
        numbers = dict(params)
        smooth, conversion = numbers.pop("smooth_"), numbers.pop("color_conversion")
        defines = {"SMOOTH": "1"} if smooth else {}
        if conversion:
            defines["CONVERTS"] = str(conversion)
        if numbers["swizzle"][3] < 0:
            defines["OPAQUE"] = "1"
        return cls(numbers, defines)
