"""Models: inputs, outputs, layers in run order, and constants."""

from perframe.model.layer import Layer
from perframe.model.model import Evaluate, Model
from perframe.model.names import Names
from perframe.model.subgraph import Subgraph
from perframe.model.value import Array, Value

__all__ = ["Array", "Evaluate", "Layer", "Model", "Names", "Subgraph", "Value"]
