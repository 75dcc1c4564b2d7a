"""The CPU backend: allocation, lowering and submission to the worker threads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from perframe.backends.cpu import reference
from perframe.backends.cpu.compile import jit
from perframe.backends.cpu.families import family_of
from perframe.backends.cpu.lowering.recipes import Recipes
from perframe.backends.cpu.lowering.rows import array_of, extent
from perframe.backends.cpu.program.arena import Arena, ArenaStorage, ArenaWorkspace
from perframe.backends.cpu.program.bindings import part_of
from perframe.backends.cpu.program.late_program import LateProgram
from perframe.backends.cpu.program.program import CpuProgram, CpuStep, NativeStep, PythonStep, Rows
from perframe.backends.cpu.refit.arithmetic import CpuChooser
from perframe.backends.cpu.refit.template import CpuTemplate
from perframe.backends.cpu.threads import jobs
from perframe.backends.operand import Array, Operand, Scratch, StorageRange
from perframe.backends.precision import FULL, Precision
from perframe.backends.protocol import Access, Done, LayerLike, Lent, Program, Step, Workspace
from perframe.backends.refit import ProgramTemplate
from perframe.errors import BackendError, InputError, MemoryLimitError
from perframe.ir.sizes.open_dims import Positions
from perframe.ir.sizes.size import plain
from perframe.ir.sizes.trace import Trace
from perframe.tensor import BackendType, DataType, Fence, HostStorage, Storage, TensorShape
from perframe.tensor.sharing import begin_job, copied_here, lock_all
from perframe.tensor.storage import aligned_bytes

_PROGRAMS = CpuProgram, LateProgram  # made once: a frame waits
_templates: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_rounded_templates: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


class CpuBackend:
    """Runs programs on worker threads. The programs of one backend run one after the other."""

    backend_type = BackendType.CPU
    memory = BackendType.CPU
    times_steps = is_emulated = False
    traces_early = makes_constants = True

    def __init__(self, precision: Precision = FULL, runs: bool = True) -> None:
        """Without `runs`, its plans never run, and take no memory."""
        self.precision, self._runs = precision, runs
        self._last: Fence | None = None
        self.arena = Arena()
        self._waits = jit.waits()  # for kernels, in its programs' first runs
        self._recipes = Recipes()  # for the plan that is being made

    def alloc(self, shape: Sequence[int], dtype: DataType) -> HostStorage:
        """Allocate host memory with undefined values."""
        size = plain(math.prod(shape))
        if self._runs or dtype is DataType.STRING:
            return HostStorage((size,), dtype)
        return HostStorage((size,), dtype, aligned_bytes(size * dtype.numpy.itemsize, counts=False)[0])

    def constant(self, value: Array, is_weight: bool = False, is_half: bool = False) -> HostStorage:
        """Return storage over the array's own memory if that is possible, else over a copy."""
        return HostStorage.over(value)

    def workspace(self) -> ArenaWorkspace:
        """Return a workspace in the arena, which all plans of this backend share."""
        return ArenaWorkspace(self.arena)

    def owns(self, storage: Storage) -> bool:
        """Whether the storage is host memory."""
        return isinstance(storage, HostStorage)

    def copy(self, source: Storage, target: Storage, shape: Sequence[int], dtype: DataType) -> None:
        """Copy values in a job, after those that write the source or use the target; a few at once, if none does."""
        assert isinstance(source, HostStorage) and isinstance(target, HostStorage)

        def begin(needed: list[Fence], after: list[Fence]) -> jobs.ThreadJob:
            arrays = target.view(shape, dtype), source.view(shape, dtype)
            return jobs.schedule(np.copyto, *arrays, depends_on=needed, after=after)

        if not copied_here(source, target, shape, dtype):
            begin_job(begin, [source], [target])

    def supports(self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> str | None:
        """Return None: NumPy runs every declared layer."""
        return None

    def extends(self, runs: Sequence[int]) -> bool:
        """Return True: steps write any range of elements."""
        return True

    def replaces(self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> bool:
        """Whether elements are numbers: strings are copied."""
        return outputs[0].dtype is not DataType.STRING

    def takes_gaps(
        self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand]
    ) -> frozenset[str]:
        """Ask the layer's family which values may have gaps between their rows."""
        takes_gaps = family_of(layer).takes_gaps
        if takes_gaps is None:
            return frozenset()
        able = takes_gaps(layer, layer.declaration.complete(inputs), outputs)
        present = [value for value in (*inputs, *outputs) if value is not None]
        others = {value.name for value in present if not any(value is one for one in able)}
        return frozenset(value.name for value in able) - others

    def overwrites(self, layer: LayerLike) -> int | None:
        """Ask the layer's family for the index of the input that the layer may overwrite."""
        overwrites = family_of(layer).overwrites
        return overwrites(layer) if overwrites is not None else None

    def part(self, storage: Storage, within: StorageRange, shape: Sequence[int], dtype: DataType) -> HostStorage:
        """Return storage over a range of another storage's memory, gaps included."""
        assert isinstance(storage, HostStorage)
        first, size = within.first * dtype.numpy.itemsize, extent(shape, within.pitch)
        if isinstance(storage, ArenaStorage):
            return storage.part(first, (size,), dtype)
        return part_of(storage, first, size, dtype)

    def lower(
        self, layer: LayerLike, inputs: Sequence[Operand | None], outputs: Sequence[Operand], scratch: Scratch
    ) -> list[Step]:
        """Return native steps if the family has a kernel for these dtypes, else one step with NumPy."""
        declared = layer.declaration
        lowered = partial(_lower, rounds=True) if self.precision.rounds else _lower
        inputs = declared.complete(inputs)
        if (declared.joins or declared.cuts) and any(
            [value is not None and value.part is not None for value in (*inputs, *outputs)]
        ):
            # no recipe: the copies depend on where values lie
            steps: list[Step] = list(lowered(layer, inputs, outputs, scratch))
        else:
            lower = partial(lowered, layer, inputs, outputs)
            steps = list(self._recipes.lower(layer, inputs, outputs, scratch, lower))
        natives = [step for step in steps if isinstance(step, NativeStep)]
        if natives and len(natives) == len(steps) and any([step.missing for step in natives]):
            natives[0].definition = reference.Definition(layer, inputs, outputs), len(steps)
        return steps

    def program(self, steps: Sequence[Step]) -> Program:
        """Make a program from steps. While kernels are compiling, it is a LateProgram."""
        self._recipes = Recipes()
        own = [step for step in steps if isinstance(step, CpuStep)]
        natives = [step for step in own if isinstance(step, NativeStep)]
        if not natives or (all(map(jit.is_compiled, jit.expect())) and not any([step.missing for step in natives])):
            return CpuProgram.of(own, self.arena)
        return LateProgram(own, self.arena, self._waits)

    @property
    def templates(self) -> WeakKeyDictionary[Any, Any]:
        """The templates of all CPU backends of this precision."""
        return _rounded_templates if self.precision.rounds else _templates

    @property
    def follows(self) -> bool:
        """Return True."""
        return True

    def apart(self) -> CpuBackend:
        """Return a backend for plans that never run."""
        return CpuBackend(self.precision, runs=False)

    def template(
        self,
        program: Program,
        workspace: Workspace,
        trace: Trace,
        results: Sequence[int],
        storages: Mapping[int, tuple[slice, DataType]],
    ) -> CpuTemplate:
        """Make a template, in which the program's numbers and the lengths of its values are arithmetic of sizes."""
        assert isinstance(program, CpuProgram | LateProgram) and isinstance(workspace, ArenaWorkspace)
        return CpuTemplate(program.steps, workspace, trace, results, storages)

    def chooser(self, templates: Sequence[ProgramTemplate], positions: Positions) -> CpuChooser:
        """Make a chooser, which asks the arithmetic of all templates in one call."""
        made = [template for template in templates if isinstance(template, CpuTemplate)]
        assert len(made) == len(templates), "of this backend"
        return CpuChooser([template.native for template in made], positions)

    def submit(self, program: Program, begin: int, end: int, access: Access, rows: Rows | None = None) -> None:
        """Run the steps, or some rows of one: after the last run, and after all jobs and readbacks that use the same
        storage.

        The steps run in a job. If no work is under way and they take less time than handing them to another thread,
        they run in this thread.
        """
        assert isinstance(program, _PROGRAMS)
        lent = access.take_lent() if access.lent else ()
        program.times_steps = self.times_steps
        if not (program.is_brief and self._run_here(program, begin, end, access, lent, rows)):
            for _, bound, array in lent:
                bound.upload(array)
            self._hand_over(program, begin, end, access, rows)

    def _nothing_pends(self, goes_on: bool, access: Access) -> bool:
        """Whether no work that the steps need is under way or has failed. `goes_on`: they are the rest of a run."""
        if self._last is not None:
            if goes_on or not self._last.done:
                return False
            self._last = None
        for storage in access.reads:
            if isinstance(storage, HostStorage) and storage.write is not None and not storage.is_written:
                return False
        for storage in access.writes:  # noqa: SIM110  # a frame waits, and this takes less time
            if storage.busy:
                return False
        return True

    def _run_here(
        self,
        program: CpuProgram | LateProgram,
        begin: int,
        end: int,
        access: Access,
        lent: Sequence[Lent],
        rows: Rows | None,
    ) -> bool:
        """Run the steps in this thread, unless they must wait. Return whether they ran.

        Meanwhile no other thread uses the storages that the steps write, or writes the storages that they read.
        """
        job, targets = None, access.writes
        shared: Sequence[Any] = targets
        if access.others:
            shared = [*targets, *(storage for storage in access.others if isinstance(storage, HostStorage))]
        if len(shared) == 1:
            shared[0].lock.acquire()
        else:
            lock_all(shared)
        try:
            if not self._nothing_pends(begin > 0 or (rows is not None and rows[0] > 0), access):
                return False
            try:
                for planned, new in access.take_rebinds() if access.rebinds else ():
                    program.replace(planned, new)
                for planned, _, array in lent:
                    program.lend(planned, array)
                program.run(begin, end, rows=rows)
            except Exception as error:  # a readback of the values raises it
                self._last = job = jobs.ThreadJob.failed(error)
            finally:
                for planned, bound, _ in lent:
                    program.replace(planned, bound)
            for storage in shared[: len(targets)]:  # nothing else is written here
                storage.write = job
                if storage.reads:
                    storage.reads = []
            return True
        finally:
            for storage in shared:
                storage.lock.release()

    def _hand_over(
        self, program: CpuProgram | LateProgram, begin: int, end: int, access: Access, rows: Rows | None
    ) -> None:
        sources = [storage for storage in access.reads if isinstance(storage, HostStorage)]
        targets = [storage for storage in access.writes if isinstance(storage, HostStorage)]
        last = [self._last] if self._last else []
        rebinds = [
            (planned, new.alias() if isinstance(new, HostStorage) else new) for planned, new in access.take_rebinds()
        ]

        def begin_run(needed: list[Fence], after: list[Fence]) -> jobs.ThreadJob:
            needed = [*(last if begin or (rows is not None and rows[0]) else []), *needed]
            return jobs.schedule(_run, program, begin, end, rows, rebinds, needed, after=[*needed, *last, *after])

        self._last = begin_job(begin_run, sources, targets)

    def measure(
        self,
        program: Program,
        begin: int,
        end: int,
        access: Access,
        rows: tuple[int, int] | None = None,
        wait: bool = True,
    ) -> Done:
        """Run the steps, and wait for them in any case: the frame's own work gets the cores afterwards. If the steps
        fail, readbacks of their values raise the error.
        """
        start = perf_counter()
        self.submit(program, begin, end, access, rows)
        self.wait_for_jobs()
        return Done(perf_counter() - start)

    def flush(self) -> None:
        """Do nothing: worker threads begin jobs by themselves."""

    def wait_for_jobs(self) -> None:
        """Wait for the last job. If it fails, readbacks of its values raise the error."""
        if self._last is not None:
            with suppress(Exception):
                self._last.wait()

    def free_dropped(self) -> None:
        """Return at once: Python frees dropped memory."""

    free_spare = free_dropped
    is_here = True


def _lower(
    layer: LayerLike,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    scratch: Scratch,
    rounds: bool = False,
) -> Sequence[CpuStep]:
    family = family_of(layer)
    if family.lower is not None and outputs[0].shape.size:
        form = reference.form_of(layer, inputs, outputs)
        try:
            native = family.steps(layer, form, inputs, outputs, scratch, rounds)
            if not isinstance(native, list | None):
                raise TypeError(f"lower() returned {type(native).__name__}; it must return a list of steps, or None")
        except InputError:
            raise
        except MemoryLimitError as error:
            raise error.of(f"layer {layer.name!r} ({layer.op})") from None
        except Exception as error:
            raise BackendError(f"layer {layer.name!r} ({layer.op}) cannot be planned on the CPU: {error}") from error
        if native is not None:
            return native
    given = [value for value in inputs if value is not None]
    shapes = [(*value.shape, value.pitch) for value in (*given, *outputs)]
    return [_python_step(layer, inputs, outputs, shapes, [value.storage for value in (*given, *outputs)])]


def _run(
    program: CpuProgram | LateProgram,
    begin: int,
    end: int,
    rows: Rows | None,
    rebinds: Sequence[tuple[Storage, Storage]],
    needed: Sequence[Fence],
) -> None:
    """Run steps in a job. The program holds the memory that it reads and writes, even if that is released meanwhile."""
    for planned, new in rebinds:
        program.replace(planned, new)
    for fence in needed:
        fence.wait()  # returns at once; if the job that makes an input has failed, this run fails too
    program.run(begin, end, away=True, rows=rows)


def _python_step(
    layer: LayerLike,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    shapes: Sequence[Sequence[int]],
    storages: Sequence[Storage],
) -> PythonStep:
    """Make a step for operands in these storages. Each of `shapes` ends with the pitch of the operand's rows."""
    present = [value is not None for value in inputs]
    rows = iter([[plain(size) for size in shape] for shape in shapes])
    kinds: list[tuple[TensorShape, DataType, int]] = []

    def of_these(value: Operand) -> Operand:
        *shape, pitch = next(rows)
        kinds.append((TensorShape(shape), value.dtype, pitch))
        return Operand(value.name, shape, value.dtype, value.value)

    inputs = [value and of_these(value) for value in inputs]
    outputs = [of_these(value) for value in outputs]
    compute = reference.computation(layer, reference.form_of(layer, inputs, outputs), outputs)

    def run(storages: list[HostStorage]) -> None:
        views = iter([array_of(storage, *kind) for storage, kind in zip(storages, kinds, strict=True)])
        arrays = [next(views) if there else None for there in present]
        try:
            values = compute(arrays)
        except Exception as error:
            raise BackendError(f"layer {layer.name!r} ({layer.op}) failed: {error}") from error
        for target, value in zip(views, values, strict=False):
            np.copyto(target, value)

    return PythonStep(layer.name, storages, run, shapes, partial(_python_step, layer, inputs, outputs))


def open_backend(precision: Precision) -> CpuBackend:
    """Return a CPU backend. Raises InputError for float16."""
    if precision.has_halves:
        raise InputError(
            "the CPU keeps weights and activations in float32, and a GPU backend may keep them in float16: choose one "
            "of those, round products by activations='bfloat16', or make the weights smaller by pf.quantize"
        )
    if precision.rounds:
        from perframe.backends.cpu.lowering import bfloat_product

        bfloat_product.warn_if_absent()
    return CpuBackend(precision)
