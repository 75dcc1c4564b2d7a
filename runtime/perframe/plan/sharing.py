"""Values that lie within other values: the parts of a join and the pieces of a cut need no copies.

A kernel writes a part of a join straight into its range of the output, and reads a piece of a cut in the input. Such a
value has (outer, own) elements within (outer, total) elements. If `outer` is 1, the value is a range of the other's
storage, and any kernel can write and read it. Otherwise its rows have gaps between them, and all kernels that write or
read it must take gaps. A layer may also overwrite a value that it is the last to read, if its kernel reads no element
after it has written there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from perframe.backends.operand import Operand, StorageRange
from perframe.backends.protocol import Placing
from perframe.layers.geometry import collapse
from perframe.model import Layer
from perframe.plan.inferred import Outline
from perframe.tensor import DataType


class Sharing:
    """Decides which values of a plan lie within others.

    `within` maps a value to the range of another value's storage in which it lies, and `wholes` are the values that
    contain others. `ends` lists for each layer the values that no later layer reads, as the outline's `ends` does; a
    whole ends with the last value in it. The values in `fixed` must have separate storage, as outputs do.
    """

    def __init__(self, outline: Outline, backend: Placing, describe: Callable[[str], Operand], fixed: set[str]) -> None:
        self.within: dict[str, StorageRange] = {}
        self.wholes: set[str] = set()
        self.ends = outline.ends
        joins = [layer for layer in outline.layers if layer.declaration.joins and not layer.epilogue]
        cuts = [layer for layer in outline.layers if layer.declaration.cuts and not layer.epilogue]
        self._outline, self._backend, self._describe, self._fixed = outline, backend, describe, fixed
        self._makers = {name: layer for layer in outline.layers for name in layer.outputs if name}
        self._readers: dict[str, list[Layer]] = {}
        for layer in outline.layers:
            for name in {*layer.inputs}:
                self._readers.setdefault(name, []).append(layer)
        self._able: dict[int, frozenset[str]] = {}
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
        out = layer.outputs[0]
        described = [self._describe(name) for name in layer.inputs]
        form = layer.form(described, [self._describe(out)])
        parts = list(self._parts(layer, form.runs))
        if not form.outer or not parts or DataType.STRING is described[0].dtype:
            return
        total = sum(form.runs)
        if out not in self.within and out not in self._fixed:
            self._follow_parts(out, parts, form.outer, total)
        names = [name for name, _, _ in parts]
        for name, first, run in parts:
            if names.count(name) == 1:
                self._put(name, out, first, run, form.outer, total)

    def _parts(self, layer: Layer, runs: Sequence[int]) -> Iterator[tuple[str, int, int]]:
        """Yield (value, first element of a row, elements in a row) for each part that has elements."""
        first = 0
        for name, run in zip(layer.inputs, runs, strict=True):
            if run:
                yield self._outline.root(name), first, run
            first += run

    def _follow_parts(self, out: str, parts: Sequence[tuple[str, int, int]], outer: int, total: int) -> None:
        """Place a join within a wider join if all its parts already lie there next to each other."""
        at = self.within.get(parts[0][0])
        if at is None or (outer > 1 and not self._may_have_gaps(out, total)):
            return
        for name, first, _ in parts:
            if self.within.get(name) != StorageRange(
                at.whole, at.first + first, at.pitch if outer > 1 else self._row(name)
            ):
                return
        self.within[out] = StorageRange(at.whole, at.first, at.pitch if outer > 1 else self._row(out))

    # --- cuts ---

    def _cut(self, layer: Layer) -> None:
        source = self._outline.root(layer.inputs[0])
        if source not in self._makers:  # an input's storage may change with every run
            return
        given = [self._describe(name) if name else None for name in layer.inputs]
        made = [self._describe(name) for name in layer.outputs]
        x = given[0]
        assert x is not None
        for y, view in zip(made, layer.form(given, made), strict=True):
            if not y.shape.size or y.dtype is DataType.STRING or y.name in self._fixed:
                continue
            if view.is_copy:
                self._put(y.name, source, view.offset, y.shape.size, 1, x.shape.size)
                continue
            dims, (strides,) = collapse(view.shape, (view.strides,))
            if len(dims) == 2 and strides == (x.shape[-1], 1) and layer.inputs[0] == source:
                self._put(y.name, source, view.offset, dims[1], dims[0], x.shape[-1])

    # --- both ---

    def _put(self, name: str, whole: str, first: int, own: int, outer: int, total: int) -> None:
        """Place a value within another, if that is possible."""
        if name in self.within or name in self._fixed or name not in self._makers:
            return
        row = self._row(whole)
        at = self.within.get(whole, StorageRange(whole, 0, row))
        begin = at.first + first // row * at.pitch + first % row
        if outer == 1 and at.pitch == row:
            self.within[name] = StorageRange(at.whole, begin, self._row(name))
        elif outer > 1 and total == row and self._may_have_gaps(name, own):
            self.within[name] = StorageRange(at.whole, begin, at.pitch)

    def _may_have_gaps(self, name: str, own: int) -> bool:
        """Whether a value's rows have `own` elements, and all layers that write or read it take gaps between rows."""
        layers = [self._makers[name], *self._readers.get(name, ())]
        return self._row(name) == own and all(name in self._takes_gaps(layer) for layer in layers)

    def _takes_gaps(self, layer: Layer) -> frozenset[str]:
        able = self._able.get(id(layer))
        if able is None:
            able = frozenset()
            if not self._outline.is_alias(layer) and not layer.declaration.on_host:
                given = [self._describe(name) if name else None for name in layer.inputs]
                able = self._backend.takes_gaps(layer, given, [self._describe(name) for name in layer.outputs])
            self._able[id(layer)] = able
        return able

    def _row(self, name: str) -> int:
        shape = self._outline.shape(name)
        return shape[-1] if shape else 1

    def _overwrite(self) -> None:
        """Let layers overwrite values that they are the last to read."""
        settled = self._fixed | {name for part, within in self.within.items() for name in (part, within.whole)}
        over: dict[str, str] = {}
        for layer, ends in zip(self._outline.layers, self._outline.ends, strict=True):
            at = self._backend.overwrites(layer) if ends else None
            if at is None or at >= len(layer.inputs):
                continue
            out, roots = layer.outputs[0], [self._outline.root(name) for name in layer.inputs]
            old = roots[at]
            free = old in ends and old in self._makers and roots.count(old) == 1
            if free and settled.isdisjoint((old, out)) and self._alike(old, out):
                over[out] = over.get(old, old)
                self.within[out] = StorageRange(over[out], 0, self._row(out))

    def _alike(self, name: str, other: str) -> bool:
        known, outline = self._outline.known, self._outline
        return outline.shape(name).size == outline.shape(other).size and known[name].dtype is known[other].dtype

    def _last_uses(self) -> list[list[str]]:
        last: dict[str, int] = {}
        for index, names in enumerate(self._outline.ends):
            for name in names:
                within = self.within.get(name)
                last[within.whole if within else name] = index
        ends: list[list[str]] = [[] for _ in self._outline.ends]
        for name, index in last.items():
            ends[index].append(name)
        return ends
