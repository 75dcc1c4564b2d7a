"""Layers that change a carried state: they need not write what the state's storage holds already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from perframe.backends.operand import Operand
from perframe.backends.protocol import Backend
from perframe.ir import Layer, Subgraph, Value
from perframe.ir.form import Replacing
from perframe.plan.analysis import Analysis

Describe = Callable[[Value], Operand]


class Carried(NamedTuple):
    """The carried outputs, and the inputs that read them in the next run: of states that grow, and of the others."""

    grown: Mapping[str, str]
    fixed: Mapping[str, str]

    def appends(
        self, layers: Sequence[Layer], backends: Sequence[Backend], inputs: Sequence[Value], describe: Describe
    ) -> Iterator[tuple[Value, Value, Backend]]:
        """Yield each input at the begin of an output that is this input with more appended, that output, and the
        backend that appends.
        """
        for layer, backend in zip(layers, backends, strict=True):
            source = self.grown.get(layer.results[0].name) if layer.declaration.joins and layer.results else None
            given = layer.inputs[0] if source is not None else None
            if given is None or given.name != source or given not in inputs or layer.epilogue:
                continue
            form = layer.form([describe(value) for value in layer.operands], [describe(layer.output)])
            if form.outer == 1 and backend.extends(form.runs):
                yield given, layer.output, backend

    def replacements(
        self, model: Subgraph, analysis: Analysis, backends: Mapping[Layer, Backend], describe: Describe
    ) -> Iterator[tuple[Layer, str, int]]:
        """Yield each layer that replaces rows of a state, the state's output, and the number of these rows. The input
        may reach the layer, and the layer's result the output, through layers that change nothing but the shape.
        """
        makers = {layer.outputs[0]: layer for layer in backends if layer.outputs} if self.fixed else {}
        earlier = set[Value]()
        for value in model.outputs:
            root, source = analysis.root(value), self.fixed.get(value.name)
            layer = None if root in earlier or analysis.known[value].is_known else makers.get(root)
            earlier.add(root)
            given = None if source is None or layer is None or not layer.inputs else layer.inputs[0]
            if given is None or layer is None or layer.epilogue or layer.declaration.form_of is None:
                continue
            data = analysis.root(given)
            if data.name == source and data in model.inputs:
                known = [None if one is None else describe(one) for one in layer.inputs]
                made = [describe(layer.output)]
                form = layer.form(known, made)
                count = form.replaced if isinstance(form, Replacing) else None
                if count and made[0].shape.size and backends[layer].replaces(layer, known, made):
                    yield layer, value.name, count
