"""Tensors: dtypes, shapes, values that are partly known, and data that may still be pending on a backend."""

from perframe.tensor.dtypes import Array, BackendType, DataType, TensorShape
from perframe.tensor.protocol import Fence, Storage
from perframe.tensor.storage import HostStorage
from perframe.tensor.tensor import Tensor

__all__ = ["Array", "BackendType", "DataType", "Fence", "HostStorage", "Storage", "Tensor", "TensorShape"]
