"""An array in CUDA memory, as other libraries take it: by DLPack or by `__cuda_array_interface__`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from perframe.errors import ClosedError, InputError
from perframe.tensor.dlpack import CUDA, capsule_of, knows_read_only
from perframe.tensor.dtypes import DataType, TensorShape

LEGACY = 1  # the number of CUDA's default stream, in both protocols
NO_ORDER = -1  # a consumer's stream that waits for nothing


class CudaArray:
    """The values of a tensor on an NVIDIA GPU, row-major, within a block of `with tensor.on_cuda() as array:`.

    `torch.from_dlpack(array)`, `cupy.from_dlpack(array)` and `warp.from_dlpack(array)` take it without a copy. What
    they make must not be used after the block. `dtype` is that of the memory: the GPU holds integers and bools as
    int32.
    """

    def __init__(
        self,
        address: int,
        shape: TensorShape,
        dtype: DataType,
        device: int,
        stream: int,
        access: str,
        order: Callable[[int], None],
    ) -> None:
        """`order` lets a consumer's stream wait for this array's `stream`."""
        self.shape, self.dtype, self.device, self.stream = shape, dtype, device, stream
        self._address: int | None = address
        self._is_read_only, self._order = access == "read", order

    @property
    def address(self) -> int:
        """The address in CUDA memory. Raises ClosedError after the block."""
        if self._address is None:
            raise ClosedError(
                "this array in CUDA memory was used after the end of its block: work within `with tensor.on_cuda()`, "
                "and copy what must outlive it"
            )
        return self._address

    def close(self) -> None:
        """End the access."""
        self._address = None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": tuple(self.shape),
            "strides": None,
            "typestr": self.dtype.numpy.str,
            "data": (self.address if self.shape.size else 0, self._is_read_only),
            "stream": self.stream or LEGACY,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (CUDA, self.device)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        address = self.address
        if dl_device is not None and (int(dl_device[0]), int(dl_device[1])) != self.__dlpack_device__():
            raise InputError(f"this array is on the CUDA device {self.device}, and is not exported to {dl_device}")
        if copy:
            raise InputError("this array is exported without a copy: let the other library copy it, as by clone()")
        if stream != NO_ORDER:
            self._order(stream or LEGACY)
        return capsule_of(
            self,
            address,
            self.shape,
            self.dtype,
            device=self.__dlpack_device__(),
            max_version=max_version,
            read_only=self._is_read_only and knows_read_only(max_version),
        )

    def __repr__(self) -> str:
        state = "closed" if self._address is None else f"at {self._address:#x}"
        return f"CudaArray({self.dtype} {self.shape}, device {self.device}, {state})"
