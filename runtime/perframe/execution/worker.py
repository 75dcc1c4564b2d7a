"""A worker runs a model on a backend, frame by frame."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import IO, Any, Protocol, TypeVar, overload

from perframe.backends import BackendName, settle_kernels
from perframe.backends import backend_type as backend_type_of
from perframe.backends.precision import Precision
from perframe.errors import InputError
from perframe.execution.growing import Capacity
from perframe.execution.inputs import Given, hold
from perframe.execution.inspected import Inspected
from perframe.execution.instance import Instance, WorkerSettings
from perframe.execution.layer_check import LayerCheck
from perframe.execution.machine import Values, downloaded, loaded
from perframe.execution.parts import Parts
from perframe.execution.swapping import Source, Swap, Swaps
from perframe.execution.warming import Warming, check_budget
from perframe.graphics import GLContext
from perframe.ir import Model
from perframe.plan.budget import Budget, Spent
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


class Worker(Inspected):
    """Runs a model on one backend. `schedule` returns before the values exist; outputs belong to the worker.

    Threads take turns with a worker on the CPU: no other thread interrupts a call, and a readback holds the result of
    one run. If several threads schedule, a thread cannot know which run that was. A worker on a GPU belongs to the
    thread that made it.

    `model` is a Model, or anything that `load` takes. An input whose dtype differs from the declared one is converted
    if that changes no value, or with `cast` in any case. `backend` is a BackendType or its name. "auto" is gpu_compute
    or gpu_pixel on a real GPU, and the CPU where OpenGL is emulated or absent.

    `ctx` is the caller's moderngl context (a GPU worker without one makes its own, headless). With `strict`, a layer
    that cannot run on the backend raises FallbackError instead of running on the CPU; shape arithmetic may always run
    there. A `check` compares each layer of each run with its definition. PERFRAME_CHECK=1 in the environment gives
    every worker a check that raises BackendError at the first layer that differs.

    A GPU may keep `weights`, and the values between layers, which are `activations`, in "float16", half the memory; its
    arithmetic, inputs and outputs stay float32 (the page "GPU backends"). On the CPU, `activations` of "bfloat16" let
    products round what they multiply (the page "CPU backend").

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
        self.ctx, self.backend_type = ctx, backend_type_of(backend, ctx)
        precision = Precision(weights, activations)
        settings = WorkerSettings(self.backend_type, ctx, precision, strict, check, cast, carry, carry_capacity)
        self._lock = new_lock()
        self._closed = False
        self._own = Instance(model, settings, settings.machine())
        self._own.belong_to(self._lock)
        self._shown = self._own.outputs  # of the last run
        self._runs = 0
        self._under_way = 0  # the number of the run that advances in steps
        self._warming: Warming | None = None
        self._warming_lock = new_lock()
        self._swaps = Swaps(self._lock)

    # --- inputs ---

    def set_input(self, name: str | int, value: Given) -> None:
        """Keep an input for later schedules, which read it again. Raises InputError for a name that the model lacks."""
        with self._lock:
            self._check_open()
            self._own.inputs.keep(name, value)

    def empty_input(self, name: str | int = 0, shape: tuple[int, ...] | None = None) -> Tensor:
        """Return a tensor on this worker's backend for an input, which needs a `shape` if it has open dims. A
        TextureConverter or `upload` fills it.
        """
        value, made = self._own.inputs.concrete(name, shape)
        return Tensor.over(self._own.backend.alloc(made, value.dtype), made, value.dtype, value.name)

    # --- runs ---

    def schedule(self, /, *inputs: Any, **named: Any) -> Worker:
        """Begin a run, and return before its values exist. Inputs come by position, in one dict by name, as keywords,
        or from `set_input`. They are Tensors, arrays, or numbers in lists.

        The first run with new input shapes makes a plan; later runs only bind and submit. If the shape of a layer's
        output depends on data, the call waits for the inputs of that layer.
        """
        self._lock.acquire()  # by hand, in half of the time of `with`
        try:
            self._under_way = 0  # the run that advances in steps ends here
            if not self._swaps.is_idle:
                self._swaps.advance()
            own = self._own
            if named or watchers or self._closed or not own.repeat_run(inputs):
                values = self._gather(inputs, named)
                self._begin_run()
                own.run_whole(values)
                self._end_run(values)
            else:
                self._runs += 1
                self._shown = own.outputs
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
            values, own = self._gather(inputs, named), self._own
            waits = self._under_way and own.backend is not own.host  # a newer run may replace it: it uploads later
            hold(values, None if waits else own.parts.hold, own.guarded)
        if budget_ms is None:
            return self._steps(own, values, Parts.advance)
        check_budget(budget_ms)
        return self._spend(own, values, Budget(budget_ms / 1000))

    def _spend(self, own: Instance, values: Values, budget: Budget) -> Iterator[Spent]:
        def spend(parts: Parts, values: Values) -> Iterator[None]:
            return parts.spend(values, budget)

        for _ in self._steps(own, values, spend, budget):
            self._own.backend.flush()
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
                warming = Warming(shapes, self._plan_and_run(self._own, values))
            for run in warming.steps:
                warming.run = run or 0
                if run is None and end is None:
                    settle_kernels()
                elif end is not None and (run is None or perf_counter() >= end):
                    self._warming = warming
                    return False
        if end is None:
            for output in self._own.outputs.last.values():
                downloaded(output, "Worker.warmup()")
            settle_kernels()
        return self.ready

    def _plan_and_run(self, own: Instance, values: Values) -> Iterator[int | None]:
        """Make the plan, and run it, again once kernels are compiled. Yields 0, the run's number, or None to wait."""
        steps = own.parts.plan_ahead(dict(values))
        while True:
            with self._lock:
                self._check_open()
                if own is not self._own:
                    raise InputError(f"{own.model.name}: another model took its place: call warmup() again")
                if next(steps, None) is None:
                    break
            yield 0
        yield from (self._runs for _ in self._steps(own, values, Parts.advance, trial=True))
        if not self.ready:
            while not self.ready:
                yield None
            yield from (self._runs for _ in self._steps(own, values, Parts.advance, trial=True))

    def _steps(
        self,
        gathered: Instance,
        values: Values,
        begin: Callable[[Parts, Values], Iterator[T]],
        budget: Budget | None = None,
        trial: bool = False,
    ) -> Iterator[T]:
        """Take a step of a run at a time, and keep its outputs after the last. A trial leaves the states alone. The
        inputs were `gathered` for a model in whose place another may be now.
        """
        seconds = 0.0 if budget is None else budget.seconds
        with self._lock:
            self._check_open()
            self._under_way = 0  # the run before ends here
            goes_on = self._swaps.advance_within(budget, seconds)
            if gathered is not self._own:
                values.update(self._own.inputs.gather(({name: values[name] for name in self._own.inputs.names},), {}))
            self.states.add(values)  # as they are now
            self._begin_run()
            run = self._under_way = self._runs
            steps = begin(self.parts, values)
        try:
            while True:
                with self._lock:
                    self._check_open()
                    if run != self._runs:
                        raise InputError(f"{self.model.name}: {_ENDED}")
                    with self._own.entered():
                        step: Any = next(steps, END) if goes_on else None
                    if step is END:
                        self._end_run(values, trial)
                        return
                yield step
                goes_on = self._swaps.advance_within(budget, seconds)
        finally:
            if self._under_way == run:
                self._under_way = 0

    def _gather(self, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> Values:
        """Return the inputs of a run, states among them."""
        self._check_open()
        values = (own := self._own).inputs.gather(inputs, named)
        if own.outputs.targets:
            own.states.add(values)
            own.outputs.check_inputs(values)
        return values

    def _begin_run(self) -> None:
        self._runs += 1
        if self._own.check is not None:
            self._own.check.begin_run()
        for watcher in watchers:
            watcher.run_begins(self)

    def _end_run(self, values: Values, trial: bool = False) -> None:
        own = self._own
        if not trial:
            own.states.end(values)
        own.end_run(values)
        self._shown = own.outputs
        own.backend.flush()
        for watcher in watchers:
            watcher.run_submitted(self)

    # --- another model ---

    def swap(self, model: Source, inputs: Mapping[str, Any] | None = None, budget_ms: float = 0.5) -> Swap:
        """Begin to put another model in the place of this one: a Model, or anything that `load` takes. Runs of the old
        model continue; the exchange comes between two runs.

        A thread loads and prepares the model. On a GPU this thread uploads weights and makes the plan, in slices of
        `budget_ms` milliseconds: in each frame of an App, in `schedule`, in steps of `schedule_iterable` (as a part of
        their budget), or where the result is awaited or polled (see `Swap`). Another call cancels the first.

        The plan is for the shapes of the last run, or for those of `inputs`, a dict by name. The new model needs the
        same inputs and carried states. States that it can take are kept. Raises BackendError in another thread than a
        GPU worker's; other errors, such as InputError for other inputs, end the swap, and the old model stays.
        """
        check_budget(budget_ms)
        with self._lock:
            self._check_open()
            self._own.backend.flush()  # raises where its context is not current
            exchange, this = Worker._exchange, weakref.proxy(self)  # which may disappear without a release
            return self._swaps.begin(self._own, model, inputs, budget_ms / 1000, lambda new: exchange(this, new))

    def _exchange(self, new: Instance) -> tuple[str, ...] | None:
        """Let another instance run. Returns the states that begin again, or None while a run is under way."""
        if self._under_way:
            return None
        old = self._own
        reset = new.take_over(old)
        old.belong_to(None)
        new.belong_to(self._lock)
        self._own, self._warming = new, None
        self._swaps.retire(old, lambda: self._shown is old.outputs)  # `self` is a proxy
        return reset

    # --- outputs and states ---

    def peek_output(self, name: str | int | None = None) -> Tensor:
        """Return an output of the last run: by name, by index, or the first. Its values may still be pending.

        The worker owns it, and the next run writes into it: `numpy()` or `readback_and_clone()` keep values. A sequence
        is a list of tensors, and an empty optional is None.
        """
        with self._lock:
            self._check_open()
            return self._shown.value(name)  # type: ignore[no-any-return]

    def bind_output(self, name: str | int, tensor: Tensor | None) -> None:
        """Let later runs write an output into `tensor`, which moves to the worker's backend. None ends that.

        Raises InputError for an unknown name; runs raise it if the output has another shape or dtype.
        """
        with self._lock:
            self._check_open()
            self._own.outputs.bind(name, tensor)

    def copy_output(self, name: str | int, tensor: Tensor | None = None) -> Tensor:
        """Copy an output of the last run into `tensor`, or into a new one there; blocks if that is elsewhere."""
        with self._lock:
            self._check_open()
            return self._shown.copy(name, tensor)

    def state(self, name: str | None = None) -> Tensor:
        """Return the first state, or that of an input; ask again after each run. Raises InputError for another name."""
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
            self._under_way = 0

    # --- the end ---

    def release(self) -> None:
        """Wait for runs under way, and free all plans and constants. Further calls raise ClosedError."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._warming = None
            self._own.outputs.forget()
            self._own.host.wait_for_jobs()
            for watcher in watchers:
                watcher.worker_ends(self)
            self._shown = self._own.outputs
            self._swaps.release()
            self._own.release()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __reduce__(self) -> Any:
        raise InputError("a worker belongs to its process: pickle its model, and make a worker where it arrives")

    def __repr__(self) -> str:
        return f"Worker({self.model.name!r} on {self.backend_type}{', closed' if self._closed else ''})"
