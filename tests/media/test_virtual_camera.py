"""A camera that other programs see, tried with a stand-in for pyvirtualcam: no such device is here."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import perframe as pf
from perframe.media import open_sink


class Camera:
    """What the package makes."""

    def __init__(self, width: int, height: int, fps: float, device: str | None = None) -> None:
        if device == "/dev/none":
            raise RuntimeError("'v4l2loopback' backend: No such device")
        self.width, self.height, self.fps, self.device = width, height, fps, device
        self.sent: list[Any] = []
        self.is_open = True
        self.may_send = threading.Event()
        self.may_send.set()
        CAMERAS.append(self)

    def send(self, frame: Any) -> None:
        if frame[0, 0, 0] == 255:
            raise RuntimeError("the camera is gone")
        assert frame.dtype == np.uint8 and frame.shape == (self.height, self.width, 3) and self.is_open
        self.may_send.wait(30)
        self.sent.append(int(frame[0, 0, 0]))

    def close(self) -> None:
        self.is_open = False


CAMERAS: list[Camera] = []


@pytest.fixture(autouse=True)
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    CAMERAS.clear()
    monkeypatch.setitem(sys.modules, "pyvirtualcam", SimpleNamespace(Camera=Camera))


def picture(value: int, size: tuple[int, int] = (6, 8)) -> Any:
    return np.full((*size, 3), value, np.uint8)


def test_it_shows_every_picture_of_a_slow_program() -> None:
    with open_sink("virtualcam:/dev/video7", rate=25) as sink:
        sink.write(picture(0))
        while not CAMERAS or not CAMERAS[0].sent:
            pass
        sink.write(pf.media.Picture(picture(1), 1, 0.04))
    (camera,) = CAMERAS
    assert (camera.width, camera.height, camera.fps, camera.device) == (8, 6, 25.0, "/dev/video7")
    assert camera.sent == [0, 1] and not camera.is_open


def test_a_frame_never_waits_for_it() -> None:
    sink = open_sink("virtualcam")
    sink.write(picture(0))
    while not CAMERAS or not CAMERAS[0].sent:
        pass
    CAMERAS[0].may_send.clear()
    for value in range(1, 100):
        sink.write(picture(value))
    CAMERAS[0].may_send.set()
    sink.finish()
    sent = CAMERAS[0].sent
    assert sent == sorted(set(sent)) and sent[-4:] == [96, 97, 98, 99] and len(sent) <= 6


def test_what_cannot_be_shown() -> None:
    with (
        pytest.raises(pf.InputError, match=r"picture 1 is 4×6, and those before were 8×6"),
        open_sink("virtualcam") as sink,
    ):
        sink.write(picture(0))
        sink.write(picture(0, (6, 4)))
    assert not CAMERAS[0].is_open
    with (
        pytest.raises(pf.InputError, match=r"the virtual camera /dev/none cannot be opened: .*v4l2loopback"),
        open_sink("virtualcam:/dev/none") as sink,
    ):
        sink.write(picture(0))
    with pytest.raises(pf.InputError, match="took no picture: the camera is gone"), open_sink("virtualcam") as sink:
        sink.write(picture(255))
    for rate in (0, -1, float("nan")):
        with pytest.raises(pf.InputError, match="a rate is a number of pictures a second"):
            open_sink("virtualcam", rate=rate)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyvirtualcam", None)
    with pytest.raises(pf.MissingExtraError, match=r"perframe\[virtualcam\]"):
        open_sink("virtualcam")
