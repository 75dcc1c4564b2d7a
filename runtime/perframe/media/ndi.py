"""Video over the network by NDI, with the package cyndilib."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from perframe.errors import InputError, MissingExtraError
from perframe.media.feeds import Feed
from perframe.media.picture import Picture, Pixels, Size, covering, pixels_of
from perframe.media.sinks import ThreadedSink

_SECONDS = 10.0  # for a sender to appear, to answer, or to come back
_REPEAT = 0.5  # seconds after which a picture that stays is read again, so that a released source ends
_PAUSE = 0.005
_CHANNELS = 4


class NdiSink(ThreadedSink):
    """Sends pictures over the network: receivers list them as "COMPUTER (NAME)". The size may change.

    A thread sends the pictures; where it is behind, the oldest are left out. Raises MissingExtraError without cyndilib.
    Where NDI cannot send, the next `write` or `finish` raises InputError.
    """

    keeps_all = False

    def __init__(self, sender: str = "", rate: Fraction = Fraction(30)) -> None:
        self._sender_name = sender or "perframe"
        super().__init__(f"the NDI sender {self._sender_name!r}")
        self._library, self._rate = _NdiLibrary(self.name), rate
        self._sender: Any = None
        self._room = np.empty((0, 0, _CHANNELS), np.uint8)

    def _store(self, picture: Picture) -> None:
        pixels = picture.pixels
        if self._room.shape[:2] != pixels.shape[:2]:
            self._close()
            self._open(pixels.shape[1], pixels.shape[0])
        self._room[..., :3] = pixels
        try:
            took = self._sender.write_video_async(self._room.reshape(-1))  # it copies them
        except Exception as error:  # the package raises the base class
            raise InputError(f"{self.name} took no picture: {error}") from error
        if not took:
            raise InputError(f"{self.name} took no picture: the sender is closed")

    def _open(self, width: int, height: int) -> None:
        library = self._library
        try:
            frame = library.VideoSendFrame()
            frame.set_resolution(width, height)
            frame.set_frame_rate(self._rate)
            frame.set_fourcc(library.FourCC.RGBX)
            sender = library.Sender(self._sender_name, clock_video=False)  # a clock would let the thread wait
            sender.set_video_frame(frame)
            sender.open()
        except Exception as error:
            raise InputError(f"{self.name} cannot be opened: {error}") from error
        self._sender, self._room = sender, np.full((height, width, _CHANNELS), 255, np.uint8)

    def _close(self) -> None:
        if self._sender is not None:
            sender, self._sender = self._sender, None
            sender.close()

    def _undo(self) -> None:
        self._close()


class NdiFeed(Feed):
    """The newest picture of an NDI sender, by its name or by "COMPUTER (NAME)"; without a name, of the first one.

    Raises InputError if there is no such sender or it goes away, and MissingExtraError without cyndilib.
    """

    is_live = True

    def __init__(self, sender: str = "", enough: Size | None = None) -> None:
        self.name, self._enough = f"the NDI sender {sender!r}" if sender else "the first NDI sender", enough
        self._library = library = _NdiLibrary(self.name)
        self._finder = library.Finder()
        self._finder.open()
        try:
            source = self._find(sender)
            self._frame = library.VideoFrameSync()
            self._receiver = library.Receiver(
                color_format=library.RecvColorFormat.RGBX_RGBA, bandwidth=library.RecvBandwidth.highest
            )
            self._receiver.frame_sync.set_video_frame(self._frame)
            self._receiver.set_source(source)
        except BaseException:
            self._finder.close()
            raise

    def _find(self, sender: str) -> Any:
        end = time.monotonic() + _SECONDS
        while True:
            self._finder.wait_for_sources(0.2)
            sources = list(self._finder.iter_sources())
            for source in sources:
                if not sender or sender in (source.name, source.stream_name):
                    return source
            if time.monotonic() >= end:
                found = ", ".join(repr(source.name) for source in sources) or "none"
                raise InputError(f"{self.name} was not found on the network within {_SECONDS:g} s; found: {found}")

    def pictures(self, first: int = 0) -> Iterator[Picture]:
        """The pictures from now on. They can be read once."""
        frame, index, stamp = self._frame, 0, None
        began = shown = alive = time.monotonic()
        try:
            while True:
                now, is_connected = time.monotonic(), bool(self._receiver.is_connected())
                if is_connected:
                    self._receiver.frame_sync.capture_video()
                is_there = min(frame.get_resolution()) > 0 and frame.get_data_size() > 0
                if is_connected and is_there:
                    alive = now
                elif now - alive > _SECONDS:
                    raise InputError(f"{self.name} sent no picture for {_SECONDS:g} s: is it still open?")
                newest = frame.get_timestamp_posix()
                if is_there and (not index or newest != stamp or now - shown > _REPEAT):
                    stamp, shown = newest, now
                    self.rate = Fraction(frame.get_frame_rate()) or self.rate
                    yield Picture(self._pixels(), index, now - began)
                    index += 1
                else:
                    time.sleep(_PAUSE)
        finally:
            self._receiver.disconnect()
            self._finder.close()

    def _pixels(self) -> Pixels:
        """A copy of the picture that the frame has. Rows may end with padding."""
        frame, codes = self._frame, self._library.FourCC
        if frame.get_fourcc() not in (codes.RGBX, codes.RGBA):
            raise InputError(f"{self.name} sends {frame.get_format_string()}, although RGB was asked for")
        (width, height), row = frame.get_resolution(), frame.get_line_stride()
        rows = frame.get_array()[: row * height].reshape(height, row)
        pixels: Pixels = np.ascontiguousarray(rows[:, : width * _CHANNELS].reshape(height, width, _CHANNELS)[..., :3])
        if self._enough is None or covering((width, height), self._enough) == (width, height):
            return pixels
        from PIL import Image

        return pixels_of(Image.fromarray(pixels), self._enough)


class _NdiLibrary:
    """The names of cyndilib that are used here."""

    def __init__(self, purpose: str) -> None:
        try:
            from cyndilib.finder import Finder
            from cyndilib.receiver import Receiver
            from cyndilib.sender import Sender
            from cyndilib.video_frame import VideoFrameSync, VideoSendFrame
            from cyndilib.wrapper.ndi_recv import RecvBandwidth, RecvColorFormat
            from cyndilib.wrapper.ndi_structs import FourCC
        except ImportError as error:
            raise MissingExtraError("cyndilib", "ndi", purpose) from error
        self.Finder: Any = Finder
        self.Receiver: Any = Receiver
        self.Sender: Any = Sender
        self.VideoFrameSync: Any = VideoFrameSync
        self.VideoSendFrame: Any = VideoSendFrame
        self.RecvBandwidth: Any = RecvBandwidth
        self.RecvColorFormat: Any = RecvColorFormat
        self.FourCC: Any = FourCC
