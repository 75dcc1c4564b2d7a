"""Runs the calls of a table: their arrays become inputs of one model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import perframe as pf
from functional.cases import Case

Array = NDArray[Any]


def mapped(value: Any, to: Callable[[Array], Any]) -> Any:
    """A value with its arrays replaced, in lists too."""
    if isinstance(value, list):
        return [mapped(item, to) for item in value]
    return to(value) if isinstance(value, (np.ndarray, np.generic)) else value


def flat(value: Any) -> list[Any]:
    """One or several results as a list."""
    return [*value] if isinstance(value, (tuple, list)) else [value]


class Calls:
    """A graph of calls, the arrays that it wants, and its outputs by call."""

    def __init__(self) -> None:
        self.graph = pf.FunctionalGraph()
        self.arrays: dict[str, Array] = {}
        self.outputs: list[list[pf.FunctionalTensor]] = []

    def add(self, name: str, case: Case) -> None:
        """Call a function of this name."""
        call = getattr(pf.functional, name)

        def to_input(array: Array) -> pf.FunctionalTensor:
            name = f"x{len(self.arrays)}"
            self.arrays[name] = np.asarray(array)
            dims = np.shape(array) if case.fixed else [f"{name}_{axis}" for axis in range(np.ndim(array))]
            return self.graph.add_input(pf.DataType.of(array.dtype), dims, name)

        args = [mapped(value, to_input) for value in case.args]
        named = {key: mapped(value, to_input) for key, value in case.named.items()}
        self.outputs.append(flat(call(*args, **named)))

    def run(self, backend: str, ctx: Any = None) -> list[list[Array]]:
        """The arrays that each call gives, whose shapes and dtypes are as announced."""
        model = self.graph.compile(*(tensor for outputs in self.outputs for tensor in outputs))
        with pf.Worker(model, backend, ctx) as worker:
            worker.schedule(self.arrays)
            arrays = iter([worker.peek_output(value.name).download_to_array() for value in model.outputs])
        results = [[next(arrays) for _ in outputs] for outputs in self.outputs]
        for outputs, made in zip(self.outputs, results, strict=True):
            for tensor, array in zip(outputs, made, strict=True):
                assert tensor.dtype == pf.DataType.of(array.dtype), tensor
                assert len(tensor.shape) == array.ndim and tensor.shape.may_be(array.shape), (tensor, array.shape)
        return results


def run(cases: Sequence[tuple[str, Case]] | Mapping[str, Case], backend: str, ctx: Any = None) -> list[list[Array]]:
    """The results of calls on a backend."""
    calls = Calls()
    for name, case in cases.items() if isinstance(cases, Mapping) else cases:
        calls.add(name, case)
    return calls.run(backend, ctx)
