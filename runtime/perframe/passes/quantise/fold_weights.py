"""Other quantized constants become floats."""

from __future__ import annotations

from perframe.ir import Evaluate, Model
from perframe.passes.clean.fold_constants import fold


def run(model: Model, evaluate: Evaluate) -> int:
    """Fold all layers with constant inputs, and return the number of layers that were removed."""
    return fold(model, evaluate)
