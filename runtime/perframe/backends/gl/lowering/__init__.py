"""Lowering shared by the GL families: bindings of kernels, tiles of convolutions, and divided reductions."""
