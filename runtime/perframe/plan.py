"""A plan: a model made ready for one backend and one set of input shapes; a frame binds its inputs and runs it.

Making one infers all shapes, computes what depends on nothing but shapes, decides where each layer runs, gives every
value its storage (reused once nobody needs it any more), and lowers every layer to bound steps.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from perframe.backends.base import Backend, Make, Operand, Step
from perframe.errors import FallbackError, InferenceError
from perframe.model import Evaluate, Layer, Model
from perframe.spec import PartialTensor
from perframe.stretch import ConstantPool, Stretch, Transfer
from perframe.tensor import DataType, Storage, Tensor, TensorShape

log = logging.getLogger("perframe")
Array = NDArray[Any]

MAX_IN_FLIGHT = 3  # runs of one plan that may be under way before an upload waits

_reported: set[tuple[str, str]] = set()


@dataclass
class _Slot:
    """Storage that values share whose lifetimes do not meet."""

    kind: str
    size: int
    storage: Storage


class Plan:
    """Made once for a set of input shapes, replayed every frame."""

    def __init__(
        self,
        model: Model,
        backend: Backend,
        host: Backend,
        constants: ConstantPool,
        evaluate: Evaluate,
        inputs: Mapping[str, PartialTensor],
        strict: bool,
    ) -> None:
        self._model, self._backend, self._host, self._strict = model, backend, host, strict
        self._constants = constants
        self._known = {name: PartialTensor.of(value) for name, value in model.constants.items()} | dict(inputs)
        self._operands: dict[tuple[str, str], Operand] = {}
        self._free: list[_Slot] = []
        self._slots: dict[tuple[str, str], _Slot] = {}
        self._owned: list[Storage] = []
        self.stretches: list[Stretch | Transfer] = []
        self.inputs: dict[str, Operand] = {}
        self.bound: dict[str, Storage] = {}
        self._homes: dict[str, Backend] = {}
        self._rings: dict[str, list[Storage]] = {}
        layers = self._needed(self._infer(evaluate))
        self._roots = self._aliases(layers)
        self._last_use = self._lifetimes(layers)
        places = [self._choose(layer) for layer in layers]
        for value in model.inputs:
            self._homes[value.name] = self._input_home(value.name, layers, places)
            self.inputs[value.name] = self._lasting(value.name, self._known[value.name], self._homes[value.name])
        for index, (layer, place) in enumerate(zip(layers, places, strict=True)):
            self._lower(index, layer, place)
        self.outputs = {name: self._output(name) for name in model.output_names}
        self._finish()

    # --- before anything runs ---

    def _infer(self, evaluate: Evaluate) -> list[Layer]:
        """All shapes; layers whose values follow from shapes and constants are computed here, and the others
        returned.
        """
        remaining = []
        for layer in self._model.layers:
            given = [self._known[name] if name else None for name in layer.inputs]
            values = [None if spec is None else spec.value for spec in given]
            if layer.declaration.pure and all(v is not None or s is None for v, s in zip(values, given, strict=True)):
                results = [PartialTensor.of(value) for value in evaluate(layer, values)]
            else:
                results = list(layer.infer(given))
            if any(spec.value is None for name, spec in zip(layer.outputs, results, strict=False) if name):
                remaining.append(layer)
            for name, spec in zip(layer.outputs, results, strict=False):
                if name and not spec.is_static():
                    raise InferenceError(
                        f"layer {layer.name!r} ({layer.op}): the shape of {name!r} is {spec}, which depends on data"
                    )
                self._known[name] = spec
        return remaining

    def _needed(self, layers: Sequence[Layer]) -> list[Layer]:
        """The layers that an output still needs, now that what follows from shapes is known."""
        wanted = {name for name in self._model.output_names if self._known[name].value is None}
        kept = []
        for layer in reversed(layers):
            if not wanted.isdisjoint(layer.outputs):
                kept.append(layer)
                wanted.update(name for name in layer.inputs if name and self._known[name].value is None)
        return kept[::-1]

    def _aliases(self, layers: Sequence[Layer]) -> dict[str, str]:
        """For each value that is another's data with its own shape, the name of that data."""
        roots: dict[str, str] = {}
        for layer in layers:
            if layer.declaration.alias and not any(layer.outputs[1:]):
                roots[layer.outputs[0]] = roots.get(layer.inputs[0], layer.inputs[0])
        return roots

    def _lifetimes(self, layers: Sequence[Layer]) -> dict[str, int]:
        last: dict[str, int] = {}
        for index, layer in enumerate(layers):
            for name in layer.inputs:
                last[self._roots.get(name, name)] = index
        for name in self._model.output_names:
            last[self._roots.get(name, name)] = len(layers)
        return last

    # --- storage ---

    def _lasting(self, name: str, spec: PartialTensor, backend: Backend) -> Operand:
        """An operand whose storage no other value uses, made when it is first asked for."""
        assert spec.shape is not None
        shape = spec.shape.to_shape()

        def make() -> Storage:
            storage = backend.alloc(shape, spec.dtype)
            self._owned.append(storage)
            return storage

        operand = Operand(name, shape, spec.dtype, spec.value, make)
        self._operands[name, backend.backend_type] = operand
        return operand

    def _shared(self, name: str, spec: PartialTensor, backend: Backend) -> Operand:
        """An operand in the smallest free slot that is large enough, or in a new one."""
        assert spec.shape is not None
        shape = spec.shape.to_shape()
        kind, size = backend.capacity(shape, spec.dtype)
        kind = f"{backend.backend_type} {kind}"
        fitting = [slot for slot in self._free if slot.kind == kind and slot.size >= size]
        if fitting:
            slot = min(fitting, key=lambda slot: slot.size)
            self._free.remove(slot)
        else:
            slot = _Slot(kind, size, backend.alloc(shape, spec.dtype))
            self._owned.append(slot.storage)
        self._slots[name, backend.backend_type] = slot
        operand = Operand(name, shape, spec.dtype, None, lambda: slot.storage)
        self._operands[name, backend.backend_type] = operand
        return operand

    def _operand(self, name: str, backend: Backend) -> Operand:
        """A value on a backend: as it is, as an alias, as an uploaded constant, or brought there by a transfer."""
        key = (name, backend.backend_type)
        if key in self._operands:
            return self._operands[key]
        spec = self._known[name]
        assert spec.shape is not None
        shape = spec.shape.to_shape()
        value = spec.value
        if value is not None:
            constant = value

            def derive(kind: str, make: Make) -> Operand:
                return self._constants.derived(backend, name, constant, kind, make)

            derived = derive if name in self._model.constants else None
            made = Operand(name, shape, spec.dtype, value, lambda: self._constant(backend, name, constant), derived)
        elif name in self._roots:
            root = self._operand(self._roots[name], backend)
            made = Operand(name, shape, spec.dtype, None, lambda: root.storage)
        else:
            made = self._transfer(name, spec, backend)
        self._operands[key] = made
        return made

    def _constant(self, backend: Backend, name: str, value: Array) -> Storage:
        storage = self._constants.storage(backend, name, value)
        if name not in self._model.constants:
            self._owned.append(storage)
        return storage

    def _transfer(self, name: str, spec: PartialTensor, backend: Backend) -> Operand:
        other = self._host if backend is self._backend else self._backend
        source = self._operands[name, other.backend_type]
        target = self._lasting(name, spec, backend)
        self.stretches.append(Transfer(name, source, target))
        return target

    # --- steps ---

    def _choose(self, layer: Layer) -> Backend:
        """Where a layer runs: on the plan's backend, unless it is shape arithmetic or the backend refuses it."""
        if layer.on_host or self._backend is self._host or self._is_alias(layer):
            return self._host if layer.on_host else self._backend
        inputs = [self._described(name) if name else None for name in layer.inputs]
        reason = self._backend.supports(layer, inputs, [self._described(name) for name in layer.outputs])
        if not reason:
            return self._backend
        self._fall_back(layer, reason)
        return self._host

    def _input_home(self, name: str, layers: Sequence[Layer], places: Sequence[Backend]) -> Backend:
        """Where a model's input is uploaded: to the backend if any layer reads it there, else to the host."""
        for layer, place in zip(layers, places, strict=True):
            reads = any(self._roots.get(n, n) == name for n in layer.inputs)
            if reads and place is self._backend and not self._is_alias(layer):
                return self._backend
        return self._host

    def _is_alias(self, layer: Layer) -> bool:
        return layer.outputs[0] in self._roots

    def _lower(self, index: int, layer: Layer, backend: Backend) -> None:
        """Give a layer's outputs storage and bind its steps."""
        if not self._is_alias(layer):
            given = [self._operand(name, backend) if name else None for name in layer.inputs]
            made = []
            for name in layer.outputs:
                lasting = self._roots.get(name, name) in self._model.output_names or name in self._model.output_names
                made.append((self._lasting if lasting else self._shared)(name, self._known[name], backend))
            steps = backend.lower(layer, given, made, lambda shape, dtype: self._scratch(shape, dtype, backend))
            self._append(backend, steps, layer.name)
        self._release_after(index, layer)

    def _described(self, name: str) -> Operand:
        """A value without its storage.

        An output that nobody wants has a name of no value, and is left out by its layer.
        """
        spec = self._known[name]
        assert spec.shape is not None
        return Operand(name, spec.shape.to_shape(), spec.dtype, spec.value)

    def _scratch(self, shape: Sequence[int], dtype: DataType, backend: Backend) -> Operand:
        """Storage between the steps of one layer."""
        storage = backend.alloc(shape, dtype)
        self._owned.append(storage)
        return Operand("", TensorShape(shape), dtype, None, lambda: storage)

    def _fall_back(self, layer: Layer, reason: str) -> None:
        where = self._backend.backend_type
        if self._strict:
            raise FallbackError(
                f"layer {layer.name!r} ({layer.op}) cannot run on {where}: {reason}; without strict it runs on the CPU"
            )
        if (layer.name, where) not in _reported:
            _reported.add((layer.name, where))
            size = sum(spec.shape.size or 0 for n in layer.outputs if (spec := self._known[n]).shape is not None)
            log.warning(
                "layer %r (%s) runs on the CPU instead of %s: %s; the frame waits while its %d elements cross over",
                layer.name,
                layer.op,
                where,
                reason,
                size,
            )

    def _append(self, backend: Backend, steps: Sequence[Step], layer: str) -> None:
        last = self.stretches[-1] if self.stretches else None
        if not isinstance(last, Stretch) or last.backend is not backend:
            last = Stretch(backend)
            self.stretches.append(last)
        last.steps += steps
        last.layers += [layer] * len(steps)

    def _release_after(self, index: int, layer: Layer) -> None:
        """Free the slots of values that this layer was the last to read, or that nobody reads."""
        for name in {self._roots.get(n, n) for n in (*layer.inputs, *layer.outputs) if n}:
            if self._last_use.get(name, -1) <= index:
                for backend_type in ("cpu", self._backend.backend_type):
                    slot = self._slots.pop((name, backend_type), None)
                    if slot is not None:
                        self._free.append(slot)

    def _output(self, name: str) -> Tensor:
        """The tensor of an output: in storage of its own, copied there if it is an input's or a constant's data."""
        spec = self._known[name]
        assert spec.shape is not None
        root = self._roots.get(name, name)
        shape = spec.shape.to_shape()
        if spec.value is not None or root in self.inputs or self._outputs_share(root, name):
            copy = Layer("Copy", f"copy of {name}", [name], [name])
            plain = Operand(name, shape, spec.dtype)
            where = self._backend if not self._backend.supports(copy, [plain], [plain]) else self._host
            target = self._lasting(f"{name}:output", spec, where)
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
        return any(self._roots.get(other, other) == root for other in names[: names.index(name)])

    def _no_scratch(self, shape: Sequence[int], dtype: DataType) -> Operand:
        raise AssertionError("a copy needs no scratch")

    def _finish(self) -> None:
        """Bind programs, and what they share with others: inputs, outputs, and values that go to another backend."""
        self.bound = {name: operand.storage for name, operand in self.inputs.items() if operand.has_storage}
        shared = [tensor.data_on_backend for tensor in self.outputs.values()]
        shared += [stretch.source for stretch in self.stretches if isinstance(stretch, Transfer)]
        for stretch in self.stretches:
            if isinstance(stretch, Stretch):
                where = stretch.backend.backend_type
                stretch.program = stretch.backend.program(stretch.steps)
                stretch.access.reads = list(self.bound.values())
                stretch.access.writes = [s for s in shared if s.backend_type == where and s not in self.bound.values()]

    # --- every frame ---

    def bind(self, name: str, storage: Storage) -> None:
        """Let the steps read an input from `storage`."""
        old = self.bound.get(name)
        if old is None or old is storage:
            return
        for stretch in self.stretches:
            if isinstance(stretch, Transfer):
                stretch.replace(old, storage)
            else:
                stretch.access.rebind(old, storage)
        self.bound[name] = storage

    def takes(self, name: str, tensor: Tensor) -> bool:
        """Whether steps can read an input where the tensor lies: on the right backend, in no output of this plan."""
        if not tensor.is_pinned or not self._homes[name].owns(tensor.data_on_backend):
            return False
        return all(output.data_on_backend is not tensor.data_on_backend for output in self.outputs.values())

    def copy_input(self, name: str, tensor: Tensor) -> Storage | None:
        """An input's own storage with a copy of a tensor; None where the tensor lies on another backend."""
        home = self._homes[name]
        if not tensor.is_pinned or not home.owns(tensor.data_on_backend):
            return None
        storage = self.input_storage(name)
        home.copy(tensor.data_on_backend, storage, tensor.shape, tensor.dtype)
        return storage

    def input_storage(self, name: str) -> Storage:
        """Storage to upload an input to: one that no run under way still reads, of up to three."""
        ring = self._rings.get(name)
        if ring is None:
            ring = self._rings[name] = [self.inputs[name].storage]
        for storage in ring:
            if not storage.busy:
                return storage
        if len(ring) < MAX_IN_FLIGHT:
            operand = self.inputs[name]
            ring.append(ring[0].like(operand.shape, operand.dtype))
            self._owned.append(ring[-1])
            return ring[-1]
        return ring[0]

    def release(self) -> None:
        """Free all storage that is the plan's own."""
        for storage in self._owned:
            storage.release()
        self._owned.clear()
