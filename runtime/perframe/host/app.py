"""The host loop."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from perframe.errors import ClosedError, InputError
from perframe.host.clock import Clock, SystemClock
from perframe.host.coroutines import CoroutineTask
from perframe.host.frame import Frame, Timeline
from perframe.host.input import CloseEvent, Event, Input
from perframe.host.pending import PendingResult, ReadbackTask, ScheduleTask
from perframe.host.script import Script, ScriptList
from perframe.host.surface import Surface, open_surface
from perframe.host.tasks import Task, TaskList
from perframe.tensor.readback import FrameState

if TYPE_CHECKING:
    import moderngl

T = TypeVar("T")

log = logging.getLogger("perframe")


class App:
    """A frame loop around scripts.

    `size` is the width and height to draw, in pixels. `headless` False asks for a window, True for none, None takes
    what can be had (see `open_surface`); a `surface` of your own takes the place of all these, and stays yours to
    release. `clock` gives the time; without one it is the system's. `fixed_update` stands for `fixed_delta_time`
    seconds and runs at most `max_fixed_steps` times a frame: what is beyond is dropped, so a simulation slows down
    when a machine cannot keep up.

    `run` releases everything at its end. In a `with` block that is left to the block, so that the app can be looked
    at, and run again, in between.
    """

    def __init__(
        self,
        size: tuple[int, int] = (1280, 720),
        title: str = "perframe",
        headless: bool | None = None,
        clock: Clock | None = None,
        fixed_delta_time: float = 1 / 60,
        max_fixed_steps: int = 8,
        vsync: bool = True,
        surface: Surface | None = None,
    ) -> None:
        self._timeline = Timeline(SystemClock() if clock is None else clock, fixed_delta_time, max_fixed_steps)
        self._scripts = ScriptList(self.start_coroutine)
        self._readbacks: TaskList[ReadbackTask[Any]] = TaskList()
        self._coroutines: TaskList[CoroutineTask[Any]] = TaskList()
        self._schedules: TaskList[ScheduleTask] = TaskList()
        self._posted: list[Event] = []
        self._screenshots: list[Path] = []
        self._in_frame = False
        self._in_with_block = False
        self._quitting = False
        self._released = False
        self.input = Input()
        self.frame: Frame | None = None
        self._owns_surface = surface is None
        self.surface = open_surface(size, title, headless, vsync) if surface is None else surface

    @property
    def ctx(self) -> moderngl.Context | None:
        """The surface's GL context, or None where there is no GL."""
        return self.surface.ctx

    @property
    def framebuffer(self) -> moderngl.Framebuffer | None:
        """What to render into, or None where there is no GL."""
        return self.surface.framebuffer

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of what is drawn into, in pixels."""
        return self.surface.size

    @property
    def clock(self) -> Clock:
        """Where time comes from."""
        return self._timeline.clock

    def run(self, *scripts: Script, frames: int | None = None) -> None:
        """Add the scripts and loop until `quit`, until the window is closed, or for `frames` frames.

        What a hook or a coroutine raises comes out here, with the script's and the hook's name added, after everything
        is released (in a `with` block: at the block's end).
        """
        if frames is not None and not isinstance(frames, int):
            raise InputError(f"run takes a whole number of frames, not {frames!r}")
        with nullcontext() if self._in_with_block else self:
            self._quitting = False
            for script in scripts:
                self.add(script)
            for _ in count() if frames is None else range(frames):
                if self._quitting or self.surface.should_close:
                    break
                self.loop_once()

    def loop_once(self) -> Frame:
        """One frame, for those who have a loop of their own. Returns its facts. Raises ClosedError after `release`."""
        with self._frame_scope():
            events = self.surface.poll_events()
            self.surface.begin_frame()
            self._scripts.start_waiting()
            self._deliver(events)
            frame = self._tick()
            self._readbacks.step()
            self._coroutines.step()
            for _ in range(frame.fixed_steps):
                self._scripts.call("fixed_update", frame)
            self._scripts.call("update", frame)
            self._scripts.call("late_update", frame)
            self._schedules.step()
            self._scripts.call("render", frame)
            self._save_screenshots()
            self.surface.swap()
        return frame

    def add(self, script: Script) -> None:
        """Add a script: its `awake` runs now, its `start` when the next frame begins.

        If `awake` fails, the script is not added. Raises InputError for what is no script, or is part of the app.
        """
        self._require_open()
        self._scripts.check(script)
        script.app = self
        try:
            self._scripts.add(script)
        except BaseException:
            self._cancel(script)
            raise

    def remove(self, script: Script) -> None:
        """Remove a script: what it owns is cancelled, its `destroy` runs now. Raises InputError if it is not here."""
        if script not in self._scripts:
            raise InputError(f"{type(script).__name__} is not part of the app")
        self._cancel(script)
        self._scripts.destroy(script)

    def quit(self) -> None:
        """End `run` when this frame is over."""
        self._quitting = True

    def post(self, event: Event) -> None:
        """Let an event happen in the next frame, as if the window had sent it."""
        self._posted.append(event)

    def start_coroutine(
        self, coroutine: Coroutine[Any, Any, T], name: str | None = None, owner: Script | None = None
    ) -> Task[T]:
        """Run a coroutine in the loop: at once up to its first `await`, from then on once a frame.

        It is cancelled when `owner` is removed or the app is released. If it fails, the error leaves the loop with
        `name` added, which is the coroutine's own unless given.
        """
        self._require_open()
        task = CoroutineTask(coroutine, self._timeline, name, owner)
        task.step()
        self._coroutines.add(task)
        return task

    def when_done(
        self, readback: PendingResult[T], callback: Callable[[T], object], owner: Script | None = None
    ) -> Task[T]:
        """Call `callback` with the result of a readback at the beginning of the first frame that finds it done.

        Never blocks. `owner` is as for `start_coroutine`.
        """
        self._require_open()
        task = ReadbackTask(readback, callback, owner)
        self._readbacks.add(task)
        return task

    def advance(
        self,
        steps: Iterable[object],
        budget_ms: float = 2.0,
        on_done: Callable[[], object] | None = None,
        owner: Script | None = None,
    ) -> Task[None]:
        """Take steps of an iterator, as `worker.schedule_iterable(x)`, every frame for `budget_ms` milliseconds.

        A step is never split, and at least one is taken a frame, so a long one may overrun. Time is what the app's
        clock says, or what the steps say if that is more: a step may yield its cost in milliseconds as a float. When
        the iterator ends, `on_done` is called, in the same frame and before `render`. `owner` is as for
        `start_coroutine`.
        """
        self._require_open()
        task = ScheduleTask(steps, self.clock, budget_ms, on_done, owner)
        self._schedules.add(task)
        return task

    def screenshot(self, path: str | os.PathLike[str]) -> None:
        """Write what is drawn to a PNG file: in a hook, when this frame is rendered; between two frames, now.

        The file appears when it is complete. Raises PerframeError for a window between two frames, which keeps nothing.
        """
        self._require_open()
        self._screenshots.append(Path(path))
        if not self._in_frame:
            self._save_screenshots()

    def release(self) -> None:
        """Cancel what is pending, destroy the scripts, the last first, and release the surface. May be called twice."""
        if self._released:
            return
        self._released = True
        with ExitStack() as stack:  # goes backwards, and through to its end whatever fails
            if self._owns_surface:
                stack.callback(self.surface.release)
            for script in self._scripts:
                stack.callback(self._scripts.destroy, script)
                stack.callback(self._cancel, script)
            stack.callback(self._cancel)

    def __enter__(self) -> App:
        self._in_with_block = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._in_with_block = False
        try:
            self.release()
        except Exception as another:
            if error is None:
                raise
            error.add_note(f"and while the app was released: {another!r}")  # the first error is the one to see
            log.error("the app was released after an error, and that failed too", exc_info=another)

    @contextmanager
    def _frame_scope(self) -> Iterator[None]:
        self._require_open()
        self._in_frame = True
        try:
            yield
        finally:
            self._in_frame = FrameState.inside = False

    def _deliver(self, events: list[Event]) -> None:
        posted, self._posted = self._posted, []
        events = [*events, *posted]
        self.input.update(events)
        for event in events:
            if isinstance(event, CloseEvent):
                self.quit()
            self._scripts.call("on_event", event)

    def _tick(self) -> Frame:
        budget_ms = sum(task.budget_ms for task in self._schedules)
        self.frame = frame = self._timeline.tick(self.surface.size, budget_ms)
        FrameState.index, FrameState.inside = frame.index, True
        return frame

    def _save_screenshots(self) -> None:
        paths, self._screenshots = self._screenshots, []
        if not paths:
            return
        from PIL import Image

        image = Image.fromarray(self.surface.read_pixels())
        for path in paths:
            part = path.with_name(f".{path.name}.{os.getpid()}.part")
            try:
                image.save(part, format="PNG")
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)

    def _cancel(self, owner: Script | None = None) -> None:
        self._schedules.cancel(owner)
        self._coroutines.cancel(owner)
        self._readbacks.cancel(owner)

    def _require_open(self) -> None:
        if self._released:
            raise ClosedError("the app is released: make another App")
