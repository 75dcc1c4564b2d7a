"""Models: inputs, outputs, layers in run order, and constants."""

from perframe.model.model import Array, Evaluate, Layer, Model, Names, Value

__all__ = ["Array", "Evaluate", "Layer", "Model", "Names", "Value"]
