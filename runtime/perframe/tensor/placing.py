"""Storage on a backend by its name. Tensors know no backend: `perframe.backends` registers the function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from perframe.tensor.cuda_array import CudaArray
from perframe.tensor.dtypes import BackendType, DataType
from perframe.tensor.protocol import Storage

Allocate = Callable[[BackendType, Any, Sequence[int], DataType], Storage]


class Places:
    """Where tensors may lie. `choose` turns the name of a backend into its type, and `allocate` makes storage there.
    `share` gives CUDA access to a tensor, by a stream and the kind of access; `copy_from_cuda` copies an array.
    """

    share: Callable[[Any, Any, str], AbstractContextManager[CudaArray]]
    copy_from_cuda: Callable[[Any, Any, Any], None]
    choose: Callable[[Any, Any], BackendType]
    allocate: Allocate


places = Places()
