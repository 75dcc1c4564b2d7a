"""Compilation of the CPU's kernels: in other processes, kept on disk, and called by name."""
