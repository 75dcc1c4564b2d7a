"""Values that lie within other values: the parts of a join and the slices of a cut need no copies.

A kernel writes a part of a join straight into its range of the output, and reads a slice of a cut in the input. Such a
value has (outer, own) elements within (outer, total) elements. If `outer` is 1, the value is a range of the other's
storage, and any kernel can write and read it. Otherwise its rows have gaps between them, and all kernels that write or
read it must take gaps. A layer may also overwrite a value that it is the last to read, if its kernel reads no element
after it has written there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from perframe.backends.operand import Operand, StorageRange
from perframe.backends.protocol import Backend, Placing
from perframe.ir import Layer, Value
from perframe.ir.geometry import collapse
from perframe.plan.analysis import Analysis
from perframe.tensor import DataType


class Placed(NamedTuple):
    """The elements that a value takes within another value: from `first` on, with rows `pitch` apart."""

    whole: Value
    first: int
    pitch: int

    @property
    def range(self) -> StorageRange:
        """These elements, for an operand."""
        return StorageRange(self.whole.name, self.first, self.pitch)


class Sharing:
    """Decides which values of a plan lie within others.

    `within` maps a value to the range of another value's storage in which it lies, and `wholes` are the values that
    contain others. `ends` lists for each layer the values that no later layer reads, as the analysis's `ends` does; a
    whole ends with the last value in it. The values in `fixed` must have separate storage, as outputs do.
    """

    def __init__(
        self,
        analysis: Analysis,
        backend: Placing,
        describe: Callable[[Value], Operand],
        describe_outputs: Callable[[Layer], list[Operand]],
        fixed: set[Value],
    ) -> None:
        self.within: dict[Value, Placed] = {}
        self.wholes: set[Value] = set()
        self.ends = analysis.ends
        joins = [layer for layer in analysis.layers if layer.declaration.joins and not layer.epilogue]
        cuts = [layer for layer in analysis.layers if layer.declaration.cuts and not layer.epilogue]
        self._analysis, self._backend, self._fixed = analysis, backend, fixed
        self._describe, self._describe_outputs = describe, describe_outputs
        self._makers = {value: layer for layer in analysis.layers for value in layer.results}
        self._readers: dict[Value, list[Layer]] = {}
        for layer in analysis.layers:
            for value in dict.fromkeys(layer.operands):
                self._readers.setdefault(value, []).append(layer)
        self._able: dict[Layer, frozenset[str]] = {}
        for layer in reversed(joins):  # the widest join first, since the joins that it joins lie in it
            self._join(layer)
        for layer in cuts:
            self._cut(layer)
        self._overwrite()
        if self.within:
            self.wholes = {part.whole for part in self.within.values()}
            self.ends = self._last_uses()

    # --- joins ---

    def _join(self, layer: Layer) -> None:
        out = layer.output
        described = [self._describe(value) for value in layer.operands]
        form = layer.form(described, [self._describe(out)])
        parts = list(self._parts(layer, form.runs))
        if not form.outer or not parts or DataType.STRING is described[0].dtype:
            return
        total = sum(form.runs)
        if out not in self.within and out not in self._fixed:
            self._follow_parts(out, parts, form.outer, total)
        values = [value for value, _, _ in parts]
        for value, first, run in parts:
            if values.count(value) == 1:
                self._put(value, out, first, run, form.outer, total)

    def _parts(self, layer: Layer, runs: Sequence[int]) -> Iterator[tuple[Value, int, int]]:
        """Yield (value, first element of a row, elements in a row) for each part that has elements."""
        first = 0
        for value, run in zip(layer.operands, runs, strict=True):
            if run:
                yield self._analysis.root(value), first, run
            first += run

    def _follow_parts(self, out: Value, parts: Sequence[tuple[Value, int, int]], outer: int, total: int) -> None:
        """Place a join within a wider join if all its parts already lie there next to each other."""
        at = self.within.get(parts[0][0])
        if at is None or (outer > 1 and not self._may_have_gaps(out, total)):
            return
        for value, first, _ in parts:
            if self.within.get(value) != Placed(
                at.whole, at.first + first, at.pitch if outer > 1 else self._row(value)
            ):
                return
        self.within[out] = Placed(at.whole, at.first, at.pitch if outer > 1 else self._row(out))

    # --- cuts ---

    def _cut(self, layer: Layer) -> None:
        source = self._analysis.root(layer.input(0))
        if source not in self._makers:  # an input's storage may change with every run
            return
        given = [None if value is None else self._describe(value) for value in layer.inputs]
        made = self._describe_outputs(layer)
        x = given[0]
        assert x is not None
        for value, y, view in zip(layer.outputs, made, layer.form(given, made), strict=True):
            if value is None or not y.shape.size or y.dtype is DataType.STRING or value in self._fixed:
                continue
            if view.is_copy:
                self._put(value, source, view.offset, y.shape.size, 1, x.shape.size)
                continue
            dims, (strides,) = collapse(view.shape, (view.strides,))
            if len(dims) == 2 and strides == (x.shape[-1], 1) and layer.inputs[0] is source:
                self._put(value, source, view.offset, dims[1], dims[0], x.shape[-1])

    # --- both ---

    def _put(self, value: Value, whole: Value, first: int, own: int, outer: int, total: int) -> None:
        """Place a value within another, if that is possible."""
        if value in self.within or value in self._fixed or value not in self._makers:
            return
        row = self._row(whole)
        at = self.within.get(whole, Placed(whole, 0, row))
        begin = at.first + first // row * at.pitch + first % row
        if outer == 1 and at.pitch == row:
            self.within[value] = Placed(at.whole, begin, self._row(value))
        elif outer > 1 and total == row and self._may_have_gaps(value, own):
            self.within[value] = Placed(at.whole, begin, at.pitch)

    def _may_have_gaps(self, value: Value, own: int) -> bool:
        """Whether a value's rows have `own` elements, and all layers that write or read it take gaps between rows."""
        layers = [self._makers[value], *self._readers.get(value, ())]
        return self._row(value) == own and all(value.name in self._takes_gaps(layer) for layer in layers)

    def _takes_gaps(self, layer: Layer) -> frozenset[str]:
        able = self._able.get(layer)
        if able is None:
            able = frozenset()
            if not self._analysis.is_alias(layer) and not layer.declaration.on_host:
                given = [None if value is None else self._describe(value) for value in layer.inputs]
                able = self._backend.takes_gaps(layer, given, self._describe_outputs(layer))
            self._able[layer] = able
        return able

    def _row(self, value: Value) -> int:
        shape = self._analysis.shape(value)
        return shape[-1] if shape else 1

    def _overwrite(self) -> None:
        """Let layers overwrite values that they are the last to read."""
        placed = self._fixed | {value for part, within in self.within.items() for value in (part, within.whole)}
        over: dict[Value, Value] = {}
        for layer, ends in zip(self._analysis.layers, self._analysis.ends, strict=True):
            at = self._backend.overwrites(layer) if ends else None
            if at is None or at >= len(layer.inputs):
                continue
            out, roots = layer.output, [None if v is None else self._analysis.root(v) for v in layer.inputs]
            old = roots[at]
            free = old is not None and old in ends and old in self._makers and roots.count(old) == 1
            if old is not None and free and placed.isdisjoint((old, out)) and self._alike(old, out):
                over[out] = over.get(old, old)
                self.within[out] = Placed(over[out], 0, self._row(out))

    def _alike(self, value: Value, other: Value) -> bool:
        known, analysis = self._analysis.known, self._analysis
        return analysis.shape(value).size == analysis.shape(other).size and known[value].dtype is known[other].dtype

    def _last_uses(self) -> list[list[Value]]:
        last: dict[Value, int] = {}
        for index, values in enumerate(self._analysis.ends):
            for value in values:
                within = self.within.get(value)
                last[within.whole if within else value] = index
        ends: list[list[Value]] = [[] for _ in self._analysis.ends]
        for value, index in last.items():
            ends[index].append(value)
        return ends


def kept_apart(analysis: Analysis, outputs: Sequence[Value], backends: Sequence[Backend]) -> set[Value]:
    """Return the values whose storage no other value may use: outputs, and values that cross between backends. Without
    `backends`, those of the layers, no value crosses.
    """
    keeps, made = {*map(analysis.root, outputs), *outputs}, dict[Value, Backend]()
    for layer, backend in zip(analysis.layers, backends, strict=False):
        if not analysis.is_alias(layer):
            keeps.update(v for v in map(analysis.root, layer.operands) if made.get(v, backend) is not backend)
            made.update(dict.fromkeys(layer.results, backend))
    return keeps
