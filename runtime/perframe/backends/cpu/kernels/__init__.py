"""Kernels in the Python that Numba compiles. Only the compiler imports these files; a warm process never does."""
