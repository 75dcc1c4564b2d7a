"""A worker runs a model on a backend, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import IO, Any, Protocol, TypeVar, overload

from perframe.backends import BackendName, kernel_progress, settle_kernels
from perframe.backends import backend_type as backend_type_of
from perframe.backends.precision import Precision
from perframe.backends.protocol import Guarding
from perframe.errors import ClosedError, InputError
from perframe.execution.growing import Capacity
from perframe.execution.inputs import Given, Inputs, hold
from perframe.execution.layer_check import LayerCheck
from perframe.execution.machine import Values, downloaded, loaded, open_machine
from perframe.execution.memory import WorkerMemory
from perframe.execution.outputs import Outputs
from perframe.execution.parts import Parts
from perframe.execution.report import MemoryUse, StepReport, Steps
from perframe.execution.states import States
from perframe.execution.warming import Warming, check_budget
from perframe.graphics import GLContext
from perframe.ir import Model
from perframe.plan.budget import Budget, Spent
from perframe.plan.plan import Fallback
from perframe.tensor import BackendType, DataType, Tensor
from perframe.tensor.locks import new_lock

T = TypeVar("T")
END = object()
_ENDED = "another run began, or a reset, before this one ended: begin it again"


class Watcher(Protocol):
    """An observer of all workers' runs, such as a profile. Called on the scheduling thread; must not schedule runs."""

    def run_begins(self, worker: Worker) -> None:
        """A run begins: its inputs are checked, and nothing is submitted."""

    def run_submitted(self, worker: Worker) -> None:
        """All layers of the run are submitted."""

    def worker_ends(self, worker: Worker) -> None:
        """The worker is being released. Its last run is over, and its plans are still there."""


watchers: list[Watcher] = []


class Worker:
    """Runs a model on one backend. `schedule` returns before the values exist; outputs belong to the worker.

    Threads take turns with a worker on the CPU: no other thread interrupts a call, and a readback holds the result of
    one run. If several threads schedule, a thread cannot know which run that was. A worker on a GPU belongs to the
    thread that made it.

    `model` is a Model, or anything that `load` takes. An input whose dtype differs from the declared one is converted
    if that changes no value, or with `cast` in any case.

    `backend` is a BackendType or its name. "auto" is gpu_compute or gpu_pixel on a real GPU, and the CPU where OpenGL
    is emulated or absent.

    `ctx` is the caller's moderngl context (a GPU worker without one makes its own, headless). With `strict`, a
    layer that cannot run on the backend raises FallbackError instead of running on the CPU; shape arithmetic may
    always run there. A `check` compares each layer of each run with its definition. PERFRAME_CHECK=1 in the environment
    gives every worker a check that raises BackendError at the first layer that differs.

    A worker on a GPU may keep `weights`, and the values between layers, which are `activations`, in "float16": that
    takes half of the memory. Its arithmetic, inputs and outputs stay float32. The page "GPU backends" lists the errors.

    `carry` maps outputs to inputs: the value of the output is the next run's input. These states stay on the device.
    One that is its input with more appended grows in place: up to `carry_capacity` rows, or in storage that doubles.
    """

    def __init__(
        self,
        model: Model | str | Path | bytes | IO[bytes] | Any,
        backend: BackendName = BackendType.CPU,
        ctx: GLContext | None = None,
        strict: bool = False,
        check: LayerCheck | None = None,
        cast: bool = False,
        weights: str = DataType.FLOAT32,
        activations: str = DataType.FLOAT32,
        carry: Mapping[str, str] = MappingProxyType({}),
        carry_capacity: Capacity = None,
    ) -> None:
        model = loaded(model)
        if model.check_file is not None:
            model.check_file()
        self.model, self.ctx = model, ctx
        self._lock, self._warming_lock = new_lock(), new_lock()
        self.backend_type = backend_type_of(backend, ctx)
        machine = open_machine(self.backend_type, ctx, Precision(weights, activations), strict, check)
        self._backend, self._host, self._check = machine.backend, machine.host, machine.check
        self._guarded = self._backend.guarded if isinstance(self._backend, Guarding) else None
        self.states = States(model, carry, machine, cast, carry_capacity)
        self._outputs = Outputs(model, self.states.targets, self._backend, self._host, self.states.in_file_order)
        self.parts = Parts(model, machine, self._outputs.targets, self.states.grown)  # for tools that look at plans
        self._runs, self._closed = 0, False
        self._warming: Warming | None = None
        self._inputs = Inputs(model, cast, self.states.sources)
        self._memory = WorkerMemory(model.name, self._lock, self._backend, self.parts, self.states)

    # --- inputs ---

    def set_input(self, name: str | int, value: Given) -> None:
        """Keep an input for later schedules, which read it again. Raises InputError for a name that the model lacks."""
        with self._lock:
            self._check_open()
            self._inputs.keep(name, value)

    def empty_input(self, name: str | int = 0, shape: tuple[int, ...] | None = None) -> Tensor:
        """Return a tensor on this worker's backend for an input, which needs a `shape` if it has open dims. A
        TextureConverter or `upload` fills it.
        """
        value, made = self._inputs.concrete(name, shape)
        return Tensor.over(self._backend.alloc(made, value.dtype), made, value.dtype, value.name)

    # --- runs ---

    def schedule(self, /, *inputs: Any, **named: Any) -> Worker:
        """Begin a run, and return before its values exist. Inputs come by position, in one dict by name, as keywords,
        or from `set_input`. They are Tensors, arrays, or numbers in lists.

        The first run with new input shapes makes a plan; later runs only bind and submit. If the shape of a layer's
        output depends on data, the call waits for the inputs of that layer.
        """
        self._lock.acquire()  # by hand, in half of the time of `with`
        try:
            values = self._gather(inputs, named)
            self._begin_run()
            if self._guarded is None:
                self.parts.run_whole(values)
            else:
                with self._guarded():
                    self.parts.run_whole(values)
            self._end_run(values)
        finally:
            self._lock.release()
        return self

    @overload
    def schedule_iterable(self, /, *inputs: Any, budget_ms: None = None, **named: Any) -> Iterator[str]: ...
    @overload
    def schedule_iterable(self, /, *inputs: Any, budget_ms: float, **named: Any) -> Iterator[Spent]: ...

    def schedule_iterable(
        self, /, *inputs: Any, budget_ms: float | None = None, **named: Any
    ) -> Iterator[str] | Iterator[Spent]:
        """Begin a run that advances with each step of the iterator: by one layer, whose name the iterator yields, or by
        as many layers as fit into `budget_ms` milliseconds.

        With a budget each step yields its milliseconds, and names the layer of its longest submission (`.longest`,
        `.longest_ms`). The worker learns the time of each layer, and divides one that does not fit. A step waits for
        layers on the CPU, and for those that never ran; a GPU is timed by its own clock, and nothing waits for it.
        Making the plan is part of the run. Arrays are copied in this call, and may change before the first step;
        tensors are read during the run. A later run ends this run, since both share memory: the next step of the
        iterator then raises InputError.
        """
        with self._lock:
            values = self._gather(inputs, named)
            hold(values, self.parts.hold, self._guarded)
        if budget_ms is None:
            return self._steps(values, self.parts.advance(values))
        check_budget(budget_ms)
        return self._spend(values, Budget(budget_ms / 1000))

    def _spend(self, values: Values, budget: Budget) -> Iterator[Spent]:
        for _ in self._steps(values, self.parts.spend(values, budget)):
            self._backend.flush()
            yield budget.refill()
        last = budget.refill()
        last.is_last = True
        yield last

    def warmup(self, /, *inputs: Any, budget_ms: float | None = None, **named: Any) -> bool:
        """Prepare the first run with inputs of these shapes: make the plan, upload weights, compile programs, and run
        each layer once. Inputs are given as to `schedule`; their values do not matter.

        With `budget_ms`, the call returns after that many milliseconds, or after one layer if that takes longer: call
        it in each frame until it returns True. Without a budget it blocks until all is done. Returns whether the next
        `schedule` with such inputs is as fast as later ones. Other runs may come in between.
        """
        if budget_ms is not None:
            check_budget(budget_ms)
        end = None if budget_ms is None else perf_counter() + budget_ms / 1000
        with self._lock:
            values = self._gather(inputs, named)
        shapes = {name: getattr(value, "shape", None) for name, value in values.items()}
        with self._warming_lock:  # threads take turns
            warming, self._warming = self._warming, None
            if warming is None or not warming.goes_on(shapes, self._runs):
                warming = Warming(shapes, self._plan_and_run(values))
            for run in warming.steps:
                warming.run = run or 0
                if run is None and end is None:
                    settle_kernels()
                elif end is not None and (run is None or perf_counter() >= end):
                    self._warming = warming
                    return False
        if end is None:
            for output in self._outputs.last.values():
                downloaded(output, "Worker.warmup()")
            settle_kernels()
        return self.ready

    def _plan_and_run(self, values: Values) -> Iterator[int | None]:
        """Make the plan, and run it, again once kernels are compiled. Yields 0, the run's number, or None to wait."""
        steps = self.parts.plan_ahead(dict(values))
        while True:
            with self._lock:
                self._check_open()
                if next(steps, None) is None:
                    break
            yield 0
        yield from (self._runs for _ in self._steps(values, self.parts.advance(values), trial=True))
        if not self.ready:
            while not self.ready:
                yield None
            yield from (self._runs for _ in self._steps(values, self.parts.advance(values), trial=True))

    def _steps(self, values: Values, steps: Iterator[T], trial: bool = False) -> Iterator[T]:
        """Take a step of a run at a time, and keep its outputs after the last. A trial leaves the states alone."""
        with self._lock:
            self._check_open()
            self.states.add(values)  # as they are now
            self._begin_run()
            run = self._runs
            step = self._next_of(steps)
        while step is not END:
            yield step  # type: ignore[misc]
            with self._lock:
                self._check_open()
                if run != self._runs:
                    raise InputError(f"{self.model.name}: {_ENDED}")
                step = self._next_of(steps)
        with self._lock:
            self._end_run(values, trial)

    def _gather(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> Values:
        """Return the inputs of a run, states among them."""
        self._check_open()
        values = self._inputs.gather(inputs, named)
        if self._outputs.targets:
            self.states.add(values)
            self._outputs.check_inputs(values)
        return values

    def _begin_run(self) -> None:
        self._runs += 1
        if self._check is not None:
            self._check.begin_run()
        for watcher in watchers:
            watcher.run_begins(self)

    def _next_of(self, steps: Iterator[T]) -> T | object:
        """Take a step, and return what it yields; END after the last."""
        if self._guarded is None:
            return next(steps, END)
        with self._guarded():
            return next(steps, END)

    def _end_run(self, values: Values, trial: bool = False) -> None:
        if not trial:
            self.states.end(values)
        self._outputs.keep(values)
        self._backend.flush()
        for watcher in watchers:
            watcher.run_submitted(self)

    # --- outputs and states ---

    def peek_output(self, name: str | int | None = None) -> Tensor:
        """Return an output of the last run: by name, by index, or the first. Its values may still be pending.

        The worker owns it. A sequence is a list of tensors, and an empty optional is None.
        """
        with self._lock:
            self._check_open()
            return self._outputs.value(name)  # type: ignore[no-any-return]

    def bind_output(self, name: str | int, tensor: Tensor | None) -> None:
        """Let later runs write an output into `tensor`, which moves to the worker's backend. None ends that.

        Raises InputError for an unknown name; runs raise it if the output has another shape or dtype.
        """
        with self._lock:
            self._check_open()
            self._outputs.bind(name, tensor)

    def copy_output(self, name: str | int, tensor: Tensor | None = None) -> Tensor:
        """Copy an output of the last run into `tensor`, or into a new one there; blocks if that is elsewhere."""
        with self._lock:
            self._check_open()
            return self._outputs.copy(name, tensor)

    def state(self, name: str | None = None) -> Tensor:
        """Return the first state, or that of an input. Later runs overwrite it. Raises InputError for another name."""
        with self._lock:
            self._check_open()
            return self.states.value(name)

    def reset(self, state: Any = None) -> None:
        """Begin again, with zeros or with copies of the values in a dict from inputs to arrays or tensors. One state
        may be given alone. A run under way ends without a result.
        """
        with self._lock:
            self._check_open()
            self.states.reset(state)
            self._runs += 1

    @property
    def ready(self) -> bool:
        """Whether all requested kernels are compiled: until then, first results are late. Never blocks."""
        return self.progress == 1.0

    @property
    def progress(self) -> float:
        """The share of requested kernels that is compiled, from 0 to 1. It counts all workers of the process."""
        self._check_open()
        return kernel_progress()

    @property
    def memory_use(self) -> list[MemoryUse]:
        """The memory of each part of the model, with the plans made so far; most models are one part."""
        self._check_open()
        return self.parts.memory_use

    @property
    def fallbacks(self) -> list[Fallback]:
        """The layers of the last run that ran on the CPU instead of this worker's backend, each with the reason. Shape
        arithmetic, which always runs there, is not among them.
        """
        self._check_open()
        plans = [part.latest_plan for part in self.parts.planned_parts()]
        return [found for plan in plans if plan is not None for found in plan.fallbacks]

    def report(self, repeats: int = 0) -> list[StepReport]:
        """The steps that the last run ran, each with its layer, shapes, bytes and operations.

        With `repeats`, the steps run that many more times, and report their shortest time in seconds within a run, by
        the clock of the CPU or of the GPU. These runs may overwrite the outputs. Without `repeats`, they report their
        shortest time since `time_steps()`. A step in the body of a loop stands once. Layers between plans, which run on
        the host, have no steps. The call blocks. Raises ClosedError after release(), and InputError for a wrong number.
        """
        if not isinstance(repeats, int) or repeats < 0:
            raise InputError(f"report(repeats) takes an integer of at least 0, and got {repeats!r}")
        with self._lock:
            self._check_open()
            self._host.wait_for_jobs()
            return Steps(step for part in self.parts.planned_parts() for step in part.report(repeats))

    def time_steps(self, on: bool = True) -> bool:
        """Start or stop timing each step of each run; `report()` has the times. Return whether timing was on.

        Nothing waits for the times: those of a GPU are read some runs later. Raises ClosedError after release().
        """
        with self._lock:
            self._check_open()
            before, self._backend.times_steps = self._backend.times_steps, on
            self._host.times_steps = on
        return before

    # --- the end ---

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the worker of {self.model.name} was released")

    def release(self) -> None:
        """Wait for runs under way, and free all plans and constants. Further calls raise ClosedError."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._warming = None
            self._outputs.forget()
            self._host.wait_for_jobs()
            for watcher in watchers:
                watcher.worker_ends(self)
            self.parts.release()
            self.states.release()
            self._backend.free_dropped()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __reduce__(self) -> Any:
        raise InputError("a worker belongs to its process: pickle its model, and make a worker where it arrives")

    def __repr__(self) -> str:
        return f"Worker({self.model.name!r} on {self.backend_type}{', closed' if self._closed else ''})"
