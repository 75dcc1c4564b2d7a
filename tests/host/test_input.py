from __future__ import annotations

from perframe.host.input import (
    GamepadAxisEvent,
    GamepadButtonEvent,
    GamepadEvent,
    GamepadState,
    Input,
    KeyEvent,
    MouseButtonEvent,
    MouseMoveEvent,
    ScrollEvent,
    TextEvent,
    changes,
)


def test_keys_are_held_and_pressed_once() -> None:
    state = Input()
    state.update([KeyEvent("a", True), KeyEvent("left_shift", True)])
    assert state.keys == state.keys_pressed == {"a", "left_shift"}
    state.update([KeyEvent("a", True, repeat=True), KeyEvent("left_shift", False)])
    assert (state.keys, state.keys_pressed) == ({"a"}, set())
    state.update([KeyEvent("a", False), KeyEvent("unheard_of", False)])
    assert state.keys == set()


def test_a_key_that_is_tapped_within_a_frame_is_not_lost() -> None:
    state = Input()
    state.update([KeyEvent("space", True), KeyEvent("space", False)])
    assert (state.keys, state.keys_pressed) == (set(), {"space"})


def test_mouse_position_buttons_and_scrolling() -> None:
    state = Input()
    state.update([MouseMoveEvent((3.0, 4.0)), MouseButtonEvent("left", True, (5.0, 6.0))])
    assert (state.mouse_position, state.buttons, state.buttons_pressed) == ((5.0, 6.0), {"left"}, {"left"})
    state.update([ScrollEvent((0.0, 1.0)), ScrollEvent((0.5, 1.0))])
    assert (state.scroll, state.buttons_pressed) == ((0.5, 2.0), set())
    state.update([MouseButtonEvent("left", False, (5.0, 6.0))])
    assert (state.scroll, state.buttons) == ((0.0, 0.0), set())


def test_what_goes_up_and_what_is_typed_belongs_to_its_frame() -> None:
    state = Input()
    state.update([KeyEvent("a", True), TextEvent("ä"), TextEvent("b"), MouseButtonEvent("left", True)])
    assert (state.text, state.keys_released, state.buttons_released) == ("äb", set(), set())
    state.update([KeyEvent("a", False), MouseButtonEvent("left", False)])
    assert (state.text, state.keys_released, state.buttons_released) == ("", {"a"}, {"left"})
    state.update([])
    assert (state.keys_released, state.buttons_released) == (set(), set())


def test_a_gamepad_that_comes_and_goes() -> None:
    pad = GamepadState("Pad", {"left_x": 0.0, "left_trigger": -1.0}, frozenset({"a"}))
    moved = GamepadState("Pad", {"left_x": 0.5, "left_trigger": -1.0}, frozenset({"b"}))
    state = Input()
    events = list(changes({}, {2: pad}))
    assert events[:2] == [GamepadEvent(2, True, "Pad"), GamepadButtonEvent(2, "a", True)]
    state.update(events)
    assert state.gamepads[2].axes == pad.axes and state.gamepads[2].buttons_pressed == {"a"}
    events = list(changes({2: pad}, {2: moved}))
    assert events == [
        GamepadButtonEvent(2, "a", False),
        GamepadButtonEvent(2, "b", True),
        GamepadAxisEvent(2, "left_x", 0.5),
    ]
    state.update(events)
    assert (state.gamepads[2].buttons, state.gamepads[2].buttons_pressed) == ({"b"}, {"b"})
    state.update(changes({2: moved}, {2: moved}))
    assert (state.gamepads[2].buttons, state.gamepads[2].buttons_pressed) == ({"b"}, set())
    state.update(changes({2: moved}, {}))
    assert state.gamepads == {}
