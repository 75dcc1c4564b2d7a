"""Compiles a kernel's Python to object code."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from numba import njit, types

from perframe.backends.cpu.kernels import angles, math, powers
from perframe.backends.cpu.kernels.inlining import OPTIONS, inline

SIGNATURE = types.void(types.int64, types.int64, types.int64)


def compile_kernel(name: str, text: str) -> tuple[bytes, str]:
    """Object code of a kernel, and the symbol of its function."""
    package, _, kernel = name.rpartition(":")
    file, _, function = kernel.partition(".")
    namespace: dict[str, Any] = {**vars(angles), **vars(powers), **vars(math), "inline": inline}
    exec(compile(text, f"<{name}>", "exec"), namespace)
    module = import_module(f"{package or 'perframe'}.backends.cpu.kernels.{file}")
    build = getattr(module, function or "build")
    source = build(**{key: namespace[key] for key in inspect.signature(build).parameters})
    dispatcher = njit(SIGNATURE, no_cpython_wrapper=True, no_cfunc_wrapper=True, nogil=True, **OPTIONS)(source)
    compiled = next(iter(dispatcher.overloads.values()))
    return compiled.library._get_compiled_object(), compiled.fndesc.llvm_func_name
