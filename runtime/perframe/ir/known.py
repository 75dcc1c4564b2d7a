"""Values as shape rules and forms see them."""

from __future__ import annotations

from typing import Any, Protocol

from perframe.tensor import DataType, TensorShape


class Known(Protocol):
    """An input or output of known shape and dtype; its values are known too if they are constant."""

    @property
    def shape(self) -> TensorShape:
        """The concrete shape."""

    @property
    def dtype(self) -> DataType:
        """The data type that the model declares."""

    @property
    def value(self) -> Any | None:
        """The values as an ndarray, or None if they are not known before the run."""

    def ints(self) -> tuple[int, ...] | None:
        """The values as ints, or None unless all are known. Sizes of a trace stay symbolic."""
