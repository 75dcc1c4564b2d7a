"""The backends. `open_backend` gets one by its name; nothing else outside a backend's folder imports from it."""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from perframe.backends.choosing import choose_backend
from perframe.backends.precision import FULL, Precision
from perframe.errors import InputError
from perframe.tensor import BackendType, DataType

if TYPE_CHECKING:
    from perframe.backends.operand import Operand
    from perframe.backends.protocol import Backend, LayerLike

log = logging.getLogger("perframe")

BackendName = BackendType | Literal["cpu", "gpu_compute", "gpu_pixel", "auto"]
AUTO = "auto"  # the fastest backend here
_HOMES = {
    BackendType.CPU: "perframe.backends.cpu.backend",
    BackendType.GPU_COMPUTE: "perframe.backends.gl.compute",
    BackendType.GPU_PIXEL: "perframe.backends.gl.pixel",
}


def backend_type(name: BackendName, ctx: Any = None) -> BackendType:
    """The backend type of this name; for "auto" the fastest one in a context. Raises InputError."""
    if name == AUTO:
        chosen, reason = choose_backend(ctx)
        log.info("backend auto: %s, because %s", chosen, reason)
        return chosen
    try:
        return BackendType(name)
    except ValueError:
        raise InputError(f"there is no backend {name!r}: it is one of {', '.join(BackendType)}, {AUTO}") from None


def open_backend(name: BackendName, ctx: Any = None, precision: Precision = FULL) -> Backend:
    """Open a backend by name, in the caller's GL context if one is given. Raises BackendError if that fails, and
    InputError for the CPU with another precision than float32.
    """
    opened: Backend = import_module(_HOMES[backend_type(name, ctx)]).open_backend(ctx, precision)
    return opened


def evaluator() -> Callable[[LayerLike, Sequence[Any]], list[Any]]:
    """Return the function that computes one layer on arrays with NumPy. Constant folding uses it."""
    found: Callable[[LayerLike, Sequence[Any]], list[Any]] = import_module(
        "perframe.backends.cpu.lowering.reference"
    ).evaluate
    return found


def host_runner() -> Callable[[LayerLike, Sequence[Any]], list[Any]]:
    """Return the function that runs a layer between plans: values may be lists, and shapes may depend on data."""
    module = import_module("perframe.backends.cpu.lowering.reference")
    found: Callable[[LayerLike, Sequence[Any]], list[Any]] = module.run_on_host
    return found


def job_scheduler() -> Callable[..., Any]:
    """The function that hands a job to the CPU's worker threads."""
    found: Callable[..., Any] = import_module("perframe.backends.cpu.threads.jobs").schedule
    return found


def compiled_kernels() -> tuple[Path, list[str]]:
    """Return the folder of the CPU's compiled kernels, and the names of those that this process compiled, in order."""
    jit = import_module("perframe.backends.cpu.compile.jit")
    return jit.kernel_folder(), jit.compiled


def expect_kernels() -> None:
    """Begin to compile the kernels that every model on the CPU needs and that the cache lacks."""
    import_module("perframe.backends.cpu.compile.jit").expect()


def waiting_for_kernels(on: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `on`, make workers whose runs wait for the CPU's kernels: runs that measure or check those.
    Other runs compute with NumPy until the kernels are compiled.
    """
    block: AbstractContextManager[None] = import_module("perframe.backends.cpu.compile.jit").waiting(on)
    return block


def settle_kernels() -> None:
    """Wait until all requested kernels are compiled and stored in the cache, and the next runs use them."""
    import_module("perframe.backends.cpu.compile.jit").settle()
    import_module("perframe.backends.cpu.program.late_program").settle()


def kernel_progress() -> float:
    """The compiled share of the requested CPU kernels, from 0 to 1."""
    share: float = import_module("perframe.backends.cpu.compile.compilers").compilers().progress
    return share


def gl_choices(ctx: Any = None) -> Any:
    """The variants of GL kernels on the device of a context, and the file that keeps them. Raises BackendError."""
    return import_module("perframe.backends.gl.context.device").device_for(ctx).choices


def gl_variants() -> Mapping[str, Sequence[str]]:
    """The names of the variants of each GL kernel that has several."""
    found: Mapping[str, Sequence[str]] = import_module("perframe.backends.gl.compile.variants").VARIANTS
    return found


def gl_dtypes(layer: LayerLike) -> frozenset[DataType]:
    """The dtypes of its first input with which the GL backends run a layer, as its family declares them."""
    if layer.family not in gl_families() or layer.declaration.on_host:
        return frozenset()
    steps = import_module("perframe.backends.gl.lowering.steps")
    family = import_module(f"perframe.backends.gl.families.{layer.family}")
    return frozenset(getattr(family, "DTYPES", steps.GPU_DTYPES))


def gl_families() -> frozenset[str]:
    """The families of layers that have GL kernels: those whose file defines `lower`."""
    package = import_module("perframe.backends.gl.families")
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return frozenset(name for name in names if hasattr(import_module(f"{package.__name__}.{name}"), "lower"))


def unsupported_on_gl(
    layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand], max_elements: int = 1 << 30
) -> str | None:
    """Return the reason why the GL backends cannot run a layer, or None. It needs no context."""
    reason: str | None = import_module("perframe.backends.gl.backend").reason_against(
        layer, inputs, outputs, max_elements
    )
    return reason


def texture_passes(ctx: Any) -> Any:
    """The GL passes between textures and tensors, in the caller's context."""
    return import_module("perframe.backends.gl.textures.passes").TexturePasses(ctx)
