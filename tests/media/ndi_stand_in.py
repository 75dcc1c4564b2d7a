"""A stand-in for the package cyndilib, with its names and signatures: its network is a dict."""

from __future__ import annotations

import enum
import sys
import threading
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest


class FourCC(enum.IntEnum):
    RGBX = 1
    RGBA = 2
    UYVY = 3


class RecvColorFormat(enum.IntFlag):
    RGBX_RGBA = 2


class RecvBandwidth(enum.IntEnum):
    highest = 100


class Network:
    """What is sent: pictures with their row lengths and stamps, by the full names of senders."""

    def __init__(self) -> None:
        self.senders: dict[str, Sender] = {}
        self.all_senders: list[Sender] = []
        self.receivers: list[Receiver] = []
        self.finders: list[Finder] = []
        self.padding = 0
        self.may_send = threading.Event()
        self.may_send.set()


NETWORK = Network()


class VideoFrame:
    def __init__(self) -> None:
        self.width = self.height = self.row = 0
        self.rate, self.code, self.stamp, self.data = Fraction(0), FourCC.RGBX, 0.0, np.zeros(0, np.uint8)

    def get_fourcc(self) -> FourCC:
        return self.code

    def get_format_string(self) -> str:
        return self.code.name

    def get_frame_rate(self) -> Fraction:
        return self.rate

    def get_resolution(self) -> tuple[int, int]:
        return self.width, self.height

    def get_line_stride(self) -> int:
        return self.row

    def get_data_size(self) -> int:
        return self.data.size

    def get_timestamp_posix(self) -> float:
        return self.stamp

    def get_array(self) -> Any:
        return self.data.copy()


class VideoFrameSync(VideoFrame):
    pass


class VideoSendFrame(VideoFrame):
    def set_resolution(self, xres: int, yres: int) -> None:
        assert xres > 0 and yres > 0
        self.width, self.height = xres, yres

    def set_frame_rate(self, value: Fraction) -> None:
        assert isinstance(value, Fraction)
        self.rate = value

    def set_fourcc(self, value: FourCC) -> None:
        self.code = FourCC(value)


class Sender:
    def __init__(self, ndi_name: str, ndi_groups: str = "", clock_video: bool = True, clock_audio: bool = True) -> None:
        self.ndi_name, self.clock_video = ndi_name, clock_video
        self.video_frame: VideoSendFrame | None = None
        self.is_open = False
        self.sent: list[Any] = []
        self.takes = True
        NETWORK.all_senders.append(self)

    def set_video_frame(self, vf: VideoSendFrame) -> None:
        assert not self.is_open
        self.video_frame = vf

    def open(self) -> None:
        if self.ndi_name == "refused":
            raise Exception("Error creating sender")
        self.is_open = True
        NETWORK.senders[f"HERE ({self.ndi_name})"] = self

    def close(self) -> None:
        self.is_open = False
        NETWORK.senders.pop(f"HERE ({self.ndi_name})", None)

    def write_video_async(self, data: Any) -> bool:
        frame = self.video_frame
        assert self.is_open and frame is not None
        view = memoryview(data)
        if view.ndim != 1 or view.format != "B" or view.nbytes != frame.width * frame.height * 4:
            raise ValueError("Buffer has wrong number of dimensions")
        NETWORK.may_send.wait(30)
        self.sent.append(np.frombuffer(view, np.uint8).reshape(frame.height, frame.width, 4).copy())
        return self.takes


class Source:
    def __init__(self, name: str) -> None:
        self.name, self.stream_name = name, name.partition(" (")[2].rstrip(")")


class Finder:
    def __init__(self) -> None:
        self.is_open = False
        NETWORK.finders.append(self)

    def open(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def wait_for_sources(self, timeout: float) -> bool:
        assert self.is_open
        threading.Event().wait(0.01)
        return bool(NETWORK.senders)

    def iter_sources(self) -> Any:
        assert self.is_open
        return iter([Source(name) for name in NETWORK.senders])


class FrameSync:
    def __init__(self, receiver: Receiver) -> None:
        self._receiver, self.video_frame = receiver, VideoFrameSync()

    def set_video_frame(self, vf: VideoFrameSync) -> None:
        self.video_frame = vf

    def capture_video(self) -> None:
        """Fill the frame with the newest picture; without one it stays empty."""
        sender, frame = self._receiver.sender, self.video_frame
        if sender is None or not sender.sent or sender.video_frame is None:
            return
        picture = sender.sent[-1]
        frame.height, frame.width = picture.shape[:2]
        rows = np.zeros((frame.height, frame.width * 4 + NETWORK.padding), np.uint8)
        rows[:, : frame.width * 4] = picture.reshape(frame.height, -1)
        frame.row, frame.data, frame.stamp = rows.shape[1], rows.reshape(-1), float(len(sender.sent))
        frame.rate, frame.code = sender.video_frame.rate, sender.video_frame.code


class Receiver:
    def __init__(
        self,
        source_name: str = "",
        source: Source | None = None,
        color_format: RecvColorFormat = RecvColorFormat.RGBX_RGBA,
        bandwidth: RecvBandwidth = RecvBandwidth.highest,
        allow_video_fields: bool = True,
        recv_name: str = "",
    ) -> None:
        assert color_format is RecvColorFormat.RGBX_RGBA and bandwidth is RecvBandwidth.highest
        self.name, self.frame_sync, self.is_open = "", FrameSync(self), True
        NETWORK.receivers.append(self)

    @property
    def sender(self) -> Sender | None:
        return NETWORK.senders.get(self.name)

    def set_source(self, src: Source) -> None:
        self.name = src.name

    def is_connected(self) -> bool:
        return self.sender is not None

    def disconnect(self) -> None:
        self.is_open = False


def install(monkeypatch: pytest.MonkeyPatch) -> Network:
    """Install the stand-in as the package's modules, with an empty network."""
    NETWORK.__init__()  # type: ignore[misc]
    places: dict[str, list[Any]] = {
        "cyndilib": [],
        "cyndilib.finder": [Finder],
        "cyndilib.receiver": [Receiver],
        "cyndilib.sender": [Sender],
        "cyndilib.video_frame": [VideoFrameSync, VideoSendFrame],
        "cyndilib.wrapper": [],
        "cyndilib.wrapper.ndi_recv": [RecvBandwidth, RecvColorFormat],
        "cyndilib.wrapper.ndi_structs": [FourCC],
    }
    for name, things in places.items():
        module = ModuleType(name)
        for thing in things:
            setattr(module, thing.__name__, thing)
        monkeypatch.setitem(sys.modules, name, module)
    return NETWORK
