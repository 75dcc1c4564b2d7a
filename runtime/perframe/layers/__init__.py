"""Layers by family: declarations, shape rules and formulas. Kernels are in the backends."""
