"""The options with which kernels are compiled, and the mark of their helpers."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from numba import njit, types
from numba.core import config
from numba.extending import intrinsic

from perframe.backends.cpu.kernels.linking import HelperPipeline

# Division by zero gives infinity, as in NumPy and GLSL. NaN and infinity keep their meaning, so of the fast-math flags
# only contraction is set.
OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "fastmath": {"contract"},
    "boundscheck": False,
    "no_cpython_wrapper": True,  # only kernels call them
    "no_cfunc_wrapper": True,
}


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
    return njit(forceinline=True, pipeline_class=HelperPipeline, **OPTIONS)(function)


def spliced(function: Any) -> Any:
    """Mark a helper whose statements Numba puts where it is called. A kernel with a large function, such as a tile's
    product, compiles in half the time: LLVM optimizes the helpers of `inline` one by one, with everything they call.
    """
    return njit(inline="always", **OPTIONS)(function)


def reader(name: str, words: str, at: Any, mark: Any = inline) -> Any:
    """A helper `read(n, first)` that returns words by their names. They lie at indices `at` behind n[first]."""
    listed = ", ".join(f"n[first + {getattr(at, word)}]" for word in words.split())
    namespace: dict[str, Any] = {"record": namedtuple(name, words)}
    exec(f"def read(n, first):\n    return record({listed})", namespace)
    return mark(namespace["read"])


def emitted(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Mark a helper that emits LLVM IR: `emit(builder, *values)` returns the result's value.

    `result` and `arguments` are Numba's types.
    """

    def mark(emit: Callable[..., Any]) -> Any:
        @functools.wraps(emit)  # so that Numba finds the arguments' names
        def define(_typing: Any, *_kinds: Any) -> Any:
            def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
                made = emit(builder, *values)
                return context.get_dummy_value() if result is types.void else made

            return result(*arguments), codegen

        return intrinsic(define)

    return mark
