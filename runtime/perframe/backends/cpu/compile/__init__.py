"""Kernels of the CPU: compiled in other processes, kept on disk, and called by name."""
