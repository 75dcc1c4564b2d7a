"""perframe in a window of moderngl-window. `python demos/guests/in_moderngl_window.py`."""

from typing import Any

from moderngl_window.context.base import WindowConfig
from painting import Painting

import perframe as pf
from perframe.host import MouseButtonEvent


class Window(WindowConfig):
    """A window that shows the painting, and the picture while the mouse is pressed."""

    title = "perframe in moderngl-window: press the mouse"
    gl_version = (3, 3)
    window_size = (640, 360)
    aspect_ratio = None  # type: ignore[assignment]  # moderngl-window documents None for any

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.app = pf.attach(Painting(), ctx=self.ctx)

    def on_render(self, time: float, frame_time: float) -> None:
        self.app.loop_once()

    def on_mouse_press_event(self, x: int, y: int, button: int) -> None:
        self.app.post(MouseButtonEvent("left", True, (x, y)))

    def on_mouse_release_event(self, x: int, y: int, button: int) -> None:
        self.app.post(MouseButtonEvent("left", False, (x, y)))

    def on_close(self) -> None:
        self.app.release()


Window.run()
