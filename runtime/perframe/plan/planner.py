"""Planning: decide where each layer runs, give every value storage, and lower every layer to bound steps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from perframe.backends.operand import Make, Operand, StorageRange
from perframe.backends.protocol import Backend, Placing, Step, Workspace
from perframe.errors import FallbackError
from perframe.ir import Layer, Subgraph, Value
from perframe.ir.sizes.partial import PartialTensor
from perframe.plan.analysis import Analysis, wide_layers_on_host
from perframe.plan.carrying import Carried
from perframe.plan.constants import ConstantPool
from perframe.plan.plan import Fallback, Plan
from perframe.plan.segments import Segment, Transfer
from perframe.plan.sharing import Placed, Sharing, kept_apart
from perframe.tensor import Array, DataType, Storage, Tensor
from perframe.tensor.background import take_turns

log = logging.getLogger("perframe")

MOST_SIZES = 8  # of a trace, that steps write as the values of a tensor; more are tied to their values

_reported: set[tuple[str, str]] = set()


class Planner:
    """Makes the plan of one analysis."""

    def __init__(
        self,
        model: Subgraph,
        backend: Backend,
        host: Backend,
        constants: ConstantPool,
        analysis: Analysis,
        strict: bool,
        at: Callable[[str], None] | None,
        carried: Carried,
    ) -> None:
        """`at` is called with the name of each layer before the layer is lowered. Outputs that are `carried` may lie
        where earlier runs wrote them.
        """
        self._carried, self._extended = carried, set[Value]()
        self._replacing = dict[Layer, tuple[str, Operand]]()  # the states' outputs, and the numbers of replaced rows
        self._model, self._backend, self._host, self._strict = model, backend, host, strict
        self._constants, self._analysis, self._root, self._at = constants, analysis, analysis.root, at
        self._operands: dict[tuple[Value, str], Operand] = {}
        self._workspaces: dict[str, Workspace] = {
            where.backend_type: where.workspace() for where in ([host] if backend is host else [host, backend])
        }
        self._segments: list[Segment | Transfer] = []
        self._inputs: list[tuple[Operand, Backend]] = []
        self._owned, self._live = list[Storage](), list[tuple[str, int]]()
        self._fallbacks: list[Fallback] = []
        self._host_layers: frozenset[Layer] = frozenset()
        self.made: Plan  # after the last step of `advance`

    def plan(self) -> Plan:
        """Make the plan. With `strict`, raises FallbackError for a layer that cannot run on the backend."""
        for _ in self.advance():
            pass
        return self.made

    def advance(self) -> Iterator[str]:
        """Make the plan layer by layer, and yield the name of each layer. At the end, `made` is the plan."""
        try:
            yield from self._advance()
        except BaseException:  # GeneratorExit too: the caller may give the iterator up
            owners: list[Workspace | Storage] = [*self._workspaces.values(), *self._owned]
            for owner in owners:
                owner.release()
            raise

    def _advance(self) -> Iterator[str]:
        model, layers = self._model, self._analysis.layers
        if self._backend is not self._host:
            self._host_layers = wide_layers_on_host(layers, self._analysis, model.inputs)
        backends = list[Backend]()
        for layer in layers:
            backends.append(self._choose(layer))
            yield layer.name
        crossed = () if self._backend is self._host else backends
        self._keeps = kept_apart(self._analysis, model.outputs, crossed)
        self._placing = self._backend if isinstance(self._backend, Placing) else None
        self._sharing = None
        if self._placing is not None:
            self._sharing = Sharing(
                self._analysis, self._placing, self._described, self._described_outputs, self._keeps
            )
        self._ends = self._analysis.ends if self._sharing is None else self._sharing.ends
        begins = dict(self._extensions(layers, backends))
        self._replacing = dict(self._replacements(dict(zip(layers, backends, strict=True))))
        for value in model.inputs:
            reader = self._reader(value, layers, backends)
            self._inputs.append((begins.get(value) or self._lasting(value, reader), reader))
        for index, (layer, backend) in enumerate(zip(layers, backends, strict=True)):
            self._lower(index, layer, backend)
            yield layer.name
        outputs = {value.name: self._output(at) for at, value in enumerate(model.outputs)}
        for _, rows in self._replacing.values():
            outputs[rows.name] = Tensor.over(rows.storage, rows.shape, rows.dtype, rows.name)
        self.made = self._finished(outputs)

    # --- storage ---

    def _lasting(self, value: Value, backend: Backend) -> Operand:
        """Make an operand whose storage no other value uses; its first use allocates the storage."""
        operand = self._operands[value, backend.backend_type] = self._separate(value, value.name, backend)
        return operand

    def _extensions(self, layers: Sequence[Layer], backends: Sequence[Backend]) -> Iterator[tuple[Value, Operand]]:
        """Yield each input at the begin of an output that is this input with more appended, and its operand."""
        found = self._carried.appends(layers, backends, self._model.inputs, self._described)
        for given, out, backend in found:
            shape, dtype = self._analysis.shape(given), self._analysis.known[given].dtype
            whole = self._lasting(out, backend)
            at = StorageRange(out.name, 0, shape[-1] if shape else 1)
            made = Operand(given.name, shape, dtype, storage=whole.storage, part=at)
            self._operands[given, backend.backend_type] = made
            self._extended.add(out)
            yield given, made

    def _replacements(self, backends: Mapping[Layer, Backend]) -> Iterator[tuple[Layer, tuple[str, Operand]]]:
        """Yield each layer that replaces rows of a state, the state's output, and an operand for the rows' numbers."""
        mine = {layer: backend for layer, backend in backends.items() if backend is self._backend}
        for layer, name, count in self._carried.replacements(self._model, self._analysis, mine, self._described):
            storage = self._backend.alloc((count,), DataType.INT64)
            self._owned.append(storage)
            yield layer, (name, Operand(f"rows of {name}", (count,), DataType.INT64, storage=storage))

    def _separate(self, value: Value, name: str, backend: Backend) -> Operand:
        """Return an operand like a value, with storage of its own."""
        spec, shape = self._analysis.known[value], self._analysis.shape(value)

        def make() -> Storage:
            storage = backend.alloc(shape, spec.dtype)
            self._owned.append(storage)
            return storage

        sizes = spec.ints() if spec.value is None else None  # of an input that decides shapes
        values = spec.value if sizes is None else spec.specialized_value
        return Operand(name, shape, spec.dtype, values, make, sizes=sizes)

    def _shared(self, value: Value, backend: Backend) -> Operand:
        """Make an operand whose storage lies in the workspace."""
        dtype, shape = self._analysis.known[value].dtype, self._analysis.shape(value)
        storage = self._workspaces[backend.backend_type].take(shape, dtype, value.is_half is True)
        operand = Operand(value.name, shape, dtype, storage=storage)
        self._operands[value, backend.backend_type] = operand
        return operand

    def _made(self, value: Value, backend: Backend) -> Operand:
        """Return the operand of a layer's output. It lies within another value, or has its own storage, in which other
        values may lie already.
        """
        if value in self._extended:
            return self._operands[value, backend.backend_type]
        if self._sharing is not None:
            within = self._sharing.within.get(value)
            if within is not None:
                return self._part(value, within, backend)
            found = self._operands.get((value, backend.backend_type)) if value in self._sharing.wholes else None
            if found is not None:
                return found
        return self._lasting(value, backend) if value in self._keeps else self._shared(value, backend)

    def _part(self, value: Value, within: Placed, backend: Backend) -> Operand:
        """Make the operand of a value that lies within another. The first such value allocates the whole storage."""
        key = (within.whole, backend.backend_type)
        whole = self._operands[key] if key in self._operands else self._made(within.whole, backend)
        dtype, shape = self._analysis.known[value].dtype, self._analysis.shape(value)
        assert self._placing is not None
        storage = self._placing.part(whole.storage, within.range, shape, dtype)
        operand = Operand(value.name, shape, dtype, storage=storage, part=within.range)
        self._operands[value, backend.backend_type] = operand
        return operand

    def _operand(self, value: Value, backend: Backend) -> Operand:
        """Return the operand of a value on a backend: one made before, a constant, an alias, or the target of a
        transfer.
        """
        key = (value, backend.backend_type)
        found = self._operands.get(key)
        if found is not None:
            return found
        name, spec, shape = value.name, self._analysis.known[value], self._analysis.shape(value)
        constant = spec.value
        if constant is None and spec.is_known:  # followed numbers: reading them would tie the trace to them
            make = partial(self._sizes, backend, value, spec)
            made = Operand(name, shape, spec.dtype, spec.specialized_value, make, sizes=spec.ints())
        elif constant is not None:
            array = constant

            def derive(kind: str, make: Make) -> Operand:
                return self._derived(backend, value, array, kind, make)

            made = Operand(name, shape, spec.dtype, array, lambda: self._constant(backend, value, array), derive)
        elif value in self._analysis.roots:
            root = self._operand(self._root(value), backend)
            whole, first = (root.name, 0) if root.part is None else (root.part.whole, root.part.first)
            at = StorageRange(whole, first, shape[-1] if shape else 1)
            made = Operand(name, shape, spec.dtype, None, lambda: root.storage, part=at)
        else:
            made = self._transfer(value, backend)
        self._operands[key] = made
        return made

    def _sizes(self, backend: Backend, value: Value, spec: PartialTensor) -> Storage:
        """Return storage into which a step writes sizes of a trace, or their values where no step can."""
        numbers = spec.ints()
        if numbers is None or len(numbers) > MOST_SIZES or spec.dtype not in (DataType.INT32, DataType.INT64):
            return self._constant(backend, value, spec.specialized_value())
        shape = self._analysis.shape(value)
        storage = self._workspaces[backend.backend_type].take(shape, spec.dtype)
        layer = Layer("SizeValues", f"sizes of {value.name}", [Value("sizes")], [Value("values")])
        known = partial(self._constant, backend, value)
        given = Operand(
            "", shape, spec.dtype, spec.specialized_value, lambda: known(spec.specialized_value()), sizes=numbers
        )
        made = Operand("", shape, spec.dtype, storage=storage)
        self._append(backend, backend.lower(layer, [given], [made], self._no_scratch), layer.name)
        return storage

    def _constant(self, backend: Backend, value: Value, array: Array) -> Storage:
        storage = self._constants.storage(backend, value, array)
        if value.constant is None:
            self._owned.append(storage)
        return storage

    def _derived(self, backend: Backend, value: Value, array: Array, kind: str, make: Make) -> Operand:
        """Return the operand derived from a constant. All plans of the worker share it if the constant is the model's;
        otherwise the plan owns it.
        """
        operand = self._constants.derived(backend, value, array, kind, make)
        if value.constant is None:
            self._owned.append(operand.storage)
        return operand

    def _transfer(self, value: Value, backend: Backend) -> Operand:
        other = self._host if backend is self._backend else self._backend
        source = self._operands[value, other.backend_type]
        target = self._lasting(value, backend)
        self._segments.append(Transfer(value.name, source, target, self._backend))
        return target

    # --- steps ---

    def _choose(self, layer: Layer) -> Backend:
        """Choose the backend of a layer: the plan's, unless the layer is shape arithmetic or the backend refuses it."""
        if layer.on_host or layer in self._host_layers:
            return self._host
        if self._backend is self._host or self._analysis.is_alias(layer):
            return self._backend
        inputs = [None if value is None else self._described(value) for value in layer.inputs]
        reason = self._backend.supports(layer, inputs, self._described_outputs(layer))
        if reason is None:
            return self._backend
        self._fall_back(layer, reason)
        return self._host

    def _reader(self, value: Value, layers: Sequence[Layer], backends: Sequence[Backend]) -> Backend:
        """Choose where to upload a model's input: to the backend if any layer reads it there, else to the host. Where
        both read it, the host has it first, for to read it back would wait.
        """
        if any(layer in self._host_layers and value in map(self._root, layer.operands) for layer in layers):
            return self._host
        for layer, backend in zip(layers, backends, strict=True):
            reads = value in map(self._root, layer.operands)
            if reads and backend is self._backend and not self._analysis.is_alias(layer):
                return self._backend
        return self._host

    def _lower(self, index: int, layer: Layer, backend: Backend) -> None:
        """Give a layer's outputs storage and bind its steps."""
        take_turns()
        if self._at is not None:
            self._at(layer.name)
        if not self._analysis.is_alias(layer):
            workspace = self._workspaces[backend.backend_type]
            given = [None if value is None else self._operand(value, backend) for value in layer.inputs]
            made = self._outputs_of(layer, backend)

            def scratch(shape: Sequence[int], dtype: DataType) -> Operand:
                return Operand("", shape, dtype, storage=workspace.scratch(shape, dtype))

            self._append(backend, backend.lower(layer, given, made, scratch), layer.name)
            self._live.append((layer.name, workspace.used))
            workspace.end_layer()
        self._give_back_after(index)

    def _outputs_of(self, layer: Layer, backend: Backend) -> list[Operand]:
        """Return the operands of a layer's outputs. One that it leaves out has no name, and memory for this layer."""
        made = list[Operand]()
        for index, value in enumerate(layer.outputs):
            if value is None:
                described = self._described_unused(layer, index)
                storage = self._workspaces[backend.backend_type].scratch(described.shape, described.dtype)
                made.append(Operand("", described.shape, described.dtype, storage=storage))
            else:
                made.append(self._made(value, backend))
        if layer in self._replacing:
            made.append(self._replacing[layer][1])
        return made

    def _described_outputs(self, layer: Layer) -> list[Operand]:
        """Describe all outputs of a layer by operands without storage."""
        return [
            self._described_unused(layer, index) if value is None else self._described(value)
            for index, value in enumerate(layer.outputs)
        ]

    def _described_unused(self, layer: Layer, index: int) -> Operand:
        spec = self._analysis.unused[layer, index]
        assert spec.shape is not None
        return Operand("", spec.shape.to_shape(), spec.dtype)

    def _described(self, value: Value) -> Operand:
        """Describe a value by an operand without storage."""
        spec = self._analysis.known[value]
        return Operand(value.name, self._analysis.shape(value), spec.dtype, spec.value)

    def _fall_back(self, layer: Layer, reason: str) -> None:
        where = self._backend.backend_type
        if self._strict:
            raise FallbackError(
                f"layer {layer.name!r} ({layer.op}) cannot run on {where}: {reason}; without strict it runs on the CPU"
            )
        size = sum(self._analysis.shape(value).size for value in layer.results)
        self._fallbacks.append(Fallback(layer.name, layer.op, reason, size))
        if (layer.name, where) not in _reported:
            _reported.add((layer.name, where))
            told = "layer %r (%s) runs on the CPU instead of %s: %s; the frame waits while its %d elements cross over"
            log.warning(told, layer.name, layer.op, where, reason, size)

    def _append(self, backend: Backend, steps: Sequence[Step], layer: str) -> None:
        last = self._segments[-1] if self._segments else None
        if not isinstance(last, Segment) or last.backend is not backend:
            last = Segment(backend)
            self._segments.append(last)
        last.steps += steps
        last.layers += [layer] * len(steps)

    def _give_back_after(self, index: int) -> None:
        """Give back the storage of the values that this layer is the last to use."""
        for value in self._ends[index]:
            for backend_type, workspace in self._workspaces.items():
                operand = self._operands.get((value, backend_type))
                if operand is not None and operand.has_storage:
                    workspace.give_back(operand.storage)

    def _output(self, index: int) -> Tensor:
        """Return the tensor of an output, in its own storage. Data of an input or a constant is copied there."""
        value = self._model.outputs[index]
        spec, shape, root = self._analysis.known[value], self._analysis.shape(value), self._root(value)
        earlier = map(self._root, self._model.outputs[:index])
        if spec.is_known or root in self._model.inputs or root in earlier:
            copy = Layer("Copy", f"copy of {value.name}", [Value(value.name)], [Value(value.name)])
            plain = Operand(value.name, shape, spec.dtype, spec.value)  # its numbers may not be for this backend
            where = self._backend if self._backend.supports(copy, [plain], [plain]) is None else self._host
            target = self._separate(value, f"{value.name}:output", where)
            if shape.size:
                steps = where.lower(copy, [self._operand(value, where)], [target], self._no_scratch)
                self._append(where, steps, copy.name)
        else:
            where = self._backend if (root, self._backend.backend_type) in self._operands else self._host
            target = self._operand(value, where)
        return Tensor.over(target.storage, shape, spec.dtype, value.name)

    def _no_scratch(self, shape: Sequence[int], dtype: DataType) -> Operand:
        raise AssertionError("a copy needs no scratch")

    def _finished(self, outputs: dict[str, Tensor]) -> Plan:
        """Make the programs, note the storages that they share (inputs, outputs, and values that cross to another
        backend), and return the plan.
        """
        workspaces = list(self._workspaces.values())
        for workspace in workspaces:
            workspace.end_plan()
        bound = [operand.storage for operand, _ in self._inputs if operand.has_storage]
        own = [operand.storage for operand, _ in self._inputs if operand.has_storage and operand.part is None]
        shared = [tensor.data_on_backend for tensor in outputs.values()]
        shared += [segment.source for segment in self._segments if isinstance(segment, Transfer)]
        for segment in self._segments:
            if isinstance(segment, Segment):
                where = segment.backend.backend_type
                segment.program = segment.backend.program(segment.steps)
                segment.access.reads = bound
                segment.access.writes = [s for s in shared if s.backend_type == where and s not in own]
        plan = Plan(self._segments, self._inputs, outputs, self._owned, workspaces, lambda: self._live)
        plan.fallbacks = self._fallbacks
        plan.replaced = {name: rows.name for name, rows in self._replacing.values()}
        return plan
