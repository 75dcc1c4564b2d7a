"""The host: a frame loop with per-frame hooks, in a window, off screen or without GL. It knows nothing of inference."""

from perframe.host.app import App
from perframe.host.coroutines import next_frame, seconds
from perframe.host.failures import Failure
from perframe.host.frame import Clock, Frame, ManualClock, SystemClock
from perframe.host.guest import attach
from perframe.host.input import (
    CloseEvent,
    Event,
    Gamepad,
    GamepadAxisEvent,
    GamepadButtonEvent,
    GamepadEvent,
    Input,
    KeyEvent,
    MouseButtonEvent,
    MouseMoveEvent,
    ResizeEvent,
    ScrollEvent,
    TextEvent,
)
from perframe.host.runs import Run
from perframe.host.script import ProgressBar, Script
from perframe.host.surface import Surface, open_surface
from perframe.host.tasks import Task

__all__ = [
    "App",
    "Clock",
    "CloseEvent",
    "Event",
    "Failure",
    "Frame",
    "Gamepad",
    "GamepadAxisEvent",
    "GamepadButtonEvent",
    "GamepadEvent",
    "Input",
    "KeyEvent",
    "ManualClock",
    "MouseButtonEvent",
    "MouseMoveEvent",
    "ProgressBar",
    "ResizeEvent",
    "Run",
    "Script",
    "ScrollEvent",
    "Surface",
    "SystemClock",
    "Task",
    "TextEvent",
    "attach",
    "next_frame",
    "open_surface",
    "seconds",
]
