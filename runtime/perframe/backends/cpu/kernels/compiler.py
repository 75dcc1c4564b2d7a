"""Compiles a kernel's Python to object code."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from numba import types
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from perframe.backends.cpu.kernels import angles, math, powers
from perframe.backends.cpu.kernels.inlining import OPTIONS, inline
from perframe.backends.cpu.kernels.linking import Library, Linked

_ARGUMENTS = (types.int64, types.int64, types.int64)
_OPTIONS = {**OPTIONS, "nopython": True, "nogil": True}


def compile_kernel(name: str, text: str) -> tuple[bytes, str]:
    """Object code of a kernel, and the symbol of its function."""
    with global_compiler_lock:  # LLVM's machine is for one thread at a time
        library, symbol = compile_library(name, text)
        return library.emit(), symbol


def compile_library(name: str, text: str) -> tuple[Library, str]:
    """A kernel's optimized code, before it is emitted for a machine, and the symbol of its function."""
    package, _, kernel = name.rpartition(":")
    file, _, entry = kernel.partition(".")
    namespace: dict[str, Any] = {**vars(angles), **vars(powers), **vars(math), "inline": inline}
    exec(compile(text, f"<{name}>", "exec"), namespace)
    module = import_module(f"{package or 'perframe'}.backends.cpu.kernels.{file}")
    build = getattr(module, entry or "build")
    built = build(**{key: namespace[key] for key in inspect.signature(build).parameters})
    symbol = f"kernel_{hashlib.sha256(f'{name} {text}'.encode()).hexdigest()[:16]}"
    with global_compiler_lock:
        library = Library(cpu_target.target_context.codegen(), symbol)
        if isinstance(built, Linked):
            library.add(_lowered_once(built.kernel), symbol)
            for external, function in built.functions:
                library.add_inline(_lowered(function, external.arguments, external.result), external.symbol)
        else:
            library.add(_lowered(built, _ARGUMENTS), symbol)
        library.finalize()
    return library, symbol


@functools.cache
def _lowered_once(kernel: Callable[..., Any]) -> Any:
    return _lowered(kernel, _ARGUMENTS)


def _lowered(function: Callable[..., Any], arguments: Any, result: Any = types.void) -> Any:
    """Numba's result for a function: LLVM's code before it is optimized, and the helpers that it calls."""
    flags = cpu_target.options.parse_as_flags(Flags(), _OPTIONS)
    flags.no_compile = True
    return compile_extra(cpu_target.typing_context, cpu_target.target_context, function, arguments, result, flags, {})
