"""Protocols of the work on tensors, and of their storage on every backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from perframe.tensor.dtypes import Array, BackendType, DataType
from perframe.tensor.readback import Pending


@runtime_checkable
class Fence(Protocol):
    """Work that will finish, such as a job or a GL fence."""

    @property
    def done(self) -> bool:
        """Whether the work has finished. Never blocks."""

    def wait(self) -> None:
        """Block until the work has finished."""


class Movable(Protocol):
    """A tensor, as storages see it."""

    def pin_like(self, storage: Storage) -> Storage:
        """Move the data to the backend of a storage, unless it is there, and return its storage there."""


class Storage(Protocol):
    """A tensor's data on a backend. `write` is the last job that writes it; None if there is none, as on a GPU.

    `changes` counts the writes that were begun. It is NaN, which equals nothing, once the caller may write the memory.
    """

    write: Fence | None
    changes: float

    @property
    def backend_type(self) -> BackendType:
        """The backend on which the data lies."""

    @property
    def max_capacity(self) -> int:
        """The number of elements that fit."""

    @property
    def element_bytes(self) -> int:
        """The bytes of an element."""

    @property
    def held_bytes(self) -> int:
        """The bytes that count as held memory, with those that are kept for readbacks."""

    def bytes_for(self, size: int) -> int:
        """The bytes that storage of this kind takes for `size` elements."""

    @property
    def most_elements(self) -> int:
        """The most elements that storage of this kind may have."""

    @property
    def busy(self) -> bool:
        """Whether an upload would have to wait for work that is under way."""

    @property
    def is_open(self) -> bool:
        """False after a release."""

    def upload(self, array: Array) -> None:
        """Write the values of `array`. Later work on this backend sees them."""

    def upload_part(self, array: Array, at: Sequence[int], shape: Sequence[int]) -> None:
        """Write a block of a tensor of this shape, from the index `at`: one number a dim. The caller checks them."""

    def download(self, shape: Sequence[int] | None = None, dtype: DataType | None = None) -> Array:
        """Return the values. Without a shape, return the whole storage, flat. Blocks."""

    def request(self, shape: Sequence[int], dtype: DataType) -> Pending:
        """Begin a download. Never blocks."""

    def free_spare(self) -> None:
        """Free the memory that is kept for later downloads."""

    def like(self, shape: Sequence[int], dtype: DataType) -> Storage:
        """Allocate new storage on the same backend."""

    def pin(self, tensor: Movable) -> Storage:
        """Move `tensor`'s data to this storage's backend, unless it is there, and return its storage there."""

    def is_beside(self, other: Storage) -> bool:
        """Whether the other storage is in the same memory: the host's, or that of one GL context, of the same kind."""

    def release(self) -> None:
        """Free the memory."""
