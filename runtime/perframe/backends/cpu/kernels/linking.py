"""Functions that are compiled apart and linked into kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import intrinsic


@dataclass(frozen=True)
class External:
    """A function that a kernel calls, and that is compiled apart. Its types are Numba's."""

    symbol: str
    result: Any
    arguments: tuple[Any, ...]

    @property
    def call(self) -> Any:
        """The function as a kernel's Python calls it."""

        def call(_typing: Any, *_kinds: Any) -> Any:
            def codegen(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
                kind = context.call_conv.get_function_type(self.result, self.arguments)
                function = cgutils.get_or_insert_function(builder.module, kind, self.symbol)
                return context.call_conv.call_function(builder, function, self.result, self.arguments, values)[1]

            return self.result(*self.arguments), codegen

        # Numba passes arguments by the signature, and not to a `*`
        names = ["typing", *(f"x{k}" for k in range(len(self.arguments)))]
        call.__signature__ = Signature([Parameter(each, Parameter.POSITIONAL_ONLY) for each in names])  # type: ignore[attr-defined]
        return intrinsic(call)


@dataclass(frozen=True)
class Linked:
    """A kernel, and the external functions that it calls. The kernel's Python is compiled once for all such functions,
    since Numba takes most of the time, and LLVM the rest.
    """

    kernel: Callable[..., Any]
    functions: tuple[tuple[External, Callable[..., Any]], ...]


def stages(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Linked]]:
    """Mark a kernel's `build` whose arguments of these names are linked in: stages of an epilogue, or an activation.

    Each is a function of a float32 and of the address of its parameters. Only the kernel itself may call them: LLVM
    optimizes a helper before it knows what is linked in, and loops of a helper with such a call are slower.
    """
    externals = [External(name, types.float32, (types.float32, types.CPointer(types.float32))) for name in names]

    def mark(build: Callable[..., Any]) -> Callable[..., Linked]:
        @functools.cache
        def kernel() -> Any:
            return build(**{external.symbol: external.call for external in externals})

        @functools.wraps(build)
        def linked(**functions: Any) -> Linked:
            return Linked(kernel(), tuple((external, functions[external.symbol].py_func) for external in externals))

        return linked

    return mark


class Library(CPUCodeLibrary):  # type: ignore[misc]
    """Numba's library of functions. They are linked into others or emitted, and never run from it."""

    @property
    def codegen(self) -> Any:
        """The object that `set_env` is called on."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: kernels call nothing of Python's."""

    def get_pointer_to_function(self, name: str) -> int:
        """Return no address, since there is no machine code here."""
        self._ensure_finalized()
        return 0

    def _finalize_final_module(self) -> None:
        self._finalized = True  # without machine code

    def add(self, lowered: Any, symbol: str) -> None:
        """Add a function that Numba has lowered, under a name, and the helpers that it calls."""
        module = lowered.library._final_module.clone()
        module.get_function(lowered.fndesc.llvm_func_name).name = symbol
        self._final_module.link_in(module)
        for library in lowered.library._linking_libraries:
            self.add_linking_library(library)

    def add_inline(self, lowered: Any, symbol: str) -> None:
        """Add a function whose callers are here: it is inlined, and its name is not kept."""
        self.add(lowered, symbol)
        function = self._final_module.get_function(symbol)
        function.linkage = "linkonce_odr"  # helpers that are linked later may call it
        function.add_function_attribute("alwaysinline")

    def emit(self) -> bytes:
        """Object code for this machine."""
        code: bytes = self._codegen._tm.emit_object(self._final_module)
        return code


class HelperPipeline(Compiler):  # type: ignore[misc]
    """Numba's pipeline for helpers, which writes no machine code for them: only kernels call them."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, library or Library(target.codegen(), "helper"), *rest)
