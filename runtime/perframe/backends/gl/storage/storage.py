"""Tensors in GL objects: the common part of buffers and textures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from perframe.backends.gl.context.device import Device
from perframe.errors import BackendError, ClosedError
from perframe.tensor import BackendType, DataType, Storage, TensorShape
from perframe.tensor.memory import counted_bytes
from perframe.tensor.protocol import Movable
from perframe.tensor.snapshots import Snapshots

Array = NDArray[Any]
PIECE = 1 << 18  # bytes that an upload in pieces writes at once


class Mapping(Protocol):
    """An access of another API, such as CUDA, to a storage's GL object."""

    def keep(self, objects: Sequence[Any]) -> None:
        """Free the objects of a released storage when the access ends."""


class GLStorage(Storage):
    """A tensor in a GL object, with four bytes an element, or two if the object holds halves: float16 numbers, or
    float32 numbers if asked. Subclasses make the object, and move values.
    """

    backend_type: BackendType
    write = None
    changes: float = 0
    mapping: Mapping | None = None  # while another API has the object mapped, GL must not use it

    def __init__(self, device: Device, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> None:
        self.device, self.dtype, self.size = device, dtype, TensorShape(shape).size
        self.is_half, self.snapshots = is_half or dtype is DataType.FLOAT16, Snapshots()
        with device.using():
            self._objects = self._make()

    def _make(self) -> tuple[Any, ...]:
        """Make the GL objects. The last one has the values."""
        raise AssertionError("subclasses make them")

    def note_table(self, make: Callable[..., Array], arguments: Sequence[Any]) -> None:
        """Note the function that made the values, and its arguments. Only a trace needs them."""

    def enlarge(self, shape: Sequence[int]) -> None:
        """Make room for a value of this shape. The values that it has are lost, and the object gets another GL name."""
        self.release()
        self.size = TensorShape(shape).size
        with self.device.using():
            self._objects = self._make()
        self.device.moves += 1

    def pieces(self, arranged: Array) -> Iterator[None]:
        """Write values that the backend has arranged, a piece at each step."""
        raise AssertionError("subclasses write them")

    @property
    def element_bytes(self) -> int:
        """Four for every dtype, and two for halves."""
        return 2 if self.is_half else 4

    @property
    def memory(self) -> Any:
        """The moderngl object that has the values; None after release()."""
        return self._objects[-1] if self._objects else None

    def bytes_for(self, size: int) -> int:
        """The bytes of such a GL object for `size` elements."""
        raise AssertionError("subclasses say")

    @property
    def most_elements(self) -> int:
        """The most elements that such an object may have."""
        raise AssertionError("subclasses say")

    @property
    def held_bytes(self) -> int:
        """The bytes that count as held."""
        return counted_bytes(self.memory) + self.snapshots.held_bytes

    @property
    def busy(self) -> bool:
        """Always False: GL orders an upload after earlier work."""
        return False

    @property
    def is_open(self) -> bool:
        """Whether the storage has not been released."""
        return bool(self._objects)

    @property
    def glo(self) -> int:
        """The object's GL name. Raises ClosedError after release(), and BackendError while CUDA has it mapped."""
        if self.mapping is not None:
            raise BackendError(
                f"a tensor of {self.size} elements ({self.dtype} on {self.backend_type}) is mapped by CUDA, and GL "
                "must not use it: end the block of `with tensor.on_cuda()` first"
            )
        if not self._objects:
            raise ClosedError(
                f"a tensor of {self.size} elements ({self.dtype} on {self.backend_type}) was used after it was "
                "released, or after the worker that owns it was: keep values by readback_and_clone()"
            )
        return int(self._objects[-1].glo)

    def download(self, shape: Sequence[int] | None = None, dtype: DataType | None = None) -> Array:
        """Return the values. Blocks until the GPU has computed them."""
        pending = self.request((self.size,) if shape is None else shape, dtype or self.dtype)
        pending.wait()
        result: Array = pending.values()
        return result

    def like(self, shape: Sequence[int], dtype: DataType) -> Self:
        """New storage in the same context."""
        return type(self)(self.device, shape, dtype)

    def free_spare(self) -> None:
        """Free the memory that is kept for later downloads."""
        self.snapshots.free()

    def pin(self, tensor: Movable) -> Storage:
        """Move `tensor`'s data into storage of this context, unless it is there."""
        return tensor.pin_like(self)

    def is_beside(self, other: Storage) -> bool:
        """Whether the other storage is of this kind and in this context."""
        return other.backend_type is self.backend_type and getattr(other, "device", None) is self.device

    @property
    def attached(self) -> Sequence[Any]:
        """What is freed before the object that has the values."""
        return self._objects[:-1]

    def attach(self, thing: Any) -> None:
        """Free `thing`, by its `release`, on the GL thread and before the object that has the values."""
        self._objects = (*self._objects[:-1], thing, self._objects[-1])

    def release(self) -> None:
        """Free the GL objects, on the GL thread. What CUDA has mapped is freed when CUDA's access ends."""
        if self.mapping is not None:
            self.mapping.keep(self._objects)
            self.device.mapped.discard(self)
            self.mapping = None
        elif self._objects:
            self.device.drop(*self._objects)
        self._objects = ()

    def __del__(self) -> None:
        if getattr(self, "_objects", ()):
            self.device.drop(*self._objects)


def runs_of(part: Sequence[int], at: Sequence[int], shape: Sequence[int]) -> tuple[list[int], int]:
    """The consecutive elements of a block of a tensor: the index where each run begins, and the length of all."""
    outer = len(shape)
    while outer and part[outer - 1] == shape[outer - 1]:
        outer -= 1
    outer = max(outer - 1, 0)  # the last dim of which the block has only a part still belongs to a run
    strides = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    begins = np.array(sum(begin * stride for begin, stride in zip(at[outer:], strides[outer:], strict=True)), np.int64)
    for dim in range(outer):
        begins = np.add.outer(begins, (at[dim] + np.arange(part[dim])) * strides[dim])
    return begins.ravel().tolist(), math.prod(part[outer:])
