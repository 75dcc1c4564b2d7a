from __future__ import annotations

from perframe.host.input import Input, KeyEvent, MouseButtonEvent, MouseMoveEvent, ScrollEvent


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
