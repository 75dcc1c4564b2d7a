"""The common part of the two GL backends: lowering by family, submission, and readback."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from threading import get_ident
from time import perf_counter
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from perframe.backends.gl import families
from perframe.backends.gl.context.device import FEWEST_ROUNDS, Device
from perframe.backends.gl.lowering.bounds_step import bounds_steps
from perframe.backends.gl.lowering.narrow import before_rounding, in_float32, rounding
from perframe.backends.gl.lowering.steps import (
    MOST_DIMS,
    Binding,
    Call,
    Tools,
    on_gl,
    unsupported,
)
from perframe.backends.gl.program.sequence import GLProgram, GLStep
from perframe.backends.gl.program.timers import QueryTimers, StepTimers, WorkClock
from perframe.backends.gl.refit.paper import PaperSlots, PaperSteps, paper_backend
from perframe.backends.gl.refit.preloading import GLParcel, RealizedProgram, link
from perframe.backends.gl.refit.template import GLTemplate
from perframe.backends.gl.storage.slots import Pool, Slots
from perframe.backends.gl.storage.storage import GLStorage
from perframe.backends.operand import Array, Operand, Scratch
from perframe.backends.precision import FULL, Precision
from perframe.backends.protocol import Access, Done, LayerLike, Measured, Program, Step, Workspace
from perframe.backends.refit import Chooser, Following, ProgramTemplate, SizeMath
from perframe.errors import BackendError, InputError, MemoryLimitError
from perframe.ir.sizes.open_dims import Positions
from perframe.ir.sizes.size import plain
from perframe.ir.sizes.trace import Trace
from perframe.tensor import BackendType, DataType, Storage

_HELD = {"float": np.float32, "half": np.float16, "int": np.int32}


def reason_against(
    layer: LayerLike,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    max_elements: int,
    rounds: int = FEWEST_ROUNDS,
) -> str | None:
    """Return None if a backend can run the layer, else the reason why it cannot. The backend's tensors have at most
    `max_elements`, and the loops of its shaders at most `rounds` rounds.
    """
    if layer.is_wide:
        return "its integers may need more than the 32 bits that a GPU's have"
    family = families.family(layer.family)
    if family is None or not family.READS_BITS:
        inputs, outputs = in_float32(inputs, outputs)
    if family is None:
        return unsupported(layer, inputs, outputs) or f"the family {layer.family!r} has no GL kernels"
    reason = unsupported(layer, inputs, outputs, family.DTYPES)
    if reason:
        return reason
    largest = max((v.shape.size for v in (*inputs, *outputs) if v is not None), default=0)
    if largest > max_elements:
        return f"{largest} elements are more than this driver's {max_elements}"
    if layer.declaration.form_of is None:
        return f"{layer.op} has no GL kernel"
    ranks = [len(value.shape) for value in (*inputs, *outputs) if value is not None]
    dims = family.dims if 2 * max(ranks) > MOST_DIMS else None  # a repeated dim counts twice
    if dims is None and family.supports is None:
        return None
    call = Call(layer, layer.form(inputs, outputs), inputs, outputs, rounds)
    most = max(map(len, dims(call.form)), default=0) if dims is not None else 0
    if most > MOST_DIMS:
        return f"{most} dims are more than a kernel's {MOST_DIMS}"
    return family.supports(call) if family.supports is not None else None


def without_half_stores(call: Call[Any], bindings: Sequence[Binding], scratch: Scratch) -> list[Binding]:
    """Bindings in which kernels that store single elements store floats; the last ones copy these to halves."""
    targets = {
        binding.output.storage: binding.output
        for binding in bindings
        if binding.makes_halves and binding.stores_elements  # in this order: the second reads the shader's text
    }
    if not targets:
        return list(bindings)
    places = {storage: scratch(target.shape, target.dtype).storage for storage, target in targets.items()}

    def placed(operand: Operand) -> Operand:
        place = places.get(operand.storage)
        return operand if place is None else Operand(operand.name, operand.shape, operand.dtype, storage=place)

    changed = [
        replace(
            binding,
            inputs={name: placed(operand) for name, operand in binding.inputs.items()},
            output=placed(binding.output),
        )
        for binding in bindings
    ]
    return changed + [call.copy(placed(target), target) for target in targets.values()]


class GLBackend:
    """A backend over one device. Subclasses define the storage and the launch of a kernel."""

    backend_type: BackendType
    max_elements: int
    stores_anywhere = False
    times_steps = traces_early = is_emulated = False
    makes_constants = True
    timers: Callable[[Device, int], StepTimers] = QueryTimers  # what times the steps of a program

    def __init__(self, device: Device, precision: Precision = FULL) -> None:
        self.device, self.precision, self.is_emulated = device, precision, device.is_software
        self.pool = Pool(self)
        self.size_math: SizeMath | None = None  # without it, plans follow no sizes
        self._clock = WorkClock(device)
        self._paper: Any = None  # see `apart`

    @property
    def memory(self) -> Hashable:
        """The context, and the kind of storage."""
        return self.backend_type, self.device, self.precision.weights

    def alloc(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> GLStorage:
        """Allocate storage, for halves if asked; its values are undefined."""
        raise AssertionError("subclasses allocate")

    def capacity(self, shape: Sequence[int], dtype: DataType, is_half: bool = False) -> tuple[str, int]:
        """The class of storage that a value needs, and its size. Any storage of the class that is as large serves."""
        raise AssertionError("subclasses say")

    def constant(self, value: Array, is_weight: bool = False, is_half: bool = False) -> Storage:
        """Upload values that never change; those of a weight may become halves."""
        is_half = is_weight and self.precision.halves_weight(value, is_half)
        storage = self.alloc(value.shape, DataType.of(value.dtype), is_half)
        storage.upload(value)
        return storage

    def workspace(self) -> Workspace:
        """Return a workspace of buffers or textures."""
        return Slots(self.pool)

    def bind(self, binding: Binding) -> GLStep:
        """Make a step of a binding."""
        raise AssertionError("subclasses bind")

    def owns(self, storage: Storage) -> bool:
        """Whether the storage is of this backend's type and in its context. Raises ClosedError if it was released."""
        if storage.backend_type is not self.backend_type or getattr(storage, "device", None) is not self.device:
            return False
        return on_gl(storage).glo > 0

    def supports(self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str | None:
        """Return None if this backend can run the layer, and otherwise the reason why it cannot."""
        return reason_against(layer, inputs, outputs, self.max_elements, self.device.most_rounds)

    def extends(self, runs: Sequence[int]) -> bool:
        """Whether what is appended begins with a whole texel."""
        return runs[0] % 4 == 0

    def replaces(self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> bool:
        """Ask the layer's family. Results of bfloat16 are rounded as a whole."""
        family = families.family(layer.family)
        if family is None or family.replaces is None or outputs[0].dtype is DataType.BFLOAT16:
            return False
        return family.replaces(Call(layer, layer.form(inputs, outputs), inputs, outputs, self.device.most_rounds))

    def lower(
        self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
    ) -> list[Any]:
        """Return the family's bindings as steps. A layer whose outputs have no elements needs none."""
        if not any(value.shape.size for value in outputs):
            return []
        inputs, _ = in_float32(inputs, ())
        made = before_rounding(layer, outputs, scratch)
        call = Call(layer, layer.form(inputs, made), inputs, made, self.device.most_rounds)
        family = families.family(layer.family)
        assert family is not None  # `supports` was asked before
        first = bounds_steps(call)

        def constant(array: Any) -> Operand:
            values = np.ascontiguousarray(array)
            return Operand("", values.shape, DataType.of(values.dtype), storage=self.constant(values))

        def table(make: Callable[..., Array], *arguments: Any) -> Operand:
            made = constant(make(*map(plain, arguments)))
            on_gl(made.storage).note_table(make, arguments)
            return made

        tools = Tools(scratch, constant, table, self.stores_anywhere, self.device.choices)
        with self.device.using():
            try:
                bindings = family.lower(call, tools)
                if not isinstance(bindings, list):
                    kind = type(bindings).__name__
                    raise TypeError(f"lower() returned {kind}; it must return a list of bindings")
                bindings += rounding(call, outputs)
                if self.stores_anywhere:
                    bindings = without_half_stores(call, bindings, scratch)
                return [*first, *(self.bind(binding) for binding in bindings)]
            except InputError:
                raise
            except MemoryLimitError as error:
                raise error.of(f"layer {layer.name!r} ({layer.op})") from None
            except Exception as error:
                where = self.backend_type
                raise BackendError(
                    f"layer {layer.name!r} ({layer.op}) cannot be planned on {where}: {error}"
                ) from error

    @property
    def templates(self) -> MutableMapping[Any, Any]:
        """The templates in this context for this type of backend and precision. They hold weights, and go with the last
        worker.
        """
        return self.device.templates.setdefault((self.backend_type, self.precision), WeakValueDictionary())

    @property
    def follows(self) -> bool:
        """Whether there is arithmetic for sizes."""
        return self.size_math is not None

    def apart(self) -> Following:
        """Return a backend on which another thread makes plans that never run. The first call needs the context."""
        if self._paper is None:
            with self.device.current():
                self._paper = paper_backend(self)
        made: Following = self._paper
        return made

    @property
    def is_usable(self) -> bool:
        """Whether this thread may use the backend now."""
        return self.device.is_usable

    def arranged(self, value: Array, is_half: bool) -> Array:
        """Return values as storages keep them, in any thread."""
        raise AssertionError("subclasses arrange them")

    def lent(self, arranged: Array, shape: Sequence[int], dtype: DataType, is_half: bool) -> GLStorage | None:
        """Return storage that lies in an arranged array, without a copy; None where that cannot be."""
        return None

    def parcel(self, value: Array, is_weight: bool = False, is_half: bool = False) -> GLParcel:
        """Prepare what `constant` uploads, in any thread."""
        return GLParcel(self, value, is_weight, is_half)

    def link(self, program: Program) -> Generator[bool, None, bool]:
        """Link the programs of a plan that was made in another thread, one at each step."""
        assert isinstance(program, PaperSteps)
        return link(self.device, program)

    def realize(
        self, program: Program, workspace: Workspace, owned: Sequence[Storage], constants: Mapping[int, Storage]
    ) -> Generator[None, None, RealizedProgram]:
        """Give storage to a program that was made in another thread, a step or a storage at a time."""
        assert isinstance(program, PaperSteps) and isinstance(workspace, PaperSlots)
        made = RealizedProgram(self, constants)
        yield from made.make(program, workspace, owned)
        return made

    def record(self, program: Program) -> Iterator[None]:
        """Record the calls of a whole run, some at each step."""
        assert isinstance(program, GLProgram)
        return program.record_ahead()

    def template(
        self,
        program: Program,
        workspace: Workspace,
        trace: Trace,
        results: Sequence[int],
        storages: Mapping[int, tuple[slice, DataType]],
    ) -> ProgramTemplate:
        """Make a template, in which the program's numbers are arithmetic of sizes."""
        assert isinstance(program, PaperSteps) and isinstance(workspace, PaperSlots) and self.size_math is not None
        return GLTemplate(program.steps, workspace, trace, results, storages, self.size_math)

    def chooser(self, templates: Sequence[ProgramTemplate], positions: Positions) -> Chooser:
        """Make a chooser, which asks the arithmetic of all templates in one call."""
        made = [template.native for template in templates if isinstance(template, GLTemplate)]
        assert self.size_math is not None
        return self.size_math.chooser(made, positions)

    def program(self, steps: Sequence[Step]) -> Program:
        """Make a program of steps, with their uniform buffer."""
        bound: Sequence[Any] = steps  # `lower` made them
        return GLProgram(self.device, bound, self.timers)

    def guarded(self) -> AbstractContextManager[Any]:
        """Save the GL state of the caller's context at the begin of a block, and restore it at the end.

        Our own context has no state to save, and must not stay current: an input may come from another.
        """
        return nullcontext() if self.device.owned else self.device.guarding()

    def submit(self, program: Program, begin: int, end: int, access: Access) -> None:
        """Submit the steps; GL itself orders them after earlier work."""
        assert isinstance(program, GLProgram)
        with self.device.using():
            for planned, new in access.take_rebinds():
                program.replace(planned, new)
            program.time_steps(self.times_steps)
            program.run(begin, end)

    def measure(
        self,
        program: Program,
        begin: int,
        end: int,
        access: Access,
        rows: tuple[int, int] | None = None,
        wait: bool = True,
    ) -> Measured:
        """Submit the steps, and measure their time. Without `wait` the GPU's clock measures it, if there is one. A
        software device is waited for in any case: its clock misses a part of the work, and its work needs the cores.
        """
        start = perf_counter()
        with self.device.using() as gl:
            work = None if wait or self.device.is_software else self._clock.begin()
            if rows is None:
                self.submit(program, begin, end, access)
            else:
                for planned, new in access.take_rebinds():
                    program.replace(planned, new)
                assert isinstance(program, GLProgram)  # it is of this backend
                program.run_rows(begin, rows)
            if work is not None:
                work.end(perf_counter() - start)
                return work
            gl.glFinish()  # llvmpipe signals a fence before its draws are done
        return Done(perf_counter() - start)

    def flush(self) -> None:
        """Hand submitted work to the GPU, and keep one of the programs that were compiled on disk."""
        with self.device.current():
            self.device.gl.glFlush()
            self.device.programs.keep(1)

    def wait_for_jobs(self) -> None:
        """Return at once: a GPU has no jobs."""

    def free_dropped(self) -> None:
        """Free dropped objects without waiting: GL keeps an object until the GPU has finished with it."""
        self.device.free_dropped()

    def free_spare(self) -> None:
        """Free dropped objects and unused staging buffers."""
        self.device.free_spare()

    @property
    def is_here(self) -> bool:
        """Whether the context belongs to this thread."""
        return self.device.thread == get_ident()


class StagedReadback:
    """A download through a staging buffer and a fence."""

    def __init__(
        self,
        device: Device,
        buffer: Any,
        size: int,
        kind: str,
        room: Callable[[int], Array],
        convert: Callable[[Array], Array],
    ) -> None:
        self._device, self._buffer, self._size, self._kind = device, buffer, size, kind
        self._room, self._convert = room, convert
        self._fence = device.make_fence()

    def poll(self) -> bool:
        """Whether the fence is signaled. Never blocks."""
        return bool(self._fence.done)

    def wait(self) -> None:
        """Block until the fence is signaled."""
        self._fence.wait()

    def values(self) -> Array:
        """Return the values, and give the staging buffer back to its pool."""
        memory = self._room(self._size)
        if self._size:
            with self._device.using():
                self._buffer.read_into(memory, self._size)
        self._device.give_staging(self._buffer)
        self._buffer = None
        return self._convert(memory.view(_HELD[self._kind]))

    def __del__(self) -> None:
        if self._buffer is not None:
            self._device.give_staging(self._buffer)
