"""The GL state that reaches the draws, blits and transfers of others, from the state tables of OpenGL 4.6, core and
compatibility profile (chapter 23), and of the extensions that drivers of both have.

What has no effect on triangles of a program with a fragment shader is not here: lines, points, lighting, fog, color
sum, matrices, and vertex arrays, since draws bind one of their own. Blending, the scissor test and color masks have one
value for each viewport or draw buffer.
"""

from __future__ import annotations

from collections.abc import Collection

BLEND, SCISSOR_TEST, FRAMEBUFFER_SRGB = 0x0BE2, 0x0C11, 0x8DB9

_SWITCHES = {
    "depth test": 0x0B71,
    "stencil test": 0x0B90,
    "cull face": 0x0B44,
    "dither": 0x0BD0,
    "color logic op": 0x0BF2,
    "polygon offset fill": 0x8037,
    "polygon smooth": 0x0B41,
    "framebuffer sRGB": FRAMEBUFFER_SRGB,
    "rasterizer discard": 0x8C89,
    "sample mask": 0x8E51,
    "sample coverage": 0x80A0,
    "sample alpha to coverage": 0x809E,
    "sample alpha to one": 0x809F,
    "primitive restart": 0x8F9D,
    **{f"clip distance {index}": 0x3000 + index for index in range(8)},  # clip planes in the compatibility profile
}
_SWITCHES_OF_VERSIONS = {"sample shading": (400, 0x8C36), "primitive restart fixed index": (430, 0x8D69)}
_COMPATIBILITY_SWITCHES = {"alpha test": 0x0BC0, "polygon stipple": 0x0B42}
_SWITCHES_OF_EXTENSIONS = {
    "GL_EXT_depth_bounds_test": (0x8890,),
    "GL_EXT_raster_multisample": (0x9327,),
    "GL_NV_conservative_raster": (0x9346,),
    "GL_NV_fragment_coverage_to_color": (0x92DD,),
    "GL_INTEL_conservative_rasterization": (0x83FE,),
}
# color tables, convolutions, histogram and minmax, through which every transfer of pixels passes
_IMAGING_SWITCHES = (0x80D0, 0x80D1, 0x80D2, 0x8010, 0x8011, 0x8012, 0x8024, 0x802E)

CLAMP_READ_COLOR, CLAMP_FRAGMENT_COLOR = 0x891C, 0x891B
"""Whether glClampColor clamps numbers to 0..1 when pixels are read, and when fragments are written."""

_SCALES, _BIASES = (0x0D14, 0x0D18, 0x0D1A, 0x0D1C), (0x0D15, 0x0D19, 0x0D1B, 0x0D1D)  # red, green, blue, alpha
_MAP_COLOR = 0x0D10
_IMAGING_SCALES = (*range(0x801C, 0x8020), *range(0x80B4, 0x80B8))  # after a convolution, and after the color matrix
_IMAGING_BIASES = (*range(0x8020, 0x8024), *range(0x80B8, 0x80BC))

# swap bytes, row length, skip rows, skip pixels, image height, skip images, alignment
_UNPACK = (0x0CF0, 0x0CF2, 0x0CF3, 0x0CF4, 0x806E, 0x806D, 0x0CF5)
_PACK = (0x0D00, 0x0D02, 0x0D03, 0x0D04, 0x806C, 0x806B, 0x0D05)
PIXEL_STORE = dict(zip(_UNPACK + _PACK, (0, 0, 0, 0, 0, 0, 4) * 2, strict=True))
"""The layout of pixels in memory: names of glPixelStorei, and the initial values."""

PIXEL_BUFFERS = {0x88EC: 0x88EF, 0x88EB: 0x88ED}
"""Buffers that stand in for memory, to unpack from and to pack into: targets, and names that ask for the bound one."""


def switches(version: int, compatibility: bool, extensions: Collection[str]) -> tuple[int, ...]:
    """The names for glEnable, in a context of this version (as 430), that must be off for a draw."""
    found = [*_SWITCHES.values()]
    found += [name for since, name in _SWITCHES_OF_VERSIONS.values() if version >= since]
    found += _COMPATIBILITY_SWITCHES.values() if compatibility else ()
    for extension, names in _SWITCHES_OF_EXTENSIONS.items():
        found += names if extension in extensions else ()
    return (*found, *(_IMAGING_SWITCHES if compatibility and "GL_ARB_imaging" in extensions else ()))


def clamps(compatibility: bool) -> tuple[int, ...]:
    """The names for glClampColor in a context."""
    return (CLAMP_READ_COLOR, CLAMP_FRAGMENT_COLOR) if compatibility else (CLAMP_READ_COLOR,)


def pixel_transfer(compatibility: bool, extensions: Collection[str]) -> dict[int, float]:
    """The names for glPixelTransferf in a context, and the initial values. The core profile has none."""
    if not compatibility:
        return {}
    imaging = "GL_ARB_imaging" in extensions
    scales = (*_SCALES, *(_IMAGING_SCALES if imaging else ()))
    biases = (*_BIASES, *(_IMAGING_BIASES if imaging else ()))
    return {_MAP_COLOR: 0.0} | dict.fromkeys(scales, 1.0) | dict.fromkeys(biases, 0.0)
