from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perframe.errors import InputError
from perframe.host.frame import Frame, ManualClock, SystemClock, Timeline

SIZE = (64, 48)


def ticks(clock: ManualClock, deltas: list[float], fixed: float = 0.25, cap: int = 8) -> list[Frame]:
    timeline = Timeline(clock, fixed, cap)
    frames = [timeline.tick(SIZE, 0.0)]
    for delta in deltas:
        clock.advance(delta)
        frames.append(timeline.tick(SIZE, 0.0))
    return frames


def test_system_clock_goes_forward() -> None:
    clock = SystemClock()
    assert clock.now() <= clock.tick() <= clock.now()


def test_manual_clock_stands_still_until_told() -> None:
    clock = ManualClock(step=0.5)
    assert (clock.now(), clock.now()) == (0.0, 0.0)
    assert clock.tick() == 0.5
    clock.advance()
    clock.advance(0.25)
    assert clock.now() == 1.25


def test_time_begins_with_the_first_frame() -> None:
    clock = ManualClock()
    timeline = Timeline(clock, 0.25, 8)
    clock.advance(100.0)
    first = timeline.tick(SIZE, 3.0)
    assert first == Frame(0, 0.0, 0.0, 0.25, 0, 0.0, SIZE, 3.0)
    clock.advance(0.375)
    assert timeline.tick(SIZE, 0.0) == Frame(1, 0.375, 0.375, 0.25, 1, 0.5, SIZE, 0.0)


def test_odd_deltas_give_whole_steps_and_keep_the_rest() -> None:
    frames = ticks(ManualClock(), [0.125, 0.125, 0.0, 0.625, 0.375])
    assert [frame.fixed_steps for frame in frames] == [0, 0, 1, 0, 2, 2]
    assert [frame.fixed_alpha for frame in frames] == [0.0, 0.5, 0.0, 0.0, 0.5, 0.0]


def test_one_step_a_frame_in_spite_of_rounding() -> None:
    clock = ManualClock(step=1 / 60)
    timeline = Timeline(clock, 1 / 60, 8)
    clock.advance(12345.678)  # where 1/60 is no longer exact
    assert {timeline.tick(SIZE, 0.0).fixed_steps for _ in range(5000)} == {1}


def test_a_long_frame_drops_the_time_beyond_the_cap() -> None:
    frames = ticks(ManualClock(), [100.125, 0.125, 0.25], cap=3)
    assert [frame.fixed_steps for frame in frames] == [0, 3, 1, 1]
    assert frames[1].fixed_alpha == 0.5


@given(st.lists(st.floats(0.0, 0.5), max_size=50), st.floats(0.01, 0.3))
def test_fixed_time_follows_time(deltas: list[float], fixed: float) -> None:
    frames = ticks(ManualClock(), deltas, fixed, cap=1000)
    steps = 0
    for frame in frames:
        steps += frame.fixed_steps
        assert 0.0 <= frame.fixed_alpha < 1.0
        assert (steps + frame.fixed_alpha) * fixed == pytest.approx(frame.time, abs=1e-5)


@pytest.mark.parametrize(("fixed", "cap"), [(0.0, 8), (-1.0, 8), (0.1, 0)])
def test_impossible_fixed_steps_are_refused(fixed: float, cap: int) -> None:
    with pytest.raises(InputError, match="fixed_delta_time"):
        Timeline(ManualClock(), fixed, cap)
