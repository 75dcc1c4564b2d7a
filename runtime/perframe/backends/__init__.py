"""The backends, and the one place that joins them with the rest: nothing outside a backend's folder imports from it.

A backend is imported when it is asked for, since Numba and OpenGL take time to load.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from perframe.backends.choosing import choose_backend
from perframe.backends.precision import FULL, Precision
from perframe.errors import BackendError, InputError
from perframe.tensor import Array, BackendType, DataType, HostStorage, Storage
from perframe.tensor import Tensor as Tensor  # with the places where tensors may lie
from perframe.tensor.cuda_array import CudaArray
from perframe.tensor.placing import places

if TYPE_CHECKING:
    from perframe.backends.gl.compile.variants import Choices
    from perframe.backends.gl.textures.marks import MarkPasses as MarkPasses
    from perframe.backends.gl.textures.passes import TexturePasses as TexturePasses
    from perframe.backends.operand import Operand
    from perframe.backends.protocol import Backend, LayerLike
    from perframe.graphics import GLContext

log = logging.getLogger("perframe")

BackendName = BackendType | Literal["cpu", "gpu_compute", "gpu_pixel", "auto"]
AUTO = "auto"  # the fastest backend here


def backend_type(name: BackendName, ctx: GLContext | None = None) -> BackendType:
    """The backend type of this name; for "auto" the fastest one in a context. Raises InputError for an unknown name,
    and BackendError for a wrong context.
    """
    if not isinstance(name, str):
        raise InputError(f"a backend is one of {', '.join(BackendType)}, {AUTO}, and got {type(name).__name__}")
    if name == BackendType.CPU and ctx is not None:  # GPU backends check it themselves
        moderngl = sys.modules.get("moderngl")
        if moderngl is None or not isinstance(ctx, moderngl.Context):
            raise BackendError(f"ctx must be a moderngl.Context, not {type(ctx).__name__}")
    if name == AUTO:
        chosen, reason = choose_backend(ctx)
        log.info("backend auto: %s, because %s", chosen, reason)
        return chosen
    try:
        return BackendType(name)
    except ValueError:
        raise InputError(f"there is no backend {name!r}: it is one of {', '.join(BackendType)}, {AUTO}") from None


def open_backend(name: BackendName, ctx: GLContext | None = None, precision: Precision = FULL) -> Backend:
    """Open a backend by name, in the caller's GL context if one is given. Raises BackendError if that fails, and
    InputError for a precision that the backend lacks.
    """
    kind = backend_type(name, ctx)
    if precision.rounds and kind is not BackendType.CPU:
        raise InputError(
            f"activations='bfloat16' is neither 'float32' nor 'float16', and {kind} keeps numbers in one of these: "
            "'bfloat16' is for backend='cpu'"
        )
    match kind:
        case BackendType.CPU:
            from perframe.backends.cpu import backend

            return backend.open_backend(precision)
        case BackendType.GPU_COMPUTE:
            from perframe.backends.cpu.refit.arithmetic import SIZE_MATH
            from perframe.backends.gl import compute

            return compute.open_backend(ctx, precision, SIZE_MATH)
        case BackendType.GPU_PIXEL:
            from perframe.backends.cpu.refit.arithmetic import SIZE_MATH
            from perframe.backends.gl import pixel

            return pixel.open_backend(ctx, precision, SIZE_MATH)


def evaluator() -> Callable[[LayerLike, Sequence[Any]], list[Any]]:
    """Return the function that computes one layer on arrays with NumPy. Constant folding uses it."""
    from perframe.backends.cpu.reference import evaluate

    return evaluate


def evaluation_of() -> Callable[[LayerLike, Sequence[Any]], Callable[[Sequence[Any]], list[Any]]]:
    """Return the function that makes a function of one layer on arrays of the given shapes, with NumPy."""
    from perframe.backends.cpu.reference import evaluation

    return evaluation


def host_runner() -> Callable[[LayerLike, Sequence[Any]], list[Any]]:
    """Return the function that runs a layer between plans: values may be lists, and shapes may depend on data."""
    from perframe.backends.cpu.reference import run_on_host

    return run_on_host


def job_scheduler() -> Callable[..., Any]:
    """The function that hands a job to the CPU's worker threads."""
    from perframe.backends.cpu.threads.jobs import schedule

    return schedule


def compiled_kernels() -> tuple[Path, list[str]]:
    """Return the folder of the CPU's compiled kernels, and the names of those that this process compiled, in order."""
    from perframe.backends.cpu.compile import jit
    from perframe.backends.kernel_files import kernel_folder

    return kernel_folder(), jit.compiled


def shipped_kernels() -> str:
    """Say which kernels came compiled. Raises OSError or ValueError if they are damaged."""
    from perframe.backends.cpu.compile import library

    return library.describe()


def expect_kernels() -> None:
    """Begin to compile the kernels that every model on the CPU needs and that the cache lacks."""
    from perframe.backends.cpu.compile import jit

    jit.expect()


def waiting_for_kernels(on: bool = True) -> AbstractContextManager[None]:
    """Within the block, if `on`, make workers whose runs wait for the CPU's kernels: runs that measure or check those.
    Other runs compute with NumPy until the kernels are compiled.
    """
    from perframe.backends.cpu.compile import jit

    return jit.waiting(on)


def settle_kernels() -> None:
    """Wait until all requested kernels are compiled and stored in the cache, and the next runs use them."""
    from perframe.backends.cpu.compile import jit
    from perframe.backends.cpu.program import late_program

    jit.settle()
    late_program.settle()


def kernel_progress() -> float:
    """The compiled share of the requested CPU kernels, from 0 to 1."""
    from perframe.backends.cpu.compile.compilers import compilers

    return compilers().progress


def gl_choices(ctx: GLContext | None = None) -> Choices:
    """The variants of GL kernels on the device of a context, and the file that keeps them. Raises BackendError."""
    from perframe.backends.gl.context.devices import device_for

    return device_for(ctx).choices


def gl_variants() -> Mapping[str, Sequence[str]]:
    """The names of the variants of each GL kernel that has several."""
    from perframe.backends.gl.compile.variants import VARIANTS

    return VARIANTS


def gl_dtypes(layer: LayerLike) -> frozenset[DataType]:
    """The dtypes of its first input with which the GL backends run a layer, as its family declares them."""
    from perframe.backends.gl.families import family

    found = family(layer.family)
    return frozenset() if found is None or layer.declaration.on_host else frozenset(found.dtypes)


def unsupported_on_gl(
    layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand], max_elements: int = 1 << 30
) -> str | None:
    """Return the reason why the GL backends cannot run a layer, or None. It needs no context."""
    from perframe.backends.gl.backend import reason_against

    return reason_against(layer, inputs, outputs, max_elements)


def texture_passes(ctx: GLContext) -> TexturePasses:
    """The GL passes between textures and tensors, in the caller's context."""
    from perframe.backends.gl.textures.passes import TexturePasses

    return TexturePasses(ctx)


def picture_sampler() -> Callable[[Array, Array, Mapping[str, Any]], bool]:
    """The function that samples a picture in memory into a tensor's elements, by the parameters of the GL pass. It
    returns whether it did: a kernel may still be compiled, or take no such picture.
    """
    from perframe.backends.cpu.pictures import sample

    return sample


def gl_guard(ctx: GLContext) -> Callable[[], AbstractContextManager[Any]]:
    """Blocks in which other code may use the caller's context: they give the GL functions, and restore GL's state."""
    from perframe.backends.gl.context.devices import device_for

    return device_for(ctx).using


def mark_passes(ctx: GLContext) -> MarkPasses:
    """The GL passes that draw marks over the caller's pixels, in the caller's context."""
    from perframe.backends.gl.textures.marks import MarkPasses

    return MarkPasses(ctx)


def allocate(backend: BackendType, ctx: GLContext | None, shape: Sequence[int], dtype: DataType) -> Storage:
    """New storage on a backend, in the caller's GL context if one is given. Raises BackendError."""
    match backend:
        case BackendType.CPU:
            return HostStorage(shape, dtype)
        case BackendType.GPU_COMPUTE:
            from perframe.backends.gl import compute

            return compute.open_backend(ctx).alloc(shape, dtype)
        case BackendType.GPU_PIXEL:
            from perframe.backends.gl import pixel

            return pixel.open_backend(ctx).alloc(shape, dtype)


def share_with_cuda(tensor: Tensor, stream: Any, access: str) -> AbstractContextManager[CudaArray]:
    """Access of CUDA to a tensor on a GPU, for the time of a block. Raises InputError."""
    from perframe.backends.gl.cuda.sharing import CudaMapping

    return CudaMapping(tensor, stream, access)


def copy_from_cuda(tensor: Tensor, data: Any, stream: Any) -> None:
    """Copy an array in CUDA memory into a tensor on a GPU."""
    from perframe.backends.gl.cuda.sharing import copy_from

    copy_from(tensor, data, stream)


places.choose, places.allocate = backend_type, allocate
places.share, places.copy_from_cuda = share_with_cuda, copy_from_cuda
