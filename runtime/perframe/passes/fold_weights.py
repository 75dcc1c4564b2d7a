"""Quantized constants that no product multiplies directly become the real numbers for which they stand."""

from __future__ import annotations

from perframe.model import Evaluate, Model
from perframe.passes.fold_constants import fold


def run(model: Model, evaluate: Evaluate) -> int:
    """Fold all layers with constant inputs, and return the number of layers that were removed."""
    return fold(model, evaluate)
