"""Kernels, written in Python and compiled by Numba. Only the compiler imports them, and not if its cache is warm."""
