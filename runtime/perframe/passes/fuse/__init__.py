"""Passes that let one kernel do the work of several layers."""

from perframe.passes.fuse import (
    fuse_activation,
    fuse_addition,
    fuse_affine,
    fuse_attention,
    fuse_bias,
    fuse_excitation,
    fuse_gate,
    fuse_padding,
    fuse_scale,
    fuse_transposes,
    merge_affine,
    merge_branches,
    merge_products,
)

__all__ = [
    "fuse_activation",
    "fuse_addition",
    "fuse_affine",
    "fuse_attention",
    "fuse_bias",
    "fuse_excitation",
    "fuse_gate",
    "fuse_padding",
    "fuse_scale",
    "fuse_transposes",
    "merge_affine",
    "merge_branches",
    "merge_products",
]
