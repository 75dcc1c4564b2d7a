"""Layers by family: declarations, shape rules and formulas. Kernels are in the backends.

`layer` and `elementwise` declare layers of your own.
"""

import perframe.layers.elementwise  # noqa: F401 - first: the file's name becomes the decorator's below
from perframe.layers.base import layer
from perframe.layers.broadcasting import elementwise

__all__ = ["elementwise", "layer"]
