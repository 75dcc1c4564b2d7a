"""Compiled kernels. Most come with a wheel (see library.py). Numba compiles each other kernel once, in another process
(see compilers.py). The object code is kept on disk, and later processes link it.

A kernel is `build(**functions)` in a file of `kernels/`, of perframe or of the package of a layer from outside. It
returns a function of (numbers, begin, end), an address and two indices as int64. The name of an object file contains a
hash of all kernel sources, the variant's text, the machine, and the versions of Numba and llvmlite.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from perframe.backends import winograd
from perframe.backends.cpu.compile import library
from perframe.backends.cpu.compile.compilers import Compilation, compile_error, compilers
from perframe.backends.kernel_files import Entry, kernel_folder, read, write
from perframe.ir.sizes import arithmetic
from perframe.resources import digest_of, resource
from perframe.tensor.locks import new_lock

_lock = new_lock()
compiled: list[str] = []  # the kernels that were missing on disk, for tests


@functools.cache
def _fingerprint() -> str:
    """Return a hash of everything that decides the object code, except the variant's text."""
    import llvmlite
    import llvmlite.binding as llvm

    parts: list[bytes | str] = [own_sources()]
    numba = importlib.util.find_spec("numba")  # the version is read from its file: to ask for it takes 15 ms
    if numba is not None and numba.origin is not None:
        parts.append((Path(numba.origin).parent / "_version.py").read_bytes())
    machine = (llvm.get_process_triple(), llvm.get_host_cpu_name(), llvmlite.__version__, sys.version_info[:2])
    parts += [repr(machine), llvm.get_host_cpu_features().flatten(), os.environ.get("PERFRAME_VECTORS", "")]
    return digest_of(*parts)


@functools.cache
def own_sources() -> str:
    """Return a hash of perframe's kernels, and of what is compiled with them."""
    kernels = Path(__file__).parents[1] / "kernels"
    paths = [Path(arithmetic.__file__), Path(winograd.__file__), *sorted(kernels.glob("*.py"))]
    return digest_of(*(path.read_bytes() for path in paths))


@functools.cache
def _sources(package: str) -> str:
    """Return a hash of the kernels of another package."""
    paths = sorted(resource("backends", "cpu", "kernels", package=package).glob("*.py"))
    return digest_of(*(path.read_bytes() for path in paths))


class _Linker:
    """LLVM execution engines into which object code is linked.

    One engine takes all objects, which is ten times faster. On Windows each object has its own: unwind tables there are
    relative to the lowest section of an engine, and LLVM ends the process if a later object lies too far from it.
    """

    def __init__(self, shares_engine: bool = sys.platform != "win32") -> None:
        import llvmlite.binding as llvm

        self._llvm, self._shares_engine = llvm, shares_engine
        self._engines: list[Any] = []  # kept, since they own the code
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()

    def _engine(self) -> Any:
        if not self._engines or not self._shares_engine:
            machine = self._llvm.Target.from_default_triple().create_target_machine(jit=True)
            engine = self._llvm.create_mcjit_compiler(self._llvm.parse_assembly(""), machine)
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))  # it outlives llvmlite, which it calls when it ends
            self._engines.append(engine)
        return self._engines[-1]

    def link(self, code: bytes, symbol: str) -> int:
        """Link object code, and return the address of `symbol` in it."""
        engine = self._engine()
        engine.add_object_file(self._llvm.object_file.ObjectFileRef.from_data(code))
        engine.finalize_object()
        return int(engine.get_function_address(symbol))


@functools.cache
def _linker() -> _Linker:
    return _Linker()


_parents: list[_Linker] = []  # kept, since they own the code that a forked child has from its parents


def _leave_linker() -> None:
    """Give a forked child its own engine: the parent's engine may be in the middle of a kernel."""
    if _linker.cache_info().currsize:
        _parents.append(_linker())
        _linker.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_linker)


@functools.cache
def kernel(name: str, text: str = "") -> int:
    """Return the address of a kernel. `name` is "file" or "file.function", after "package:" if it is not perframe's;
    `text` has the formulas of the variant.

    If the kernel is missing in the library and on disk, another process begins to compile it. The result then stands
    for the address, and its first use as a number waits for the compiler. Raises BackendError, at once or at that use,
    where the kernel cannot be compiled.
    """
    with _lock:
        shipped = library.address(own_sources(), name, text)
        if shipped is not None:
            return shipped
        path = object_path(name, text, kernel_folder())
        entry = read(path)
        if entry is not None:
            return _linker().link(*entry)
        compiled.append(f"{name} {text}".strip())
        compilation = compilers().request(name, text, path)
        pending = _Pending(name, text, path, compilation)
        if compilation is None:
            return int(pending)
        _pending.append(pending)
        return cast(int, pending)


class _Pending:
    """The address of a kernel that is being compiled. NumPy and int() use it as a number, and wait for the compiler."""

    __slots__ = ("_address", "_job", "_kernel")

    def __init__(self, name: str, text: str, path: Path, compilation: Compilation | None) -> None:
        self._kernel, self._job, self._address = (name, text, path), compilation, 0

    def __index__(self) -> int:
        entry = None if self._address or self._job is None else self._job.wait()
        with _lock:
            if not self._address:
                self._address = _linker().link(*(entry or _made_here(*self._kernel)))
        return self._address

    __int__ = __index__

    def hurry(self) -> None:
        """Compile it before the others that wait."""
        if self._job is not None:
            compilers().hurry(self._job)

    @property
    def is_done(self) -> bool:
        """Whether the compiler has ended, so that the address needs no wait."""
        return bool(self._address) or (self._job is not None and self._job.is_done)


def is_compiled(address: int) -> bool:
    """Whether the address of a kernel is known without waiting."""
    return not isinstance(address, _Pending) or address.is_done


_pending: list[_Pending] = []  # those that may be under way


def all_compiled() -> bool:
    """Whether no kernel that was requested is missing."""
    for pending in tuple(_pending):
        if not pending.is_done:
            return False
        with contextlib.suppress(ValueError):  # another thread has removed it
            _pending.remove(pending)
    return True


_waits: ContextVar[bool] = ContextVar("waits", default=False)


@contextlib.contextmanager
def waiting(on: bool) -> Iterator[None]:
    """Make workers whose runs wait for their kernels, if `on`."""
    before = _waits.set(on or _waits.get())
    try:
        yield
    finally:
        _waits.reset(before)


def waits() -> bool:
    """Whether runs wait for their kernels; then NumPy computes nothing meanwhile. PERFRAME_INTERPRET=0 forces it."""
    return _waits.get() or os.environ.get("PERFRAME_INTERPRET", "") == "0"


def hurry(address: int) -> None:
    """Compile a kernel before the others that wait."""
    if isinstance(address, _Pending):
        address.hurry()


def _made_here(name: str, text: str, path: Path) -> Entry:
    """Compile a kernel in this process, and write it to disk."""
    try:
        entry = compile_here(name, text)
    except Exception as error:
        raise compile_error(name, f"{type(error).__name__}: {error}") from error
    if not any(variable.startswith("NUMBA_") for variable in os.environ):  # Numba's variables may change the code
        write(path, *entry)
    return entry


def expect() -> tuple[int, int]:
    """Return the kernels that every program needs. Begin to compile them if they are missing."""
    return kernel("walk"), kernel("walk.build_help")


def busy() -> bool:
    """Whether any requested kernel is still being compiled."""
    return compilers().busy


def settle() -> None:
    """Wait until all requested kernels are compiled."""
    compilers().settle()


def object_path(name: str, text: str, folder: Path) -> Path:
    """Return the path of a kernel's object code."""
    package, _, kernel = name.rpartition(":")
    sources = f"{_fingerprint()} {_sources(package)}" if package else _fingerprint()
    return folder / f"{kernel}-{digest_of(f'{sources} {name} {text}')[:32]}.o"


def compile_here(name: str, text: str) -> Entry:
    """Compile with Numba in this process. Return the object code and the symbol of the function in it."""
    from perframe.backends.cpu.kernels import compiler

    return compiler.compile_kernel(name, text)


@functools.cache
def function(name: str) -> Callable[..., int]:
    """Return a kernel as a ctypes function, which releases the GIL. Call it with `arguments`."""
    return _PROTOTYPE(int(kernel(name)))


_PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int32)


def call(address: int, first: int, second: int, third: int) -> None:
    """Call the kernel at an address."""
    _PROTOTYPE(address)(*arguments(first, second, third))


def arguments(first: int, second: int, third: int) -> tuple[Any, ...]:
    """Make the arguments for `function`. Make them once: that takes longer than many programs run."""
    # Numba's calling convention: a slot for the result and one for the exception come first
    slots = (ctypes.c_int64 * 2)()
    address = ctypes.addressof(slots)
    pointers = (ctypes.byref(slots), ctypes.c_void_p(address + 8))
    return (*pointers, ctypes.c_int64(first), ctypes.c_int64(second), ctypes.c_int64(third))


@functools.cache
def epilogue_text(stages: Any, name: str = "epilogue", first: int = 0) -> str:
    """Return the Python text of an epilogue: a function `name(x, p)`, with its parameters in `p` from `first` on."""
    from perframe.ir.epilogue import compose, parameters

    functions, expression = compose(stages, "python")
    for index in range(len(parameters(stages))):
        expression = expression.replace(f"parameter({index})", f"p[{index + first}]")
    return f"{functions}\n@inline\ndef {name}(x, p):\n    return {expression}\n"
