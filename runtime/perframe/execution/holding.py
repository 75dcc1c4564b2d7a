"""Arrays at the edges of a run: the caller may change its own at any time, and the run must not notice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import numpy as np

from perframe.errors import BackendError
from perframe.execution.machine import Values
from perframe.execution.parts import Parts
from perframe.plan.plan import LEAST_LENT
from perframe.tensor import Tensor


def hold(values: Values, parts: Parts, guarded: Callable[[], AbstractContextManager[Any]] | None) -> None:
    """Replace the caller's arrays by copies, for a run that begins later. Large ones are uploaded at once."""
    if any([type(value) is np.ndarray and value.nbytes >= LEAST_LENT for value in values.values()]):
        # the worker's context may become current only before the first step
        with suppress(BackendError), guarded() if guarded is not None else nullcontext():
            parts.hold(values)
    for name, value in values.items():
        if isinstance(value, (np.ndarray, list)):
            values[name] = _copied(value)


def as_output(name: str, value: Any) -> Any:
    """Turn an array from the host into a tensor. Tensors and empty optionals stay unchanged. The arrays of a sequence
    are copied, since they may be inputs.
    """
    if isinstance(value, list):
        return _copied(value)
    if not isinstance(value, np.ndarray):
        return value
    tensor = Tensor(value)
    tensor.name = name
    return tensor


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value.copy() if isinstance(value, np.ndarray) else value
