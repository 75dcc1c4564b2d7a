"""The layers, by family: declarations, shape rules, formulas. No kernels."""
