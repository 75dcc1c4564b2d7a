"""Models: inputs, outputs, layers in run order, and constants."""

from perframe.ir.layer import Layer, Value
from perframe.ir.model import Evaluate, Model
from perframe.ir.names import Names
from perframe.ir.subgraph import Subgraph
from perframe.tensor import Array

__all__ = ["Array", "Evaluate", "Layer", "Model", "Names", "Subgraph", "Value"]
