"""Planning: from an outline, decide where each layer runs, give every value storage (which later values reuse when no
layer reads the value any more), and lower every layer to bound steps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from numpy.typing import NDArray

from perframe.backends.operand import Make, Operand, StorageRange
from perframe.backends.protocol import Backend, Placing, Step, Workspace
from perframe.errors import FallbackError
from perframe.model import Layer, Model
from perframe.plan.constants import ConstantPool
from perframe.plan.inferred import Outline
from perframe.plan.placement import wide_layers_on_host
from perframe.plan.plan import Fallback, Plan
from perframe.plan.segments import Segment, Transfer
from perframe.plan.sharing import Sharing
from perframe.sizes.partial import PartialTensor
from perframe.tensor import DataType, Storage, Tensor

log = logging.getLogger("perframe")
Array = NDArray[Any]

_reported: set[tuple[str, str]] = set()


class Planner:
    """Makes the plan of one outline."""

    def __init__(
        self,
        model: Model,
        backend: Backend,
        host: Backend,
        constants: ConstantPool,
        outline: Outline,
        strict: bool,
        at: Callable[[str], None] | None = None,
    ) -> None:
        """`at` is called with the name of each layer before the layer is lowered."""
        self._model, self._backend, self._host, self._strict = model, backend, host, strict
        self._constants, self._outline, self._root, self._at = constants, outline, outline.root, at
        self._operands: dict[tuple[str, str], Operand] = {}
        self._workspaces: dict[str, Workspace] = {
            where.backend_type: where.workspace() for where in ([host] if backend is host else [host, backend])
        }
        self._owned: list[Storage] = []
        self._segments: list[Segment | Transfer] = []
        self._inputs: dict[str, Operand] = {}
        self._live: list[tuple[str, int]] = []
        self._fallbacks: list[Fallback] = []
        self._homes: dict[str, Backend] = {}
        self._host_layers: frozenset[int] = frozenset()
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
            for workspace in self._workspaces.values():
                workspace.release()
            raise

    def _advance(self) -> Iterator[str]:
        model, layers = self._model, self._outline.layers
        if self._backend is not self._host:
            self._host_layers = wide_layers_on_host(layers, self._outline, [value.name for value in model.inputs])
        backends = [self._choose(layer) for layer in layers]
        self._keeps = self._shared_beyond(layers, backends)
        self._placing = self._backend if isinstance(self._backend, Placing) else None
        self._sharing = None
        if self._placing is not None:
            self._sharing = Sharing(self._outline, self._placing, self._described, self._keeps)
        self._ends = self._outline.ends if self._sharing is None else self._sharing.ends
        for value in model.inputs:
            self._homes[value.name] = self._input_home(value.name, layers, backends)
            self._inputs[value.name] = self._lasting(value.name, self._homes[value.name])
        for index, (layer, backend) in enumerate(zip(layers, backends, strict=True)):
            self._lower(index, layer, backend)
            yield layer.name
        outputs = {name: self._output(name) for name in model.output_names}
        self.made = self._finished(outputs)

    # --- storage ---

    def _shared_beyond(self, layers: Sequence[Layer], backends: Sequence[Backend]) -> set[str]:
        """Return the values whose storage no other value may use: outputs, and values that cross between backends."""
        keeps = {self._root(name) for name in self._model.output_names} | set(self._model.output_names)
        if self._backend is self._host:
            return keeps
        made: dict[str, Backend] = {}
        for layer, backend in zip(layers, backends, strict=True):
            if not self._outline.is_alias(layer):
                keeps.update(name for name in map(self._root, layer.inputs) if made.get(name, backend) is not backend)
                made.update(dict.fromkeys(layer.outputs, backend))
        return keeps

    def _lasting(self, name: str, backend: Backend, of: str | None = None) -> Operand:
        """Make an operand whose storage no other value uses; its first use allocates the storage. `of` names the value
        in the operand if the operand has another name.
        """
        spec, shape = self._outline.known[of or name], self._outline.shape(of or name)

        def make() -> Storage:
            storage = backend.alloc(shape, spec.dtype)
            self._owned.append(storage)
            return storage

        operand = Operand(name, shape, spec.dtype, spec.value, make)
        self._operands[name, backend.backend_type] = operand
        return operand

    def _shared(self, name: str, backend: Backend) -> Operand:
        """Make an operand whose storage lies in the workspace."""
        dtype, shape = self._outline.known[name].dtype, self._outline.shape(name)
        operand = Operand(name, shape, dtype, storage=self._workspaces[backend.backend_type].take(shape, dtype))
        self._operands[name, backend.backend_type] = operand
        return operand

    def _made(self, name: str, backend: Backend) -> Operand:
        """Return the operand of a layer's output. It lies within another value, or has its own storage, in which other
        values may lie already.
        """
        if self._sharing is not None:
            within = self._sharing.within.get(name)
            if within is not None:
                return self._part(name, within, backend)
            found = self._operands.get((name, backend.backend_type)) if name in self._sharing.wholes else None
            if found is not None:
                return found
        return self._lasting(name, backend) if name in self._keeps else self._shared(name, backend)

    def _part(self, name: str, within: StorageRange, backend: Backend) -> Operand:
        """Make the operand of a value that lies within another. The first such value allocates the whole storage."""
        key = (within.whole, backend.backend_type)
        whole = self._operands[key] if key in self._operands else self._made(within.whole, backend)
        dtype, shape = self._outline.known[name].dtype, self._outline.shape(name)
        assert self._placing is not None
        storage = self._placing.part(whole.storage, within, shape, dtype)
        operand = self._operands[name, backend.backend_type] = Operand(name, shape, dtype, storage=storage, part=within)
        return operand

    def _operand(self, name: str, backend: Backend) -> Operand:
        """Return the operand of a value on a backend: one made before, a constant, an alias, or the target of a
        transfer.
        """
        key = (name, backend.backend_type)
        found = self._operands.get(key)
        if found is not None:
            return found
        spec, shape = self._outline.known[name], self._outline.shape(name)
        value = spec.value
        if value is None and spec.is_known:  # followed numbers: to read them here would tie the trace to their values
            make = partial(self._constant_of, backend, name, spec)
            made = Operand(name, shape, spec.dtype, spec.specialized_value, make)
        elif value is not None:
            constant = value

            def derive(kind: str, make: Make) -> Operand:
                return self._derived(backend, name, constant, kind, make)

            made = Operand(name, shape, spec.dtype, value, lambda: self._constant(backend, name, constant), derive)
        elif name in self._outline.roots:
            root = self._operand(self._root(name), backend)
            whole, first = (root.name, 0) if root.part is None else (root.part.whole, root.part.first)
            at = StorageRange(whole, first, shape[-1] if shape else 1)
            made = Operand(name, shape, spec.dtype, None, lambda: root.storage, part=at)
        else:
            made = self._transfer(name, backend)
        self._operands[key] = made
        return made

    def _constant_of(self, backend: Backend, name: str, spec: PartialTensor) -> Storage:
        return self._constant(backend, name, spec.specialized_value())

    def _constant(self, backend: Backend, name: str, value: Array) -> Storage:
        storage = self._constants.storage(backend, name, value)
        if name not in self._model.constants:
            self._owned.append(storage)
        return storage

    def _derived(self, backend: Backend, name: str, value: Array, kind: str, make: Make) -> Operand:
        """Return the operand derived from a constant. All plans of the worker share it if the constant is the model's;
        otherwise the plan owns it.
        """
        operand = self._constants.derived(backend, name, value, kind, make)
        if name not in self._model.constants:
            self._owned.append(operand.storage)
        return operand

    def _transfer(self, name: str, backend: Backend) -> Operand:
        other = self._host if backend is self._backend else self._backend
        source = self._operands[name, other.backend_type]
        target = self._lasting(name, backend)
        self._segments.append(Transfer(name, source, target, self._backend))
        return target

    # --- steps ---

    def _choose(self, layer: Layer) -> Backend:
        """Choose the backend of a layer: the plan's, unless the layer is shape arithmetic or the backend refuses it."""
        if layer.on_host or id(layer) in self._host_layers:
            return self._host
        if self._backend is self._host or self._outline.is_alias(layer):
            return self._backend
        inputs = [self._described(name) if name else None for name in layer.inputs]
        reason = self._backend.supports(layer, inputs, [self._described(name) for name in layer.outputs])
        if reason is None:
            return self._backend
        self._fall_back(layer, reason)
        return self._host

    def _input_home(self, name: str, layers: Sequence[Layer], backends: Sequence[Backend]) -> Backend:
        """Choose where to upload a model's input: to the backend if any layer reads it there, else to the host. Where
        both read it, the host has it first, for to read it back would wait.
        """
        if any(id(layer) in self._host_layers and name in map(self._root, layer.inputs) for layer in layers):
            return self._host
        for layer, backend in zip(layers, backends, strict=True):
            reads = name in map(self._root, layer.inputs)
            if reads and backend is self._backend and not self._outline.is_alias(layer):
                return self._backend
        return self._host

    def _lower(self, index: int, layer: Layer, backend: Backend) -> None:
        """Give a layer's outputs storage and bind its steps."""
        if self._at is not None:
            self._at(layer.name)
        if not self._outline.is_alias(layer):
            workspace = self._workspaces[backend.backend_type]
            given = [self._operand(name, backend) if name else None for name in layer.inputs]
            made = [self._made(name, backend) for name in layer.outputs]

            def scratch(shape: Sequence[int], dtype: DataType) -> Operand:
                return Operand("", shape, dtype, storage=workspace.scratch(shape, dtype))

            self._append(backend, backend.lower(layer, given, made, scratch), layer.name)
            self._live.append((layer.name, workspace.used))
            workspace.end_layer()
        self._give_back_after(index)

    def _described(self, name: str) -> Operand:
        """Describe a value by an operand without storage.

        An unused output has an empty name, and its layer leaves it out.
        """
        spec = self._outline.known[name]
        return Operand(name, self._outline.shape(name), spec.dtype, spec.value)

    def _fall_back(self, layer: Layer, reason: str) -> None:
        where = self._backend.backend_type
        if self._strict:
            raise FallbackError(
                f"layer {layer.name!r} ({layer.op}) cannot run on {where}: {reason}; without strict it runs on the CPU"
            )
        size = sum(self._outline.shape(name).size for name in layer.outputs)
        self._fallbacks.append(Fallback(layer.name, layer.op, reason, size))
        if (layer.name, where) not in _reported:
            _reported.add((layer.name, where))
            log.warning(
                "layer %r (%s) runs on the CPU instead of %s: %s; the frame waits while its %d elements cross over",
                layer.name,
                layer.op,
                where,
                reason,
                size,
            )

    def _append(self, backend: Backend, steps: Sequence[Step], layer: str) -> None:
        last = self._segments[-1] if self._segments else None
        if not isinstance(last, Segment) or last.backend is not backend:
            last = Segment(backend)
            self._segments.append(last)
        last.steps += steps
        last.layers += [layer] * len(steps)

    def _give_back_after(self, index: int) -> None:
        """Give back the storage of the values that this layer is the last to use."""
        for name in self._ends[index]:
            for backend_type, workspace in self._workspaces.items():
                operand = self._operands.get((name, backend_type))
                if operand is not None and operand.has_storage:
                    workspace.give_back(operand.storage)

    def _output(self, name: str) -> Tensor:
        """Return the tensor of an output, in its own storage. Data of an input or a constant is copied there."""
        spec, shape, root = self._outline.known[name], self._outline.shape(name), self._root(name)
        if spec.is_known or root in self._inputs or self._outputs_share(root, name):
            copy = Layer("Copy", f"copy of {name}", [name], [name])
            plain = Operand(name, shape, spec.dtype, spec.value)  # its numbers may not be for this backend
            where = self._backend if self._backend.supports(copy, [plain], [plain]) is None else self._host
            target = self._lasting(f"{name}:output", where, name)
            if shape.size:
                steps = where.lower(copy, [self._operand(name, where)], [target], self._no_scratch)
                self._append(where, steps, copy.name)
        else:
            where = self._backend if (root, self._backend.backend_type) in self._operands else self._host
            target = self._operand(name, where)
        return Tensor.over(target.storage, shape, spec.dtype, name)

    def _outputs_share(self, root: str, name: str) -> bool:
        """Whether an earlier output of the model already owns this data."""
        names = self._model.output_names
        return root in map(self._root, names[: names.index(name)])

    def _no_scratch(self, shape: Sequence[int], dtype: DataType) -> Operand:
        raise AssertionError("a copy needs no scratch")

    def _finished(self, outputs: dict[str, Tensor]) -> Plan:
        """Make the programs, note the storages that they share (inputs, outputs, and values that cross to another
        backend), and return the plan.
        """
        workspaces = list(self._workspaces.values())
        for workspace in workspaces:
            workspace.end_plan()
        bound = [operand.storage for operand in self._inputs.values() if operand.has_storage]
        shared = [tensor.data_on_backend for tensor in outputs.values()]
        shared += [segment.source for segment in self._segments if isinstance(segment, Transfer)]
        for segment in self._segments:
            if isinstance(segment, Segment):
                where = segment.backend.backend_type
                segment.program = segment.backend.program(segment.steps)
                segment.access.reads = bound
                segment.access.writes = [s for s in shared if s.backend_type == where and s not in bound]
        plan = Plan(self._segments, self._inputs, self._homes, outputs, self._owned, workspaces, lambda: self._live)
        plan.fallbacks = self._fallbacks
        return plan
