"""Events from a window or a test, and the state of keys, mouse and gamepads that follows from them.

Positions are pixels of the framebuffer, from its top left corner. Keys and buttons have names: "a", "space",
"left_shift", "f1"; "left", "right", "middle", "4". Keys are those of an American keyboard; `TextEvent` has the text
typed on the user's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
class TextEvent:
    """The user typed text: a character, by the user's keyboard and input method."""

    text: str


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
class GamepadEvent:
    """A gamepad, of a number from 0, was connected or disconnected."""

    gamepad: int
    connected: bool
    name: str = ""


@dataclass(frozen=True, slots=True)
class GamepadButtonEvent:
    """A button of a gamepad went down or up: "a", "left_bumper", "dpad_up", "start"."""

    gamepad: int
    button: str
    pressed: bool


@dataclass(frozen=True, slots=True)
class GamepadAxisEvent:
    """A stick or a trigger moved: "left_x", "right_y", "left_trigger"; from -1 (left, up, free) to 1."""

    gamepad: int
    axis: str
    value: float


@dataclass(frozen=True, slots=True)
class ResizeEvent:
    """The surface has a new width and height, in pixels."""

    size: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CloseEvent:
    """The user wants the window closed; the loop ends after this frame."""


Event = (
    KeyEvent
    | TextEvent
    | MouseButtonEvent
    | MouseMoveEvent
    | ScrollEvent
    | GamepadEvent
    | GamepadButtonEvent
    | GamepadAxisEvent
    | ResizeEvent
    | CloseEvent
)


@dataclass
class Gamepad:
    """The state of a gamepad in this frame."""

    name: str = ""
    axes: dict[str, float] = field(default_factory=dict)
    """From -1 to 1; an axis that has not moved is missing."""
    buttons: set[str] = field(default_factory=set)
    """Buttons that are down."""
    buttons_pressed: set[str] = field(default_factory=set)
    """Buttons that went down in this frame."""


@dataclass
class Input:
    """The state of keys, mouse and gamepads in this frame."""

    keys: set[str] = field(default_factory=set)
    """Keys that are down."""
    keys_pressed: set[str] = field(default_factory=set)
    """Keys that went down in this frame."""
    keys_released: set[str] = field(default_factory=set)
    """Keys that went up in this frame."""
    text: str = ""
    """Text typed in this frame."""
    buttons: set[str] = field(default_factory=set)
    """Mouse buttons that are down."""
    buttons_pressed: set[str] = field(default_factory=set)
    """Mouse buttons that went down in this frame."""
    buttons_released: set[str] = field(default_factory=set)
    """Mouse buttons that went up in this frame."""
    mouse_position: tuple[float, float] = (0.0, 0.0)
    scroll: tuple[float, float] = (0.0, 0.0)
    """The scrolling of this frame."""
    gamepads: dict[int, Gamepad] = field(default_factory=dict)
    """Gamepads that are connected, by number."""

    def update(self, events: Iterable[Event]) -> None:
        """Update the state by the events of a frame."""
        latest = (self.keys_pressed, self.keys_released, self.buttons_pressed, self.buttons_released)
        for names in (*latest, *(gamepad.buttons_pressed for gamepad in self.gamepads.values())):
            names.clear()
        self.text, self.scroll = "", (0.0, 0.0)
        for event in events:
            match event:
                case KeyEvent(key, pressed, repeat):
                    _hold(key, pressed, repeat, self.keys, self.keys_pressed, self.keys_released)
                case TextEvent(text):
                    self.text += text
                case MouseButtonEvent(button, pressed, position):
                    _hold(button, pressed, False, self.buttons, self.buttons_pressed, self.buttons_released)
                    self.mouse_position = position
                case MouseMoveEvent(position):
                    self.mouse_position = position
                case ScrollEvent((right, up)):
                    self.scroll = (self.scroll[0] + right, self.scroll[1] + up)
                case GamepadEvent(number, connected, name):
                    self.gamepads.pop(number, None)
                    if connected:
                        self.gamepads[number] = Gamepad(name)
                case GamepadButtonEvent(number, button, pressed):
                    gamepad = self.gamepads.setdefault(number, Gamepad())
                    _hold(button, pressed, False, gamepad.buttons, gamepad.buttons_pressed, set())
                case GamepadAxisEvent(number, axis, value):
                    self.gamepads.setdefault(number, Gamepad()).axes[axis] = value


def _hold(name: str, pressed: bool, repeat: bool, down: set[str], newly: set[str], released: set[str]) -> None:
    if not pressed:
        down.discard(name)
        released.add(name)
        return
    down.add(name)
    if not repeat:
        newly.add(name)


@dataclass(frozen=True)
class GamepadState:
    """A gamepad's name, its axes from -1 to 1, and the buttons that are down."""

    name: str
    axes: Mapping[str, float] = field(default_factory=dict)
    buttons: frozenset[str] = frozenset()


def changes(before: Mapping[int, GamepadState], after: Mapping[int, GamepadState]) -> Iterator[Event]:
    """The events between the earlier and the current state of the gamepads."""
    for number in before.keys() - after.keys():
        yield GamepadEvent(number, False, before[number].name)
    for number, state in after.items():
        old = before.get(number)
        if old is None:
            yield GamepadEvent(number, True, state.name)
            old = GamepadState(state.name)
        for button in sorted(old.buttons ^ state.buttons):
            yield GamepadButtonEvent(number, button, button in state.buttons)
        for axis, value in state.axes.items():
            if value != old.axes.get(axis):
                yield GamepadAxisEvent(number, axis, value)
