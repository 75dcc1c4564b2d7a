"""Gamepads: their state in a frame, and the events that lead from one state to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from perframe.host.input import Event, GamepadAxisEvent, GamepadButtonEvent, GamepadEvent


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
