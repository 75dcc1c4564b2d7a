"""Einstein summation on the CPU."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from perframe.backends.operand import Operand
from perframe.backends.protocol import LayerLike
from perframe.layers.einsum import Contraction


def compute(layer: LayerLike, form: Contraction, inputs: Sequence[Any], outputs: Sequence[Operand]) -> list[Any]:
    """Call NumPy's einsum with numbers for indices. Short floats sum up in float32."""
    dtype = outputs[0].dtype.numpy
    wide = dtype if dtype.kind in "biu" or dtype.itemsize >= 4 else np.dtype(np.float32)
    numbers = dict(zip(dict.fromkeys(itertools.chain(*form.terms)), itertools.count(), strict=False))
    given: list[Any] = []
    for array, term in zip(inputs, form.terms, strict=False):
        given += [array.astype(wide, copy=False), [numbers[index] for index in term]]
    result = np.einsum(*given, [numbers[index] for index in form.terms[-1]], optimize=len(inputs) > 1)
    return [np.asarray(result).astype(dtype)]
