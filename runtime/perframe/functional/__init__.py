"""Functions on functional tensors, named and used as in PyTorch; those of Unity's Sentis are all among them.

The annotations of all functions are in `__init__.pyi`, which tools/write_functional.py makes from the functions.
"""

from __future__ import annotations

from importlib import import_module

from perframe.functional.calls import FUNCTIONS, METHOD_OF
from perframe.functional.methods import Methods
from perframe.functional.operators import OPERATORS

FAMILIES = (
    "elementwise",
    "logic",
    "activations",
    "reductions",
    "moving",
    "pieces",
    "gathering",
    "making",
    "drawing",
    "products",
    "windows",
    "normalization",
    "pictures",
    "spectra",
    "detection",
    "models",
)

for _family in FAMILIES:
    import_module(f"{__name__}.{_family}")
globals().update(FUNCTIONS)
for _name, _function in {**FUNCTIONS, **OPERATORS}.items():
    if next(iter(_function.__annotations__), "") == METHOD_OF:
        setattr(Methods, _name, _function)

__all__ = list(FUNCTIONS)  # all names are texts
