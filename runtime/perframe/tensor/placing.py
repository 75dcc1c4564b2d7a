"""Storage on a backend by its name. Tensors know no backend: `perframe.backends` registers the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from perframe.tensor.dtypes import BackendType, DataType
from perframe.tensor.protocol import Storage

Allocate = Callable[[BackendType, Any, Sequence[int], DataType], Storage]


class Places:
    """Where tensors may lie. `choose` turns the name of a backend into its type, and `allocate` makes storage there."""

    choose: Callable[[Any, Any], BackendType]
    allocate: Allocate


places = Places()
