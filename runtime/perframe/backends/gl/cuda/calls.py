"""Calls of the CUDA runtime, by the package cuda-python."""

from __future__ import annotations

from typing import Any

from perframe.errors import BackendError, InputError, MissingExtraError

_MOST_DEVICES = 16


class Cuda:
    """The CUDA runtime. A call that fails raises BackendError. Making it raises MissingExtraError without the package.

    https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__INTEROP.html
    """

    def __init__(self) -> None:
        try:
            from cuda.bindings import runtime
        except ImportError as error:
            raise MissingExtraError("cuda-python", "cuda", "sharing a tensor with CUDA") from error
        self.runtime: Any = runtime
        self.on_device = runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function; return its value, or the list of its values."""
        try:
            error, *values = getattr(self.runtime, name)(*arguments)
        except RuntimeError as failure:  # the driver's library is not there
            raise BackendError(f"{name} failed: {failure}: CUDA needs the driver of an NVIDIA GPU") from failure
        if error != self.runtime.cudaError_t.cudaSuccess:
            raise BackendError(f"{name} failed: {getattr(error, 'name', error)}")
        return values[0] if len(values) == 1 else values

    def device_of_context(self, renderer: str) -> int:
        """The current CUDA device, if the current GL context runs on it. Raises BackendError if it does not."""
        try:
            count, devices = self.call(
                "cudaGLGetDevices", _MOST_DEVICES, self.runtime.cudaGLDeviceList.cudaGLDeviceListAll
            )
        except BackendError as error:
            raise BackendError(
                f"CUDA does not know the GL context, which runs on {renderer}: only NVIDIA GPUs share tensors with it "
                f"({error})"
            ) from error
        known, current = [int(device) for device in devices[: int(count)]], int(self.call("cudaGetDevice"))
        if current not in known:
            numbers = ", ".join(map(str, known)) or "none"
            raise BackendError(
                f"the current CUDA device is {current}, and the GL context runs on device {numbers} ({renderer}): make "
                "that one current first, as by torch.cuda.set_device(number)"
            )
        return current


def stream_number(stream: Any) -> int:
    """The handle of a stream: a number, or a stream of PyTorch, CuPy, Warp or cuda.core. Raises InputError."""
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr"):
        if isinstance(getattr(stream, name, None), int):
            return int(getattr(stream, name))
    raise InputError(f"stream is a CUDA stream or its handle, 0 for the default stream, not {stream!r}")
