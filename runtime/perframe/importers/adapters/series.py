"""Adapters of recurrent layers, transforms, and layers that draw random numbers."""

from __future__ import annotations

from perframe.importers.adapters import adapter, to_data_types, to_input
from perframe.importers.onnx_node import Node


@adapter("RNN", "GRU", "LSTM")
def _recurrent(node: Node) -> None:
    """Give outputs that the model leaves out a name, so that the layer has the later ones at their positions."""
    node.attributes.pop("output_sequence", None)  # before opset 7
    if node.attributes.get("direction") == "foward":  # the default of opset 1, as the standard wrote it
        node.attributes["direction"] = "forward"
    node.outputs = [name or node.fresh() for name in node.outputs]


@adapter("DFT", before=20)
def _transform(node: Node) -> None:
    node.attributes.setdefault("axis", 1)
    to_input(node, "axis", 2)


_DRAWN = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")


@adapter(*_DRAWN)
def _random(node: Node) -> None:
    to_data_types(node, "dtype")


@adapter("MelWeightMatrix")
def _mel(node: Node) -> None:
    to_data_types(node, "output_datatype")


@adapter("StringNormalizer")
def _words(node: Node) -> None:
    """Empty lists in an attribute have no type."""
    node.attributes["stopwords"] = tuple(node.attributes.get("stopwords", ()))
