"""The CPU: NumPy defines every layer, Numba-compiled kernels run the hot ones, worker threads run the programs."""
