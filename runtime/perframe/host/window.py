"""A window on the screen. Only this file imports glfw, so import it only where a window is needed."""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
import warnings
from typing import Any

import glfw
import moderngl
import numpy as np

from perframe.errors import BackendError, PerframeError
from perframe.graphics.headless_context import claim_process, install_advice, making_contexts, versions
from perframe.host import input as events
from perframe.host import pixels as picture
from perframe.host.pixels import Pixels

# Headless contexts on Linux are EGL's. If a thread with a current EGL context makes a GLX context current, X ends the
# process. So windows use EGL too if they can.
_VIRTUAL = ", or Xvfb (xvfb-run)" if sys.platform.startswith("linux") else ""
_APIS = (
    (glfw.EGL_CONTEXT_API, glfw.NATIVE_CONTEXT_API) if sys.platform.startswith("linux") else (glfw.NATIVE_CONTEXT_API,)
)

_KEYS = {
    value: name.removeprefix("KEY_").lower()
    for name, value in vars(glfw).items()
    if name.startswith("KEY_") and name not in ("KEY_UNKNOWN", "KEY_LAST")
}
_BUTTONS = {glfw.MOUSE_BUTTON_LEFT: "left", glfw.MOUSE_BUTTON_RIGHT: "right", glfw.MOUSE_BUTTON_MIDDLE: "middle"}
_PADS = {  # some have a second name, after the first
    kind: {
        value: name.removeprefix(f"GAMEPAD_{kind}_").lower()
        for name, value in reversed(vars(glfw).items())
        if name.startswith(f"GAMEPAD_{kind}_")
    }
    for kind in ("BUTTON", "AXIS")
}
_POLLS_BETWEEN_SCANS = 60  # for gamepads that are new
_MODIFIERS = {
    glfw.MOD_SHIFT: "shift",
    glfw.MOD_CONTROL: "control",
    glfw.MOD_ALT: "alt",
    glfw.MOD_SUPER: "super",
}


class Window:
    """A resizable window with a GL context. Raises BackendError without a display or without GL 3.3.

    The argument `size` is in the window system's units; `Window.size` is the resulting size in pixels.
    """

    shows_progress = True  # a user watches it, and no recording is made of it

    def __init__(self, size: tuple[int, int], title: str, vsync: bool = True) -> None:
        claim_process()
        self.thread = threading.get_ident()
        self._handle = _create_window(size, title)
        self._context = _WindowContext(self._handle)
        self._context.__enter__()
        self.vsync = vsync
        with making_contexts:
            moderngl.init_context(self._context)
            self.ctx = moderngl.get_context()
        self.framebuffer = self.ctx.screen
        self._size = self._reported = glfw.get_framebuffer_size(self._handle)
        self._events: list[events.Event] = []
        self._gamepads: dict[int, events.GamepadState] = {}
        self._polls = 0
        self._windowed: tuple[int, int, int, int] | None = None  # x, y, width, height before full screen
        self._shown = False
        self._released = False
        self._listen()
        self.begin_frame()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the framebuffer in pixels. A minimized window keeps its last size."""
        return self._size

    @property
    def should_close(self) -> bool:
        """Whether the user wants to close the window."""
        return bool(glfw.window_should_close(self._handle))

    @property
    def scale(self) -> float:
        """Pixels for a unit of the window system: 2 on many dense screens. Draw text and lines that much larger."""
        return float(glfw.get_window_content_scale(self._handle)[0])

    @property
    def vsync(self) -> bool:
        """Whether `swap` waits for the display. Of several windows let only one wait, or each waits for itself."""
        return self._vsync

    @vsync.setter
    def vsync(self, vsync: bool) -> None:
        self._vsync = bool(vsync)
        self._context.__enter__()  # the interval belongs to the current context
        glfw.swap_interval(int(self._vsync))

    @property
    def fullscreen(self) -> bool:
        """Whether the window fills a screen; it keeps its context and everything in it."""
        return self._windowed is not None

    @fullscreen.setter
    def fullscreen(self, fullscreen: bool) -> None:
        if bool(fullscreen) == self.fullscreen:
            return
        if fullscreen:
            self._windowed = (*glfw.get_window_pos(self._handle), *glfw.get_window_size(self._handle))
            monitor = _monitor_below(self._windowed)
            mode = glfw.get_video_mode(monitor)
            glfw.set_window_monitor(self._handle, monitor, 0, 0, mode.size.width, mode.size.height, mode.refresh_rate)
        elif self._windowed is not None:
            glfw.set_window_monitor(self._handle, None, *self._windowed, 0)  # type: ignore[arg-type]
            self._windowed = None
        self.vsync = self._vsync  # some systems forget the interval

    def poll_events(self) -> list[events.Event]:
        """Return the events since the last call."""
        glfw.poll_events()
        reported = glfw.get_framebuffer_size(self._handle)
        if reported != self._reported:  # the window has this size now, and its event may come in a later frame
            self._reported = reported
            self._on_resize(self._handle, *reported)
        gamepads = self._read_gamepads()
        self._events += events.changes(self._gamepads, gamepads)
        self._gamepads = gamepads
        taken, self._events = self._events, []
        return taken

    def begin_frame(self) -> None:
        """Make the context current, bind the window's framebuffer at its present size, and clear it to black."""
        claim_process()
        picture.require_context(self.ctx)
        self._shown = False
        self._context.__enter__()
        self.framebuffer._size = self._size  # type: ignore[attr-defined]  # moderngl keeps the first size
        self.framebuffer.viewport = (0, 0, *self._size)
        self.framebuffer.use()
        self.framebuffer.clear(alpha=1.0)

    def present(self, pixels: np.ndarray[Any, Any]) -> None:
        """Fill the window with a picture. Raises InputError if it is not one."""
        picture.draw(self.ctx, self.framebuffer, picture.fit(pixels, self._size))

    def draw_over(self, pixels: Pixels) -> None:
        """Draw a picture over the lower left corner."""
        picture.draw(self.ctx, self.framebuffer, pixels)

    def read_pixels(self) -> Pixels:
        """Return this frame's picture, H×W×3, top row first. Waits for the GPU. Raises PerframeError after `swap`."""
        if self._shown:
            raise PerframeError("a window keeps no picture that it has shown: read it in a hook, before the frame ends")
        return picture.read_screen(self.ctx, self.framebuffer, self._size)

    def swap(self) -> None:
        """Show the picture. With vsync it waits for the display."""
        glfw.swap_buffers(self._handle)
        self._shown = True

    def release(self) -> None:
        """Close the window. glfw stays initialized, because the application may have other windows."""
        if self._released:
            return
        self._released = True
        claim_process()
        self.ctx.release()
        self._context.__exit__()
        glfw.destroy_window(self._handle)

    def _listen(self) -> None:
        glfw.set_key_callback(self._handle, self._on_key)
        glfw.set_char_callback(self._handle, self._on_text)
        glfw.set_mouse_button_callback(self._handle, self._on_mouse_button)
        glfw.set_cursor_pos_callback(self._handle, self._on_mouse_move)
        glfw.set_scroll_callback(self._handle, self._on_scroll)
        glfw.set_framebuffer_size_callback(self._handle, self._on_resize)
        glfw.set_window_close_callback(self._handle, self._on_close)

    def _on_key(self, _handle: Any, key: int, scancode: int, action: int, modifiers: int) -> None:
        name = _KEYS.get(key, f"scancode_{scancode}")
        self._events.append(events.KeyEvent(name, action != glfw.RELEASE, action == glfw.REPEAT, _modifiers(modifiers)))

    def _on_text(self, _handle: Any, codepoint: int) -> None:
        self._events.append(events.TextEvent(chr(codepoint)))

    def _on_mouse_button(self, _handle: Any, button: int, action: int, modifiers: int) -> None:
        name = _BUTTONS.get(button, str(button + 1))
        position = self._in_pixels(*glfw.get_cursor_pos(self._handle))
        self._events.append(events.MouseButtonEvent(name, action == glfw.PRESS, position, _modifiers(modifiers)))

    def _on_mouse_move(self, _handle: Any, x: float, y: float) -> None:
        self._events.append(events.MouseMoveEvent(self._in_pixels(x, y)))

    def _on_scroll(self, _handle: Any, right: float, up: float) -> None:
        self._events.append(events.ScrollEvent((right, up)))

    def _on_resize(self, _handle: Any, width: int, height: int) -> None:
        if width and height and (width, height) != self._size:  # glfw reports 0×0 for a minimized window
            self._size = (width, height)
            self._events.append(events.ResizeEvent(self._size))

    def _on_close(self, _handle: Any) -> None:
        self._events.append(events.CloseEvent())

    def _read_gamepads(self) -> dict[int, events.GamepadState]:
        """The gamepads. New ones are looked for once in a while, because that takes longer."""
        numbers = range(glfw.JOYSTICK_LAST + 1) if self._polls % _POLLS_BETWEEN_SCANS == 0 else tuple(self._gamepads)
        self._polls += 1
        states = {}
        for number in numbers:
            if glfw.joystick_is_gamepad(number) and (state := glfw.get_gamepad_state(number)):
                known = self._gamepads.get(number)
                name = known.name if known else glfw.get_gamepad_name(number) or ""
                axes = {axis: round(state.axes[index], 3) for index, axis in _PADS["AXIS"].items()}
                down = frozenset(button for index, button in _PADS["BUTTON"].items() if state.buttons[index])
                states[number] = events.GamepadState(name, axes, down)
        return states

    def _in_pixels(self, x: float, y: float) -> tuple[float, float]:
        """Convert a position to pixels. On some screens the window system's units are larger than pixels."""
        width, height = glfw.get_window_size(self._handle)
        return x * self._size[0] / max(width, 1), y * self._size[1] / max(height, 1)


class _WindowContext:
    """A window's context with the methods that moderngl needs. By itself moderngl finds a window's context only with
    GLX, WGL and CGL, and not with EGL.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def load(self, name: str) -> int:
        """The address of a GL function, or 0. Some drivers return an address for every name."""
        return ctypes.cast(glfw.get_proc_address(name), ctypes.c_void_p).value or 0

    load_opengl_function = load

    def __enter__(self) -> None:
        glfw.make_context_current(self._handle)

    def __exit__(self, *_error: object) -> None:
        glfw.make_context_current(None)  # type: ignore[arg-type]

    def release(self) -> None:
        """Do nothing: the context lives as long as its window."""


def _create_window(size: tuple[int, int], title: str) -> Any:
    if sys.platform == "darwin" and threading.current_thread() is not threading.main_thread():
        raise BackendError(
            "no window: macOS ends a process that opens one outside of its main thread; make the App there, or pass "
            "headless=True"
        )
    with warnings.catch_warnings():  # the raised error contains glfw's warnings
        warnings.simplefilter("ignore", glfw.GLFWError)
        if not glfw.init():
            raise BackendError(f"no window: {_reason()}; a display is needed{_VIRTUAL}")
        reasons = []
        try:
            for api, version in itertools.product(_APIS, versions()):
                major, minor = version // 100, version // 10 % 10
                glfw.default_window_hints()
                glfw.window_hint(glfw.CONTEXT_CREATION_API, api)
                glfw.window_hint(glfw.CONTEXT_VERSION_MAJOR, major)
                glfw.window_hint(glfw.CONTEXT_VERSION_MINOR, minor)
                glfw.window_hint(glfw.OPENGL_PROFILE, glfw.OPENGL_CORE_PROFILE)
                glfw.window_hint(glfw.OPENGL_FORWARD_COMPAT, True)
                handle = glfw.create_window(*size, title, None, None)
                if handle:
                    return handle
                reasons.append(f"GL {major}.{minor}: {_reason()}")
        finally:
            glfw.default_window_hints()  # hints last, and the application's next window has its own
    raise BackendError(f"no window with OpenGL 3.3 or newer ({'; '.join(reasons)}): {install_advice()}")


def _monitor_below(window: tuple[int, int, int, int]) -> Any:
    """The monitor on which the window's center lies, or the first one."""
    x, y = window[0] + window[2] // 2, window[1] + window[3] // 2
    monitors = glfw.get_monitors()
    if not monitors:
        raise BackendError("no full screen: the system reports no monitor")
    for monitor in monitors:
        (left, top), size = glfw.get_monitor_pos(monitor), glfw.get_video_mode(monitor).size
        if left <= x < left + size.width and top <= y < top + size.height:
            return monitor
    return monitors[0]


def _reason() -> str:
    """glfw's last error message."""
    description: Any = glfw.get_error()[1]  # bytes, whatever its stub says
    return description.decode(errors="replace") if description else "glfw gives no reason"


def _modifiers(bits: int) -> frozenset[str]:
    return frozenset(name for bit, name in _MODIFIERS.items() if bits & bit)
