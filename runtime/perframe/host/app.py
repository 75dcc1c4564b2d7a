"""The host loop."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import count
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import TypeVar, overload

from perframe.errors import BackendError, ClosedError, ContextLostError, InputError, PerframeError
from perframe.graphics import GLContext, GLFramebuffer
from perframe.host.failures import Failures, show_user_alone
from perframe.host.frame import Clock, Frame, SystemClock, TimeControls, Timeline
from perframe.host.input import CloseEvent, Event, Input
from perframe.host.pixels import Pixels, as_path, picture_format, write_picture
from perframe.host.progress import CompilingBar
from perframe.host.reload import Reloader, SwapsModels
from perframe.host.scripts import AnyScript, Hooks, ScriptList
from perframe.host.signatures import check_callback
from perframe.host.surface import Surface, check_surface, open_surface, require_thread
from perframe.host.watchdog import Watchdog
from perframe.host.work import TaskControls
from perframe.tensor.frames import FrameState
from perframe.tensor.memory import MemoryLimit

log = logging.getLogger("perframe")
AnyHooks = TypeVar("AnyHooks", bound=Hooks)


class App(TimeControls, TaskControls):
    """A frame loop around scripts.

    `size` is the width and height of the surface, in pixels. `headless` False asks for a window, True for an off-screen
    framebuffer, and None tries both (see `open_surface`). `surface` replaces all of these with your own surface, which
    you release yourself. `clock` gives the time; the default is the system's. One `fixed_update` stands for
    `fixed_delta_time` seconds, and runs at most `max_fixed_steps` times a frame. Further steps are dropped, so a
    simulation slows down when the machine cannot keep up.

    An error of a script does not end the loop: it is logged with the names of the script and its hook, counted in
    `failures`, and shown on the surface for some seconds. With `stop_on_error`, `run` raises it. A script whose `start`
    fails is disabled. If this happens to all scripts, `run` raises the error. It also raises a ContextLostError.

    With `reload`, files of scripts that change are reloaded while they run. The runs of all workers (see `schedule`)
    share `budget_ms` milliseconds a frame; without it each has its own. `memory_mb` limits perframe's memory in MiB
    until the app is released: see MemoryLimit. `run` releases everything at its end. In a
    `with` block the end of the block does so instead, so that the app can be inspected and run again inside the block.
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
        budget_ms: float | None = None,
        stop_on_error: bool = False,
        reload: bool = False,
        memory_mb: float | None = None,
    ) -> None:
        self.memory = None if memory_mb is None else MemoryLimit(memory_mb)
        self._timeline = Timeline(SystemClock() if clock is None else clock, fixed_delta_time, max_fixed_steps)
        self.stop_on_error = stop_on_error
        self.failures = Failures(self.clock)
        self._scripts = ScriptList(self.start_coroutine, self._goes_on)
        TaskControls.__init__(self, budget_ms)
        self._reloader = Reloader(self._scripts, self.failures) if reload else None
        self._watchdog = Watchdog()
        self.frame_state = FrameState()  # what readbacks ask about its frames
        self._compiling = CompilingBar()
        self._posted: list[Event] = []
        self._screenshots: list[Path] = []
        self._in_frame = False
        self._in_with_block = False
        self._quitting = self._is_last_frame = False
        self._last_picture: Pixels | None = None  # of the last frame of `run`
        self._released = False
        self.input = Input()
        self.frame: Frame | None = None
        self._owns_surface = surface is None
        self.surface = open_surface(size, title, headless, vsync) if surface is None else check_surface(surface)

    @property
    def has_gl(self) -> bool:
        """Whether the surface has OpenGL: `ctx` and `framebuffer` raise BackendError without it."""
        return self.surface.ctx is not None

    @property
    def ctx(self) -> GLContext:
        """The surface's GL context. Raises BackendError where there is no GL.

        A worker with `backend="auto"` takes `ctx=app.surface.ctx`, which is None there.
        """
        if (ctx := self.surface.ctx) is None:
            raise _no_gl("ctx")
        return ctx

    @property
    def framebuffer(self) -> GLFramebuffer:
        """The framebuffer to render into. Raises BackendError where there is no GL."""
        if (framebuffer := self.surface.framebuffer) is None:
            raise _no_gl("framebuffer")
        return framebuffer

    def __repr__(self) -> str:
        return "App(released)" if self._released else "App({}×{})".format(*self.size)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the surface in pixels."""
        return self.surface.size

    @property
    def clock(self) -> Clock:
        """The source of the time."""
        return self._timeline.clock

    def run(self, *scripts: AnyScript, frames: int | None = None) -> None:
        """Add the scripts and loop until `quit`, until the window is closed, or for `frames` frames.

        Ctrl-C raises KeyboardInterrupt, in a window and off screen: catch it to continue after `run`. If an error ends
        the loop, `run` releases everything (in a `with` block the block's end releases), and raises the error with the
        names of the script and the hook added.
        """
        if frames is not None and not (isinstance(frames, Integral) and frames >= 0):
            raise InputError(f"run takes an integer number of frames, not {frames!r}")
        self._require_between_frames("run()")
        with nullcontext() if self._in_with_block else self:
            self._quitting = False
            for script in scripts:
                self.add(script)
            if frames is None and not any(self._scripts):
                log.warning(
                    "this app has no script, and runs until quit() or Ctrl-C: pass a script to run(), or frames=N"
                )
            for index in count() if frames is None else range(frames):
                if self._quitting or self._released or self.surface.should_close:
                    break
                self._is_last_frame = index + 1 == frames
                try:
                    self.loop_once()
                except KeyboardInterrupt as interrupt:
                    show_user_alone(interrupt)
                    raise

    def loop_once(self) -> Frame:
        """Run one frame in your own loop, and return its facts. Raises ClosedError after `release`, and PerframeError
        within a frame of this app.
        """
        with self._frame_scope():
            events = self.surface.poll_events()
            self.surface.begin_frame()
            if self._reloader is not None:
                self._reloader.step()
            self._scripts.start_waiting()
            self._deliver(events)
            frame = self._tick()
            if not self.paused or self._timeline.steps_once:
                self._advance(frame)
            self._timeline.steps_once = False
            self._scripts.call("render", frame)
            if not self._released:  # by a script of this frame
                self.failures.show(self.surface)
                self._save_screenshots()
                self._keep_last_picture()
                if len(self.failures) == 0:  # they lie in the same place
                    self._compiling.show(self.surface)  # in no screenshot
                self.surface.swap()
        return frame

    @overload
    def add(self, script: AnyHooks) -> AnyHooks: ...
    @overload
    def add(self, script: Callable[..., object]) -> Hooks: ...

    def add(self, script: AnyScript) -> Hooks:
        """Add and return a script: its `awake` runs now, its `start` when the next frame begins.

        A function becomes a script whose `update` calls it. The function takes `frame`, `app`, or both. If `awake`
        fails, the script is not added. Raises InputError if it is neither a Script nor a function, has a hook with
        other parameters than those of `Script`, or is already part of the app.
        """
        self._require_open()
        accepted = self._scripts.accept(script)
        accepted.app = self
        try:
            self._scripts.add(accepted)
            if self._reloader is not None:
                self._reloader.add(accepted)
        except BaseException:
            self._cancel(accepted)
            raise
        return accepted

    def remove(self, script: AnyScript) -> None:
        """Remove a script: cancel its tasks, and run its `destroy` now. Raises InputError if it is not in the app."""
        script = self._scripts.find(script)
        self._cancel(script)
        self._scripts.destroy(script)

    def quit(self) -> None:
        """End `run` when this frame is over."""
        self._quitting = True

    def post(self, event: Event) -> None:
        """Deliver an event in the next frame, as if the window had sent it."""
        self._posted.append(event)

    def watch(
        self,
        path: str | os.PathLike[str],
        callback: Callable[[Path], object] | SwapsModels,
        owner: Hooks | None = None,
    ) -> None:
        """Call `callback(path)` now, and with `reload` also when the file has changed: to compile a shader again, for
        example. A worker in the place of the function takes the model of the changed file, as by `worker.swap`. A later
        error is shown until the file is fixed. `owner` is as for `start_coroutine`.
        """
        self._require_open()
        file = as_path(path, "a watched file").resolve()
        if not callable(callback):
            if not callable(getattr(callback, "swap", None)):
                raise InputError(f"watch takes a function of the path, or a worker, and got {callback!r}")
            if self._reloader is not None:
                self._reloader.watch_model(file, callback, owner)
            return
        check_callback(callback, "watch", "path")
        callback(file)
        if self._reloader is not None:
            self._reloader.watch(file, callback, owner)

    def screenshot(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file: when this frame is rendered, if called in a hook; otherwise now. After `run` it
        is the picture of its last frame. The suffix names the format: .png, .jpg, .webp or .bmp.

        The file appears only when it is complete. Raises PerframeError for a window between two frames, because a
        window keeps no picture that it has shown, and InputError for a file that cannot be written. Such an error of a
        hook's screenshot is reported like those of scripts.
        """
        file = as_path(path, "a screenshot")
        picture_format(file)
        if self._last_picture is not None and not self._in_frame:
            write_picture(self._last_picture, file)
            return
        self._require_open()
        self._screenshots.append(file)
        if not self._in_frame:
            self._save_screenshots()

    def release(self) -> None:
        """Cancel all tasks, destroy the scripts in reverse order, and release the surface. May be called twice."""
        if self._released:
            return
        self._released = True
        self._watchdog.release()
        if self._reloader is not None:
            self._reloader.release()
        with ExitStack() as stack:  # calls its callbacks in reverse order, all of them even if one fails
            if self.memory is not None:
                stack.callback(self.memory.release)
            if self._owns_surface:
                stack.callback(self.surface.release)
            if self._event_loop is not None:
                stack.callback(self._event_loop.end)
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
            error.add_note(f"and while the app was released: {another!r}")  # the first error is the one to raise
            log.error("the app was released after an error, and the release failed too", exc_info=another)

    @contextmanager
    def _frame_scope(self) -> Iterator[None]:
        self._require_between_frames("loop_once()")
        self._in_frame = True
        self._watchdog.begin()
        try:
            with self.frame_state.entered():
                yield
        finally:
            self._watchdog.end()
            self._in_frame = False

    def _advance(self, frame: Frame) -> None:
        """Advance everything that depends on time."""
        self._receive()
        for _ in range(frame.fixed_steps):
            self._scripts.call("fixed_update", frame)
        self._scripts.call("update", frame)
        self._scripts.call("late_update", frame)
        self._spend()

    def _goes_on(self, where: str, error: Exception, stays: bool = False) -> bool:
        """Report an error, and return whether the loop continues."""
        if self.stop_on_error or isinstance(error, ContextLostError):
            return False
        self.failures.add(where, error, stays)
        return True

    def _deliver(self, events: list[Event]) -> None:
        posted, self._posted = self._posted, []
        events = [*events, *posted]
        self.input.update(events)
        for event in events:
            if isinstance(event, CloseEvent):
                self.quit()
            self._scripts.call("on_event", event)

    def _tick(self) -> Frame:
        self.frame = frame = self._timeline.tick(self.surface.size, self._expected_ms())
        self.frame_state.begin(frame.index)
        return frame

    def _save_screenshots(self) -> None:
        paths, self._screenshots = self._screenshots, []
        pixels = self.surface.read_pixels() if paths else None
        for path in paths:
            try:
                write_picture(pixels, path)
            except InputError as error:
                if not self._in_frame or not self._goes_on(f"screenshot {path.name}", error):
                    raise

    def _keep_last_picture(self) -> None:
        """Keep the picture of the last frame of `run` for a screenshot after it."""
        is_last, self._is_last_frame = self._is_last_frame or self._quitting, False
        read = getattr(self.surface, "read_pixels", None)  # a surface of the caller's may have none
        self._last_picture = read() if is_last and self._owns_surface and read is not None else None

    def _cancel(self, owner: Hooks | None = None) -> None:
        self._cancel_tasks(owner)
        if self._reloader is not None and owner is not None:
            self._reloader.cancel(owner)

    def _require_between_frames(self, call: str) -> None:
        self._require_open()
        if self._in_frame:
            raise PerframeError(
                f"{call} was called within a frame of the same app, which would never end: let the hook return, or "
                "await pf.next_frame()"
            )

    def _require_open(self) -> None:
        if self._released:
            raise ClosedError("the app is released: make another App; one that is entered by `with` runs several times")
        require_thread(self.surface)


def _no_gl(name: str) -> BackendError:
    return BackendError(
        f"app.{name} needs OpenGL, and there is none here (see `perframe doctor`): test app.has_gl first, and show "
        "pictures by app.surface.present(pixels). Workers take ctx=app.surface.ctx, which is None here"
    )
