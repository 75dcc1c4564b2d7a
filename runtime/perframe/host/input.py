"""Events from a window or a test, and the state of keys and mouse that follows from them.

Positions are pixels of the framebuffer, from its top left corner. Keys and buttons have names: "a", "space",
"left_shift", "f1"; "left", "right", "middle", "4".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """A key went down or up. `repeat` marks the repeated events of a key that is held."""

    key: str
    pressed: bool
    repeat: bool = False
    modifiers: frozenset[str] = frozenset()
    """Some of "shift", "control", "alt" and "super"."""


@dataclass(frozen=True, slots=True)
class MouseButtonEvent:
    """A mouse button went down or up."""

    button: str
    pressed: bool
    position: tuple[float, float] = (0.0, 0.0)
    modifiers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MouseMoveEvent:
    """The mouse moved."""

    position: tuple[float, float]


@dataclass(frozen=True, slots=True)
class ScrollEvent:
    """The wheel or the touchpad scrolled, by `offset` lines to the right and up."""

    offset: tuple[float, float]


@dataclass(frozen=True, slots=True)
class ResizeEvent:
    """The surface has a new width and height, in pixels."""

    size: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CloseEvent:
    """The user wants the window closed; the loop ends after this frame."""


Event = KeyEvent | MouseButtonEvent | MouseMoveEvent | ScrollEvent | ResizeEvent | CloseEvent


@dataclass
class Input:
    """The keys and the mouse as they are in this frame."""

    keys: set[str] = field(default_factory=set)
    """Keys that are down."""
    keys_pressed: set[str] = field(default_factory=set)
    """Keys that went down in this frame."""
    buttons: set[str] = field(default_factory=set)
    """Mouse buttons that are down."""
    buttons_pressed: set[str] = field(default_factory=set)
    """Mouse buttons that went down in this frame."""
    mouse_position: tuple[float, float] = (0.0, 0.0)
    scroll: tuple[float, float] = (0.0, 0.0)
    """The scrolling of this frame."""

    def update(self, events: Iterable[Event]) -> None:
        """Update the state by the events of a frame."""
        self.keys_pressed.clear()
        self.buttons_pressed.clear()
        self.scroll = (0.0, 0.0)
        for event in events:
            match event:
                case KeyEvent(key, pressed, repeat):
                    _hold(key, pressed, repeat, self.keys, self.keys_pressed)
                case MouseButtonEvent(button, pressed, position):
                    _hold(button, pressed, False, self.buttons, self.buttons_pressed)
                    self.mouse_position = position
                case MouseMoveEvent(position):
                    self.mouse_position = position
                case ScrollEvent((right, up)):
                    self.scroll = (self.scroll[0] + right, self.scroll[1] + up)


def _hold(name: str, pressed: bool, repeat: bool, down: set[str], newly: set[str]) -> None:
    if not pressed:
        down.discard(name)
        return
    down.add(name)
    if not repeat:
        newly.add(name)
