"""Layers by family: declarations, shape rules and formulas. Kernels are in the backends.

`layer` and `elementwise` declare layers of your own.
"""

# The module is imported first, so that the decorator below keeps its name: a later import does not set it again.
import perframe.layers.elementwise  # noqa: F401
from perframe.ir.broadcasting import elementwise
from perframe.ir.declaration import layer

__all__ = ["elementwise", "layer"]
