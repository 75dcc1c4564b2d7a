"""Index tensors of a graph as arrays of NumPy, and build tensors in several ways."""

from __future__ import annotations

import numpy as np

import perframe as pf
from perframe import functional as F

graph = pf.FunctionalGraph()
x = graph.add_input(pf.DataType.FLOAT32, (2, 5, 4))
model = graph.compile(
    row=x[0],
    every_second=x[:, ::2],
    last=x[..., -1],
    chosen=x[:, [0, 3]],
    bright=F.where(x > 0.5, x, 0.0),
)
values = np.random.default_rng(0).random((2, 5, 4), np.float32)
for name, value in pf.run(model, {model.inputs[0].name: values}).items():
    print(f"{name}: {value.shape}")

tensor = pf.Tensor(np.arange(6, dtype=np.float32))
print(tensor.reshape((2, 3)).shape, np.asarray(tensor)[1:3], pf.Tensor.empty((3, 2), "int32").dtype)
