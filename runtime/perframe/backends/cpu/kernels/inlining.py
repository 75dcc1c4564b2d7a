"""The options with which kernels are compiled, and the mark of their helpers."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba import njit
from numba.core import config

# Division by zero gives infinity, as in NumPy and GLSL. NaN and infinity keep their meaning, so of the fast-math flags
# only contraction is set.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "boundscheck": False}


llvm.initialize_native_asmparser()  # a kernel has lines of assembly
# LLVM's model of these processors is incomplete: it ends the process in the middle of some kernels
_STAND_INS = {"oryon-1": "cortex-x1"}
if config.CPU_NAME is None and llvm.get_host_cpu_name() in _STAND_INS:
    config.CPU_NAME = _STAND_INS[llvm.get_host_cpu_name()]
    config.CPU_FEATURES = llvm.get_host_cpu_features().flatten()
if config.CPU_FEATURES is None and llvm.get_host_cpu_features().get("avx512f"):
    # By default LLVM uses only half of these CPUs' vectors, which makes formulas a third slower. If the program has
    # compiled with Numba before, this setting comes too late.
    config.CPU_FEATURES = f"{llvm.get_host_cpu_features().flatten()},-prefer-256-bit"


def inline(function: Any) -> Any:
    """Mark a helper of kernels. LLVM inlines it, since it cannot vectorize loops with calls."""
    return njit(forceinline=True, **OPTIONS)(function)


def spliced(function: Any) -> Any:
    """Mark a helper whose statements Numba puts where it is called. A kernel with a large function, such as a tile's
    product, compiles in half the time: LLVM optimizes the helpers of `inline` one by one, with everything they call.
    """
    return njit(inline="always", **OPTIONS)(function)
